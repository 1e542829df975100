(* Requests are totally ordered: by number, and by node if the numbers are equal.  *)
From Coq Require Import Arith Lia Bool.
Require Import Network.

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
End Order.
