(* The messages on their way from one node to another, in order.  *)
From Coq Require Import List.
Require Import Network.
Import ListNotations.

Section Channel.
Context {N : Nodes} {A : algorithm}.

Definition between (x y : node) (p : packet A) : bool :=
  if node_eq (fst (fst p)) x then if node_eq (snd (fst p)) y then true else false else false.
(* What is on its way from [x] to [y], the newest first. *)
Definition chan (l : list (packet A)) (x y : node) : list (msg A) := map snd (filter (between x y) l).

Lemma chan_app l1 l2 x y : chan (l1 ++ l2) x y = chan l1 x y ++ chan l2 x y.
Proof. unfold chan. now rewrite filter_app, map_app. Qed.
Lemma chan_cons u v m l x y : chan ((u, v, m) :: l) x y =
  if node_eq u x then if node_eq v y then m :: chan l x y else chan l x y else chan l x y.
Proof. unfold chan. simpl. unfold between at 1. simpl. destruct (node_eq u x), (node_eq v y); auto. Qed.
Lemma chan_deliver l1 l2 from n m x y :
  (forall m', ~ In (from, n, m') l2) ->
  chan (l1 ++ (from, n, m) :: l2) x y =
  chan (l1 ++ l2) x y ++ (if node_eq from x then if node_eq n y then [m] else [] else []).
Proof.
  intros H. rewrite !chan_app. unfold chan at 2. simpl. unfold between at 1. simpl.
  destruct (node_eq from x) as [<-|]; [destruct (node_eq n y) as [<-|]|].
  2,3: rewrite app_nil_r; reflexivity.
  simpl. assert (Z : filter (between from n) l2 = []).
  { destruct (filter (between from n) l2) as [|[[a b] k] q] eqn:E; auto. exfalso.
    assert (X : In (a, b, k) (filter (between from n) l2)) by (rewrite E; now left).
    apply filter_In in X as [X B]. unfold between in B. simpl in B.
    destruct (node_eq a from) as [->|], (node_eq b n) as [->|]; try discriminate. now apply (H k). }
  unfold chan. rewrite Z. simpl. now rewrite app_nil_r.
Qed.
Lemma chan_post_each n (m : msg A) l x y : NoDup l ->
  chan (post n (map (fun p => (p, m)) l)) x y
  = if node_eq n x then if in_dec node_eq y l then [m] else [] else [].
Proof.
  intros Nd. induction l as [|p l IH]; [simpl; now destruct (node_eq n x)|]. inversion Nd; subst.
  change (post n (map (fun p => (p, m)) (p :: l)))
    with ((n, p, m) :: post n (map (fun p => (p, m)) l)).
  rewrite chan_cons, (IH H2). destruct (node_eq n x) as [<-|]; auto.
  destruct (node_eq p y) as [->|Np], (in_dec node_eq y l) as [I|I];
    match goal with |- context [in_dec node_eq y (?a :: l)] => destruct (in_dec node_eq y (a :: l)) as [I'|I'] end;
    simpl in *; auto; tauto || (destruct I'; congruence || tauto).
Qed.
Lemma post_app n (o1 o2 : outbox (msg A)) : post n (o1 ++ o2) = post n o1 ++ post n o2.
Proof. apply map_app. Qed.
Lemma chan_post_one n to m x y : chan (post n [(to, m)]) x y
  = if node_eq n x then if node_eq to y then [m] else [] else [].
Proof. change (post n [(to, m)]) with [(n, to, m)]. now rewrite chan_cons. Qed.
End Channel.
