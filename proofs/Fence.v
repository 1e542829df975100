(* Fences rise in every algorithm that excludes mutually.

   Each node knows a highest fence.  Each message carries that of its sender, its receiver keeps the
   maximum, and a grant at a node that is inside takes the next number.  The layer above the
   algorithms does this (crates/core/src/locks).  Theorem [fences_rise]: if at most one node is
   inside in each reachable state, the fence of each grant is greater than those of all earlier
   grants.  Nothing else is assumed of the algorithm or of its channels.

   The reason is Lamport's: a chain of messages leads from each exit to the next entry.  The proof
   shows it by contradiction.  For a grant with fence [k], hold back every node at the moment at
   which it would learn of [k].  What remains is a run too ([shadow]), and in it the node that got
   [k] is still inside.  A node that enters without knowing [k] enters in that run as well, and then
   two are inside.

   All nodes start with fence 0: an epoch's fences have the epoch as their high part.  *)
From Coq Require Import List Arith Lia Bool Sorted.
Require Import Network.
Import ListNotations.

Section Fence.
Context {N : Nodes}.
Variable A : algorithm.
Variable c : channels.
Variable init : global A -> Prop.

Definition stamped := (packet A * nat)%type.
Record fenced := Fenced {
  nodes : node -> local A;
  fence : node -> nat;
  flight : list stamped;
  log : list nat }.                       (* the fences granted, the latest first *)

Definition plain (f : fenced) : global A := Global (nodes f) (map fst (flight f)).
Definition stamp (k : nat) (l : list (packet A)) : list stamped := map (fun p => (p, k)) l.

Inductive fstep : fenced -> fenced -> Prop :=
| f_request f n s o :
    request A n (nodes f n) = Some (s, o) ->
    fstep f (Fenced (set (nodes f) n s) (fence f) (stamp (fence f n) (post n o) ++ flight f) (log f))
| f_release f n s o :
    release A n (nodes f n) = Some (s, o) ->
    fstep f (Fenced (set (nodes f) n s) (fence f) (stamp (fence f n) (post n o) ++ flight f) (log f))
| f_deliver f l1 l2 from n m j s o :
    flight f = l1 ++ ((from, n, m), j) :: l2 ->
    may_overtake A c from n (map fst l2) ->
    receive A n (nodes f n) from m = (s, o) ->
    let k := max (fence f n) j in
    fstep f (Fenced (set (nodes f) n s) (set (fence f) n k) (stamp k (post n o) ++ l1 ++ l2) (log f))
| f_lose f l1 l2 p :
    c = Lossy ->
    flight f = l1 ++ p :: l2 ->
    fstep f (Fenced (nodes f) (fence f) (l1 ++ l2) (log f))
| f_grant f n :                           (* as often as one likes during one stay *)
    phase_of A (nodes f n) = Inside ->
    let k := S (fence f n) in
    fstep f (Fenced (nodes f) (set (fence f) n k) (flight f) (k :: log f)).

Definition fstart (f : fenced) : Prop :=
  init (plain f) /\ (forall n, fence f n = 0) /\ (forall p, In p (flight f) -> snd p = 0) /\ log f = [].

Inductive freachable : fenced -> Prop :=
| freach_start f : fstart f -> freachable f
| freach_step f f' : freachable f -> fstep f f' -> freachable f'.

Lemma stamp_fst k l : map fst (stamp k l) = l.
Proof. unfold stamp. rewrite map_map. simpl. apply map_id. Qed.

(* Without the fences, it is a run of the algorithm. *)
Lemma fstep_plain f f' : fstep f f' -> step A c (plain f) (plain f') \/ plain f' = plain f.
Proof.
  destruct 1 as [f n s o E | f n s o E | f l1 l2 from n m j s o En Ov E k | f l1 l2 p Ec En | f n E k];
    unfold plain; simpl.
  - left. rewrite map_app, stamp_fst. exact (step_request A c (plain f) n s o E).
  - left. rewrite map_app, stamp_fst. exact (step_release A c (plain f) n s o E).
  - left. rewrite !map_app, stamp_fst.
    refine (step_deliver A c (plain f) (map fst l1) (map fst l2) from n m s o _ Ov E).
    simpl. now rewrite En, map_app.
  - left. rewrite !map_app.
    refine (step_lose A c (plain f) (map fst l1) (map fst l2) (fst p) Ec _).
    simpl. now rewrite En, map_app.
  - now right.
Qed.

(* What is on its way to [n]: all of it, and the part that carries a fence below [k]. *)
Definition to (n : node) (p : packet A) : bool := if node_eq (receiver p) n then true else false.
Definition inbox (n : node) (l : list (packet A)) : list (packet A) := filter (to n) l.
Definition below (k : nat) (n : node) (p : stamped) : bool := to n (fst p) && (snd p <? k).
Definition inbox_below (k : nat) (n : node) (l : list stamped) : list (packet A) :=
  map fst (filter (below k n) l).

(* [h] is a state of the algorithm in which every node that has not learned of [k] is as in [f]. *)
Record shadow (k : nat) (f : fenced) (h : global A) : Prop := {
  sh_st : forall n, fence f n < k -> st h n = nodes f n;
  sh_net : forall n, fence f n < k -> inbox n (net h) = inbox_below k n (flight f) }.

(* Somebody who knows [k] is still inside there. *)
Definition remembered (f : fenced) (k : nat) : Prop :=
  exists x h, reachable A c init h /\ phase_of A (st h x) = Inside /\ k <= fence f x /\ shadow k f h.

Record finv (f : fenced) : Prop := {
  fi_plain : reachable A c init (plain f);
  fi_log : StronglySorted gt (log f);
  fi_fence : forall n, fence f n <= hd 0 (log f);
  fi_flight : forall p, In p (flight f) -> snd p <= hd 0 (log f);
  fi_known : forall k, In k (log f) -> remembered f k }.

Lemma to_yes n p : to n p = true <-> receiver p = n.
Proof. unfold to. destruct (node_eq (receiver p) n); split; congruence. Qed.
Lemma to_no n p : to n p = false <-> receiver p <> n.
Proof. unfold to. destruct (node_eq (receiver p) n); split; congruence. Qed.

Lemma inbox_app n l1 l2 : inbox n (l1 ++ l2) = inbox n l1 ++ inbox n l2.
Proof. apply filter_app. Qed.
Lemma inbox_below_app k n l1 l2 :
  inbox_below k n (l1 ++ l2) = inbox_below k n l1 ++ inbox_below k n l2.
Proof. unfold inbox_below. now rewrite filter_app, map_app. Qed.

Lemma inbox_below_stamp_low k n j l : j < k -> inbox_below k n (stamp j l) = inbox n l.
Proof.
  intros H. unfold inbox_below, inbox, below, stamp.
  induction l as [|p l IH]; simpl; auto.
  assert (E : (j <? k) = true) by (apply Nat.ltb_lt; lia). rewrite E, andb_true_r.
  destruct (to n p); simpl; now rewrite IH.
Qed.
Lemma inbox_below_stamp_high k n j l : k <= j -> inbox_below k n (stamp j l) = [].
Proof.
  intros H. unfold inbox_below, below, stamp.
  induction l as [|p l IH]; simpl; auto.
  assert (E : (j <? k) = false) by (apply Nat.ltb_ge; lia). now rewrite E, andb_false_r.
Qed.

(* A packet that is not in an inbox does not change it. *)
Lemma inbox_below_other k n l1 p l2 :
  receiver (fst p) <> n \/ k <= snd p ->
  inbox_below k n (l1 ++ p :: l2) = inbox_below k n (l1 ++ l2).
Proof.
  intros H. rewrite !inbox_below_app. f_equal. unfold inbox_below. simpl.
  assert (E : below k n p = false).
  { unfold below. destruct H as [H|H]; [apply to_no in H; now rewrite H|].
    apply Nat.ltb_ge in H. rewrite H. apply andb_false_r. }
  now rewrite E.
Qed.
Lemma inbox_other n l1 p l2 : receiver p <> n -> inbox n (l1 ++ p :: l2) = inbox n (l1 ++ l2).
Proof.
  intros H. rewrite !inbox_app. f_equal. unfold inbox. simpl. apply to_no in H. now rewrite H.
Qed.

(* The shadow has the packet too, at the same place among those for the same node. *)
Lemma filter_split {X} (f : X -> bool) l a x b :
  filter f l = a ++ x :: b ->
  exists l1 l2, l = l1 ++ x :: l2 /\ filter f l1 = a /\ filter f l2 = b /\ f x = true.
Proof.
  revert a. induction l as [|y l IH]; simpl; intros a E; [now destruct a|].
  destruct (f y) eqn:Ey.
  - destruct a as [|z a]; simpl in E.
    + injection E as <- <-. now exists [], l.
    + injection E as <- E. destruct (IH a E) as (l1 & l2 & -> & <- & <- & Ex).
      exists (y :: l1), l2. simpl. rewrite Ey. auto.
  - destruct (IH a E) as (l1 & l2 & -> & <- & <- & Ex).
    exists (y :: l1), l2. simpl. rewrite Ey. auto.
Qed.

Lemma shadow_packet k f h l1 l2 p j :
  shadow k f h -> flight f = l1 ++ (p, j) :: l2 -> j < k -> fence f (receiver p) < k ->
  exists h1 h2, net h = h1 ++ p :: h2 /\
    inbox (receiver p) h1 = inbox_below k (receiver p) l1 /\
    inbox (receiver p) h2 = inbox_below k (receiver p) l2.
Proof.
  intros Sh En Hj Hf. pose proof (sh_net _ _ _ Sh _ Hf) as E.
  rewrite En, inbox_below_app in E. unfold inbox_below at 2 in E. simpl in E.
  assert (B : below k (receiver p) (p, j) = true).
  { unfold below. simpl. assert (T : to (receiver p) p = true) by now apply to_yes.
    rewrite T. now apply Nat.ltb_lt. }
  rewrite B in E. simpl in E. destruct (filter_split _ _ _ _ _ E) as (h1 & h2 & En' & E1 & E2 & _).
  now exists h1, h2.
Qed.

(* A local step, of a node that knows [k] or of one that does not. *)
Lemma shadow_local k f h n s o :
  shadow k f h -> reachable A c init h ->
  (forall g : global A, st g n = nodes f n ->
     step A c g (Global (set (st g) n s) (post n o ++ net g))) ->
  exists h', reachable A c init h' /\
    (forall x, k <= fence f x -> st h' x = st h x) /\
    shadow k (Fenced (set (nodes f) n s) (fence f) (stamp (fence f n) (post n o) ++ flight f) (log f)) h'.
Proof.
  intros Sh R S. destruct (le_lt_dec k (fence f n)) as [Hk|Hk].
  - exists h. split; auto. split; auto. split; simpl; intros x Hx.
    + rewrite set_other by (intros ->; lia). now apply (sh_st _ _ _ Sh).
    + rewrite inbox_below_app, inbox_below_stamp_high by auto. now apply (sh_net _ _ _ Sh).
  - pose proof (sh_st _ _ _ Sh n Hk) as En. exists (Global (set (st h) n s) (post n o ++ net h)).
    split; [eapply reach_step; eauto|]. split; [|split]; simpl; intros x Hx.
    + apply set_other. intros ->. lia.
    + unfold set. destruct (node_eq x n); auto. now apply (sh_st _ _ _ Sh).
    + rewrite inbox_app, inbox_below_app, inbox_below_stamp_low by auto. f_equal.
      now apply (sh_net _ _ _ Sh).
Qed.

Lemma shadow_step k f f' h x :
  fstep f f' -> log f' = log f -> reachable A c init h -> k <= fence f x ->
  phase_of A (st h x) = Inside -> shadow k f h -> remembered f' k.
Proof.
  intros S El R Hx Hi Sh.
  destruct S as [f n s o E | f n s o E | f l1 l2 from n m j s o En Ov E k' | f l1 l2 [p j] Ec En | f n E k'].
  - destruct (shadow_local k f h n s o Sh R) as (h' & R' & Same & Sh').
    { intros g Eg. apply step_request. now rewrite Eg. }
    exists x, h'. repeat split; auto; try apply Sh'. now rewrite Same.
  - destruct (shadow_local k f h n s o Sh R) as (h' & R' & Same & Sh').
    { intros g Eg. apply step_release. now rewrite Eg. }
    exists x, h'. repeat split; auto; try apply Sh'. now rewrite Same.
  - assert (Grow : forall y, fence f y <= set (fence f) n k' y)
      by (intros y; unfold set, k'; destruct (node_eq y n) as [->|]; lia).
    destruct (le_lt_dec k k') as [Hk|Hk].
    + exists x, h. repeat split; auto; simpl.
      * specialize (Grow x). lia.
      * intros y Hy. assert (y <> n) by (intros ->; rewrite set_same in Hy; lia).
        rewrite set_other in Hy by auto. rewrite set_other by auto. now apply (sh_st _ _ _ Sh).
      * intros y Hy. assert (Ny : y <> n) by (intros ->; rewrite set_same in Hy; lia).
        rewrite set_other in Hy by auto. rewrite inbox_below_app, inbox_below_stamp_high by auto.
        simpl. rewrite (sh_net _ _ _ Sh y Hy), En. apply inbox_below_other. left. simpl. auto.
    + assert (Hn : fence f n < k) by lia.
      destruct (shadow_packet k f h l1 l2 (from, n, m) j Sh En) as (h1 & h2 & Eh & E1 & E2);
        simpl; auto; [lia|]. change (inbox n h1 = inbox_below k n l1) in E1. change (inbox n h2 = inbox_below k n l2) in E2.
      exists x, (Global (set (st h) n s) (post n o ++ h1 ++ h2)). repeat split; simpl.
      * eapply reach_step; [exact R|]. apply step_deliver with (1 := Eh).
        -- intros Ec m' Hm. apply (Ov Ec m').
           assert (I : In (from, n, m') (inbox n h2)).
           { apply filter_In. split; auto. now apply to_yes. }
           rewrite E2 in I. unfold inbox_below in I. apply in_map_iff in I as (q & <- & I).
           apply in_map. now apply filter_In in I.
        -- now rewrite (sh_st _ _ _ Sh n Hn).
      * rewrite set_other by (intros ->; lia). auto.
      * specialize (Grow x). lia.
      * intros y Hy. unfold set in *. destruct (node_eq y n); auto. now apply (sh_st _ _ _ Sh).
      * intros y Hy. rewrite !inbox_app, inbox_below_app, inbox_below_stamp_low by auto. f_equal.
        destruct (node_eq y n) as [->|Ny].
        -- rewrite inbox_below_app. now rewrite <- E1, <- E2.
        -- rewrite set_other in Hy by auto. rewrite <- inbox_app.
           rewrite <- (inbox_other y h1 (from, n, m)) by (simpl; auto). rewrite <- Eh.
           rewrite (sh_net _ _ _ Sh y Hy), En. apply inbox_below_other. left. simpl. auto.
  - destruct (le_lt_dec k j) as [Hj|Hj]; [|destruct (le_lt_dec k (fence f (receiver p))) as [Hp|Hp]].
    1,2: exists x, h; repeat split; auto; simpl; [apply Sh|]; intros y Hy;
      rewrite (sh_net _ _ _ Sh y Hy), En; apply inbox_below_other; simpl; auto;
      left; intros <-; lia.
    destruct (shadow_packet k f h l1 l2 p j Sh En Hj Hp) as (h1 & h2 & Eh & E1 & E2).
    exists x, (Global (st h) (h1 ++ h2)). repeat split; auto; simpl.
    + eapply reach_step; [exact R|]. now apply step_lose with (2 := Eh).
    + apply Sh.
    + intros y Hy. destruct (node_eq (receiver p) y) as [<-|Ny].
      * rewrite inbox_app, inbox_below_app. now rewrite E1, E2.
      * rewrite <- (inbox_other y h1 p) by auto. rewrite <- Eh, (sh_net _ _ _ Sh y Hy), En.
        apply inbox_below_other. now left.
  - simpl in El. exfalso. assert (L : length (k' :: log f) = length (log f)) by congruence.
    simpl in L. lia.
Qed.

Hypothesis exclusive : forall g, reachable A c init g -> mutual_exclusion g.

(* A node that is inside knows all fences that were granted. *)
Lemma inside_knows f n k : finv f -> phase_of A (nodes f n) = Inside -> In k (log f) -> k <= fence f n.
Proof.
  intros I Hn Hk. destruct (le_lt_dec k (fence f n)) as [|L]; auto. exfalso.
  destruct (fi_known _ I k Hk) as (x & h & R & Hx & Kx & Sh).
  assert (x = n); [|subst; lia].
  apply (exclusive h R x n Hx). now rewrite (sh_st _ _ _ Sh n L).
Qed.

Lemma in_stamp k l p : In p (stamp k l) -> snd p = k.
Proof. unfold stamp. intros H. now apply in_map_iff in H as (q & <- & _). Qed.

Lemma finv_step f f' : finv f -> fstep f f' -> finv f'.
Proof.
  intros I S.
  assert (P : reachable A c init (plain f')).
  { destruct (fstep_plain f f' S) as [S'|E]; [|rewrite E; apply (fi_plain _ I)].
    eapply reach_step; [apply (fi_plain _ I) | exact S']. }
  assert (K : log f' = log f -> forall k, In k (log f') -> remembered f' k).
  { intros El k Hk. rewrite El in Hk. destruct (fi_known _ I k Hk) as (x & h & R & Hx & Kx & Sh).
    now apply (shadow_step k f f' h x). }
  destruct S as [f n s o E | f n s o E | f l1 l2 from n m j s o En Ov E k' | f l1 l2 p Ec En | f n E k'].
  1,2: split; auto; try apply I; simpl; intros p H; apply in_app_or in H as [H|H];
    [rewrite (in_stamp _ _ _ H); apply (fi_fence _ I) | now apply (fi_flight _ I)].
  - assert (Bj : j <= hd 0 (log f))
      by (apply (fi_flight _ I ((from, n, m), j)); rewrite En; apply in_or_app; simpl; auto).
    assert (Bk : k' <= hd 0 (log f)) by (pose proof (fi_fence _ I n); unfold k'; lia).
    split; auto; try apply I; simpl.
    + intros y. unfold set. destruct (node_eq y n); [auto | apply (fi_fence _ I)].
    + intros p H. apply in_app_or in H as [H|H]; [now rewrite (in_stamp _ _ _ H)|].
      apply (fi_flight _ I). rewrite En. apply in_app_or in H as [H|H]; apply in_or_app; simpl; auto.
  - split; auto; try apply I; simpl. intros q H. apply (fi_flight _ I). rewrite En.
    apply in_app_or in H as [H|H]; apply in_or_app; simpl; auto.
  - (* a grant *)
    assert (Top : hd 0 (log f) <= fence f n).
    { destruct (log f) as [|k0 l] eqn:El; simpl; [lia|].
      apply (inside_knows f n k0 I E). rewrite El. now left. }
    assert (Fk : forall y, fence f y < k')
      by (intros y; pose proof (fi_fence _ I y); unfold k'; lia).
    split; auto; simpl.
    + constructor; [apply I|]. apply Forall_forall. intros k Hk.
      pose proof (inside_knows f n k I E Hk). unfold k'. lia.
    + intros y. unfold set. destruct (node_eq y n); auto. specialize (Fk y). lia.
    + intros p H. pose proof (fi_flight _ I p H). unfold k'. lia.
    + intros k [<-|Hk].
      * exists n, (plain f). split; [apply I|]. split; [exact E|].
        split; [simpl; rewrite set_same; auto|]. split; [reflexivity|].
        intros y _. unfold inbox, inbox_below. simpl.
        assert (All : forall l, (forall p, In p l -> snd p < k') ->
          filter (to y) (map fst l) = map fst (filter (below k' y) l)).
        { induction l as [|p l IH]; simpl; intros B; auto. unfold below at 1.
          assert (L : (snd p <? k') = true) by (apply Nat.ltb_lt; auto).
          rewrite L, andb_true_r. destruct (to y (fst p)); simpl; now rewrite IH by auto. }
        apply All. intros p H. pose proof (fi_flight _ I p H). unfold k'. lia.
      * destruct (fi_known _ I k Hk) as (x & h & R & Hx & Kx & Sh).
        assert (Kn : k <= fence f n) by now apply inside_knows.
        exists x, h. repeat split; auto; simpl.
        -- unfold set. destruct (node_eq x n) as [->|]; unfold k'; lia.
        -- intros y Hy. apply (sh_st _ _ _ Sh). unfold set in Hy.
           destruct (node_eq y n) as [->|]; auto. unfold k' in Hy. lia.
        -- intros y Hy. apply (sh_net _ _ _ Sh). unfold set in Hy.
           destruct (node_eq y n) as [->|]; auto. unfold k' in Hy. lia.
Qed.

Theorem fences_rise f : freachable f -> StronglySorted gt (log f).
Proof.
  intros H. apply fi_log. induction H as [f (Hi & Hf & Hs & El) | f f' _ IH S]; [|now apply finv_step with f].
  split; rewrite ?El; simpl; auto.
  - now apply reach_init.
  - constructor.
  - intros n. rewrite Hf. lia.
  - intros p Hp. rewrite (Hs p Hp). lia.
  - intros k [].
Qed.
End Fence.

Arguments log {N A}.
