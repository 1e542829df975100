(* Naimi, Trehel, Arnold 1996, "A log(N) distributed mutual exclusion algorithm based on path
   reversal".  Mutual exclusion from one token, for any number of nodes and any initial fathers.

   Rust: crates/algorithms/src/naimi_trehel.rs, which represents nil by the node itself.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section NaimiTrehel.
Context {N : Nodes}.

Inductive message := Request (origin : node) | Token.
Record state := mk { father : option node; next : option node; ph : phase; token : bool }.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle => match father s with
            | Some f => Some (mk None (next s) Waiting (token s), [(f, Request me)])
            | None => Some (mk None (next s) Inside (token s), [])
            end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => match next s with
              | Some w => Some (mk (father s) None Idle false, [(w, Token)])
              | None => Some (mk (father s) None Idle (token s), [])
              end
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request origin =>
      match father s, ph s with
      | Some f, p => (mk (Some origin) (next s) p (token s), [(f, Request origin)])
      | None, Idle => (mk (Some origin) (next s) Idle false, [(origin, Token)])
      | None, p => (mk (Some origin) (Some origin) p (token s), [])
      end
  | Token => (mk (father s) (next s) Inside true, [])
  end.

Definition naimi_trehel : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition initial (root : node) (held : bool) (me : node) : state :=
  if node_eq me root then mk None None (first_phase root held me) true
  else mk (Some root) None Idle false.

Definition has (_ : node) (s : state) : nat := if token s then 1 else 0.
Definition carries (m : message) : nat := match m with Token => 1 | _ => 0 end.

(* A node that is inside has the token; an idle root has it and no next; a next implies a father. *)
Definition J (n : node) (s : state) : Prop :=
  (ph s = Inside -> token s = true) /\
  (ph s = Idle -> next s = None /\ (father s = None -> token s = true)) /\
  (next s <> None -> father s <> None).

Lemma naimi_trehel_call n s i s' o : J n s -> call naimi_trehel n s i s' o ->
  J n s' /\ has n s' + sent1 naimi_trehel carries o <= has n s + received1 naimi_trehel carries i.
Proof.
  destruct s as [f x p t]. unfold J, has, sent1.
  intros (H1 & H2 & H3) C. simpl in *. destruct i as [[from m]|]; [destruct m|]; simpl in C;
    unfold do_request, do_release, do_receive in C; simpl in C; destruct p, f, x, t; cases;
    intuition (congruence || lia).
Qed.

Theorem naimi_trehel_mutual_exclusion c root held g :
  reachable naimi_trehel c (begins (A:=naimi_trehel) (initial root held)) g -> mutual_exclusion g.
Proof.
  apply (single_token_from naimi_trehel c has carries J) with root.
  - apply naimi_trehel_call.
  - intros n s (H & _) E. unfold has. now rewrite (H E).
  - intros x Nx. unfold has, initial. now destruct (node_eq x root).
  - unfold has, initial. destruct (node_eq root root); auto.
  - intros x. unfold J, initial, first_phase. destruct (node_eq x root); simpl; [|repeat split; congruence].
    destruct held; repeat split; congruence.
Qed.
End NaimiTrehel.
