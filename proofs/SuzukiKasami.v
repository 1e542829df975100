(* Suzuki, Kasami 1985, "A distributed mutual exclusion algorithm".  Mutual exclusion from one token,
   whatever the numbers in RN and LN are.

   Rust: crates/algorithms/src/suzuki_kasami.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section SuzukiKasami.
Context {N : Nodes}.
Variable peers : node -> list node.           (* all other nodes *)
Variable in_turn : node -> list node.         (* the same, in cyclic order *)

Record tok := Tok { ln : node -> nat; queue : list node }.
Inductive message := Request (number : nat) | Privilege (t : tok).
Record state := mk { ph : phase; rn : node -> nat; token : option tok }.

(* Whether [j] requests a token that has not served it yet. *)
Definition asks (r l : node -> nat) (j : node) : bool := r j =? S (l j).

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle => match token s with
            | Some t => Some (mk Inside (rn s) (Some t), [])
            | None =>
                let k := S (rn s me) in
                Some (mk Waiting (set (rn s) me k) None, map (fun p => (p, Request k)) (peers me))
            end
  | _ => None
  end.

(* LN is brought up to date, and those that ask go to the end of the queue. *)
Definition enqueue (r l : node -> nat) (q : list node) (j : node) : list node :=
  if asks r l j && negb (if in_dec node_eq j q then true else false) then q ++ [j] else q.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside =>
      match token s with
      | None => Some (mk Idle (rn s) None, [])
      | Some t =>
          let l := set (ln t) me (rn s me) in
          match fold_left (enqueue (rn s) l) (in_turn me) (queue t) with
          | [] => Some (mk Idle (rn s) (Some (Tok l [])), [])
          | first :: rest => Some (mk Idle (rn s) None, [(first, Privilege (Tok l rest))])
          end
      end
  | _ => None
  end.

Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request k =>
      let r := set (rn s) from (max (rn s from) k) in
      match ph s, token s with
      | Idle, Some t =>
          if asks r (ln t) from then (mk Idle r None, [(from, Privilege t)]) else (mk Idle r (Some t), [])
      | p, t => (mk p r t, [])
      end
  | Privilege t => (mk Inside (rn s) (Some t), [])
  end.

Definition suzuki_kasami : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition initial (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) (fun _ => 0)
     (if node_eq me root then Some (Tok (fun _ => 0) []) else None).

Definition has (_ : node) (s : state) : nat := match token s with Some _ => 1 | None => 0 end.
Definition carries (m : message) : nat := match m with Privilege _ => 1 | _ => 0 end.
Definition J (n : node) (s : state) : Prop := ph s = Inside -> token s <> None.

Lemma no_token_in_requests k l : list_sum (map (fun p => carries (snd p)) (map (fun p : node => (p, Request k)) l)) = 0.
Proof. induction l; auto. Qed.

Lemma suzuki_kasami_call n s i s' o : J n s -> call suzuki_kasami n s i s' o ->
  J n s' /\ has n s' + sent1 suzuki_kasami carries o <= has n s + received1 suzuki_kasami carries i.
Proof.
  destruct s as [p r t]. unfold J, has, sent1. intros Hj C.
  destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
  - unfold do_receive in C. destruct m; simpl in *; cases; split; auto; congruence || lia.
  - unfold do_request in C. simpl in C. destruct p; try discriminate. destruct t; injection C as <- <-; simpl.
    + split; auto. congruence.
    + rewrite no_token_in_requests. split; auto; congruence.
  - unfold do_release in C. simpl in C. destruct p; try discriminate. destruct t.
    + destruct (fold_left _ _ _); injection C as <- <-; simpl; split; auto; congruence.
    + injection C as <- <-. simpl. split; auto; congruence.
Qed.

Theorem suzuki_kasami_mutual_exclusion c root held g :
  reachable suzuki_kasami c (begins (A:=suzuki_kasami) (initial root held)) g -> mutual_exclusion g.
Proof.
  apply (single_token_from suzuki_kasami c has carries J) with root.
  - apply suzuki_kasami_call.
  - intros n s H E. unfold has. specialize (H E). destruct (token s); [auto | congruence].
  - intros x Nx. unfold has, initial. simpl. now destruct (node_eq x root).
  - unfold has, initial. simpl. destruct (node_eq root root); auto.
  - intros x. unfold J, initial, first_phase. simpl. destruct (node_eq x root); congruence.
Qed.
End SuzukiKasami.
