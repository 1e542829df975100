(* How many messages of a sort are on their way from one node to another.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network.
Import ListNotations.

Section Count.
Context {N : Nodes} {A : algorithm}.

(* 1 for the pair (a, b), 0 for all others. *)
Definition pair_is (a b u v : node) : nat :=
  if node_eq u a then if node_eq v b then 1 else 0 else 0.

(* [w] is the weight of a message, 0 or 1. *)
Fixpoint count (w : msg A -> nat) (l : list (packet A)) (u v : node) : nat :=
  match l with
  | [] => 0
  | (a, b, m) :: l' => w m * pair_is a b u v + count w l' u v
  end.

Lemma pair_is_same a b : pair_is a b a b = 1.
Proof. unfold pair_is. destruct (node_eq a a), (node_eq b b); congruence. Qed.
Lemma pair_is_other a b u v : u <> a \/ v <> b -> pair_is a b u v = 0.
Proof. unfold pair_is. destruct (node_eq u a), (node_eq v b); intuition congruence. Qed.

Lemma count_app w l1 l2 u v : count w (l1 ++ l2) u v = count w l1 u v + count w l2 u v.
Proof. induction l1 as [|[[a b] m] l1 IH]; simpl; lia. Qed.

Lemma count_mid w l1 a b m l2 u v :
  count w (l1 ++ (a, b, m) :: l2) u v = count w (l1 ++ l2) u v + w m * pair_is a b u v.
Proof. rewrite !count_app. simpl. lia. Qed.

Lemma in_count w l a b m : In (a, b, m) l -> w m <= count w l a b.
Proof.
  induction l as [|[[a' b'] m'] l IH]; simpl; [tauto|].
  intros [E | H]; [injection E as -> -> ->; rewrite pair_is_same; lia|]. specialize (IH H). lia.
Qed.

Lemma count_in w l a b : 0 < count w l a b -> exists m, In (a, b, m) l /\ 0 < w m.
Proof.
  induction l as [|[[a' b'] m'] l IH]; simpl; [lia|]. intros H.
  destruct (Nat.eq_dec (count w l a b) 0) as [E|E].
  - exists m'. unfold pair_is in H.
    destruct (node_eq a a') as [->|], (node_eq b b') as [->|]; try lia. split; auto. lia.
  - destruct IH as (m & H' & Hm); [lia|]. exists m. auto.
Qed.

Lemma count_post_other w n o u v : u <> n -> count w (post n o) u v = 0.
Proof.
  intros H. induction o as [|[to m] o IH]; simpl; auto. rewrite IH, pair_is_other by auto. lia.
Qed.

(* The same message to several nodes. *)
Lemma count_post_each w n (m : msg A) l v :
  NoDup l ->
  count w (post n (map (fun p => (p, m)) l)) n v = if in_dec node_eq v l then w m else 0.
Proof.
  intros Nd. induction l as [|p l IH]; auto. inversion Nd; subst. simpl map. simpl count. rewrite IH by auto.
  unfold pair_is. destruct (node_eq n n); [|congruence].
  destruct (in_dec node_eq v (p :: l)) as [I|I], (in_dec node_eq v l) as [I'|I'], (node_eq v p);
    simpl in *; subst; try tauto; try lia. destruct I; congruence || tauto.
Qed.
End Count.
