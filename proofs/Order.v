(* Requests are totally ordered: by number, and by node if the numbers are equal.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network.
Import ListNotations.

Class NodeOrder (N : Nodes) := {
  rank : node -> nat;
  rank_inj : forall a b, rank a = rank b -> a = b }.

Section Order.
Context {N : Nodes} {O : NodeOrder N}.

Definition request_id := (nat * node)%type.
Definition earlier (a b : request_id) : bool :=
  (fst a <? fst b) || ((fst a =? fst b) && (rank (snd a) <? rank (snd b))).

Lemma earlier_spec a b :
  earlier a b = true <-> fst a < fst b \/ (fst a = fst b /\ rank (snd a) < rank (snd b)).
Proof.
  unfold earlier. rewrite orb_true_iff, andb_true_iff, !Nat.ltb_lt, Nat.eqb_eq. tauto.
Qed.
Lemma earlier_asym a b : earlier a b = true -> earlier b a = true -> False.
Proof. rewrite !earlier_spec. lia. Qed.
Lemma earlier_trans a b c : earlier a b = true -> earlier b c = true -> earlier a c = true.
Proof. rewrite !earlier_spec. lia. Qed.
Lemma earlier_number k j a b : k < j -> earlier (k, a) (j, b) = true.
Proof. intros. apply earlier_spec. simpl. auto. Qed.
Lemma earlier_total a b : snd a <> snd b -> earlier a b = false -> earlier b a = true.
Proof.
  intros Nq H. rewrite <- not_true_iff_false, earlier_spec in H. apply earlier_spec.
  assert (rank (snd a) <> rank (snd b)) by (intros E; now apply rank_inj in E). lia.
Qed.

(* Queues in order. *)
Definition same_id (a b : request_id) : bool :=
  (fst a =? fst b) && if node_eq (snd a) (snd b) then true else false.
Fixpoint insert (r : request_id) (q : list request_id) : list request_id :=
  match q with
  | [] => [r]
  | x :: q' => if earlier x r then x :: insert r q' else r :: q
  end.

Lemma same_id_spec a b : same_id a b = true <-> a = b.
Proof.
  unfold same_id. destruct a as [k x], b as [j y]. simpl. rewrite andb_true_iff, Nat.eqb_eq.
  destruct (node_eq x y); split; intros; intuition congruence.
Qed.
Definition le (a b : request_id) : Prop := earlier b a = false.
Fixpoint sorted (q : list request_id) : Prop :=
  match q with [] => True | r :: q' => (forall x, In x q' -> le r x) /\ sorted q' end.

Lemma le_trans a b d : le a b -> le b d -> le a d.
Proof. unfold le. rewrite <- !not_true_iff_false, !earlier_spec. lia. Qed.
Lemma earlier_le a b : earlier a b = true -> le a b.
Proof. unfold le. rewrite <- not_true_iff_false, !earlier_spec. lia. Qed.
Lemma in_insert r q x : In x (insert r q) <-> x = r \/ In x q.
Proof.
  induction q as [|y q IH]; simpl; [intuition|]. destruct (earlier y r); simpl; rewrite ?IH; intuition.
Qed.
Lemma sorted_insert r q : sorted q -> sorted (insert r q).
Proof.
  induction q as [|y q IH]; simpl; [intuition|]. intros [H1 H2]. destruct (earlier y r) eqn:E; simpl.
  - split; auto. intros x Hx. apply in_insert in Hx as [->|Hx]; auto. now apply earlier_le.
  - repeat split; auto. intros x [<-|Hx]; auto. apply le_trans with y; auto.
Qed.
End Order.
