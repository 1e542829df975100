(* Neilsen, Mizuno 1991, "A DAG-based algorithm for distributed mutual exclusion".  Mutual exclusion
   from one token.  It needs nothing of the tree: LAST may point anywhere.

   Rust: crates/algorithms/src/neilsen_mizuno.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section NeilsenMizuno.
Context {N : Nodes}.

Inductive message := Request (origin : node) | Privilege.
Record state := mk { last : option node; follow : option node; ph : phase; holding : bool }.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      if holding s then Some (mk (last s) (follow s) Inside false, [])
      else match last s with
           | Some l => Some (mk None (follow s) Waiting false, [(l, Request me)])
           | None => Some (s, [])
           end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => match follow s with
              | Some w => Some (mk (last s) None Idle (holding s), [(w, Privilege)])
              | None => Some (mk (last s) None Idle true, [])
              end
  | _ => None
  end.
(* REQUEST(X, Y): X is [from], Y is [origin]. *)
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request origin =>
      match last s with
      | Some l => (mk (Some from) (follow s) (ph s) (holding s), [(l, Request origin)])
      | None =>
          if holding s then (mk (Some from) (follow s) (ph s) false, [(origin, Privilege)])
          else (mk (Some from) (Some origin) (ph s) (holding s), [])
      end
  | Privilege => (mk (last s) (follow s) Inside (holding s), [])
  end.

Definition neilsen_mizuno : algorithm := Algorithm state message do_request do_release do_receive ph.

(* [towards x] is the neighbour of [x] on the way to [root]. *)
Definition initial (towards : node -> node) (root : node) (held : bool) (me : node) : state :=
  if node_eq me root then mk None None (first_phase root held me) (negb held)
  else mk (Some (towards me)) None Idle false.

(* The privilege rests at a node (HOLDING), or its node is inside. *)
Definition has (_ : node) (s : state) : nat :=
  (if holding s then 1 else 0) + match ph s with Inside => 1 | _ => 0 end.
Definition carries (m : message) : nat := match m with Privilege => 1 | _ => 0 end.

Lemma neilsen_mizuno_call n s i s' o : True -> call neilsen_mizuno n s i s' o ->
  True /\ has n s' + sent1 neilsen_mizuno carries o <= has n s + received1 neilsen_mizuno carries i.
Proof.
  destruct s as [l w p h]. unfold has, sent1. intros _ C. split; auto.
  destruct i as [[from m]|]; [destruct m|]; simpl in C;
    unfold do_request, do_release, do_receive in C; simpl in C; destruct p, l, w, h; cases; discriminate || lia.
Qed.

Theorem neilsen_mizuno_mutual_exclusion c towards root held g :
  reachable neilsen_mizuno c (begins (A:=neilsen_mizuno) (initial towards root held)) g ->
  mutual_exclusion g.
Proof.
  apply (single_token_from neilsen_mizuno c has carries (fun _ _ => True)) with root; auto.
  - apply neilsen_mizuno_call.
  - intros n s _ E. unfold has. simpl in E. rewrite E. lia.
  - intros x Nx. unfold has, initial. now destruct (node_eq x root).
  - unfold has, initial, first_phase. destruct (node_eq root root); [|congruence]. destruct held; auto.
Qed.
End NeilsenMizuno.
