(* Lodha and Kshemkalyani 2000, "A fair distributed mutual exclusion algorithm", with the four repairs,
   also with [clock-everywhere].  Mutual exclusion for any number of nodes, over channels that preserve
   order.

   LodhaKshemkalyaniPair.v says what is true of any two nodes.  The rest of the invariant: every request
   that is named as satisfied, in a state or in a message, is earlier than each request that is not
   satisfied yet, and each node that is idle has seen its number ([safe]).  So a node that enters goes
   before all others that ask: their requests are later than its own, or behind it in its LRQ
   ([entry_first]).

   Rust: crates/algorithms/src/lodha_kshemkalyani.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Order Channel LodhaKshemkalyaniPair.
Import ListNotations.

Section LodhaKshemkalyani.
Context {N : Nodes} {O : NodeOrder N}.
Variable clock_everywhere : bool.
Variable peers : node -> list node.                 (* all other nodes *)
Hypothesis peers_other : forall n x, In x (peers n) <-> x <> n.
Hypothesis peers_once : forall n, NoDup (peers n).

Definition answered (from : node) (s : state) : state :=
  mk (ph s) (my s) (seen s) (set (rv s) from true) (lrq s) (deferred s) (last s) (done s).
Definition told (s : state) : nat := if clock_everywhere then seen s else 0.

(* CheckExecuteCS *)
Definition is_first (me : node) (s : state) : bool :=
  match lrq s with
  | r :: _ => same_id r (my s, me) && forallb (rv s) (me :: peers me)
  | [] => false
  end.
Definition enter_if_first (me : node) (s : state) : state :=
  match ph s with
  | Waiting =>
      if is_first me s
      then mk Inside (my s) (seen s) (rv s) (lrq s) (deferred s) (last s) (done s) else s
  | _ => s
  end.

(* InvMutEx *)
Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let k := S (seen s) in
      let only_me := set (fun _ => false) me true in
      Some (enter_if_first me (mk Waiting k k only_me [(k, me)] (deferred s) (last s) (done s)),
            map (fun p => (p, Request k (last s))) (peers me))
  | _ => None
  end.
(* FinCS *)
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside =>
      let no := fun _ => false in
      let flush := match lrq s with _ :: r :: _ => [(snd r, Flush (my s) (told s))] | _ => [] end in
      Some (learn (Some (my s, me)) (mk Idle (my s) (seen s) no [] no (Some (my s)) (done s)),
            flush ++ map (fun p => (p, Reply (Some (my s)) (told s))) (filter (deferred s) (peers me)))
  | _ => None
  end.
(* RcvReq 2 and 3 *)
Definition answer (s : state) (from : node) (k : nat) : state * outbox message :=
  match ph s with
  | Idle => (s, [(from, Reply (last s) (told s))])
  | _ =>
      if rv s from
      then (mk (ph s) (my s) (seen s) (rv s) (lrq s) (set (deferred s) from true) (last s) (done s), [])
      else
        let q := if covered (k, from) (done s) then lrq s else insert (k, from) (lrq s) in
        (mk (ph s) (my s) (seen s) (set (rv s) from true) q (deferred s) (last s) (done s), [])
  end.
(* RcvReq, RcvReply, RcvFlush *)
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request k r =>
      let (s', o) := answer (learn (of from r) (see k s)) from k in (enter_if_first me s', o)
  | Reply r h => (enter_if_first me (learn (of from r) (answered from (see h s))), [])
  | Flush r h => (enter_if_first me (learn (of from (Some r)) (see h s)), [])
  end.

Definition lodha_kshemkalyani : algorithm := Algorithm state message do_request do_release do_receive ph.

(* A node that starts inside has the request (0, node), which all have answered. *)
Definition initial (root : node) (held : bool) (me : node) : state :=
  let inside := match first_phase root held me with Inside => true | _ => false end in
  mk (first_phase root held me) 0 0 (fun _ => inside) (if inside then [(0, me)] else [])
     (fun _ => false) None None.

Lemma enter_facts n s0 s : enter_if_first n s0 = s ->
  asks s = asks s0 /\ my s = my s0 /\ seen s = seen s0 /\ rv s = rv s0 /\ lrq s = lrq s0 /\
  deferred s = deferred s0 /\ last s = last s0 /\ done s = done s0 /\
  (ph s = Inside -> ph s0 = Inside \/ is_first n s = true).
Proof.
  intros <-. unfold enter_if_first, asks. destruct (ph s0) eqn:E; rewrite ?E; auto 12.
  destruct (is_first n s0) eqn:F; simpl; rewrite ?E; auto 12.
Qed.

Lemma pair_enter n x y s t q p q' p' : pair x y s t q p q' p' -> pair x y (enter_if_first n s) t q p q' p'.
Proof.
  intros P. destruct (enter_facts n s _ eq_refl) as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8 & _).
  apply (pair_grow _ _ _ _ _ _ _ _ _ P); rewrite ?F3, ?F4, ?F5, ?F6, ?F8; auto.
Qed.

Lemma is_first_spec n s : is_first n s = true ->
  (exists q, lrq s = (my s, n) :: q) /\ forall x, x <> n -> rv s x = true.
Proof.
  unfold is_first. destruct (lrq s) as [|r q]; [discriminate|].
  rewrite andb_true_iff, same_id_spec, forallb_forall. intros [-> H]. split; eauto.
  intros x Nx. apply H. right. now apply peers_other.
Qed.

(* ------------------------------------------------------------------ what a call does *)
Lemma receive_facts n s from m s' o : do_receive n s from m = (s', o) ->
  asks s' = asks s /\ my s' = my s /\ seen s <= seen s' /\ last s' = last s /\
  (forall y, rv s y = true -> rv s' y = true) /\ (sorted (lrq s) -> sorted (lrq s')) /\
  (done s' = done s \/ done s' = of from (names m)) /\
  (ph s' = Inside -> ph s = Inside \/ is_first n s' = true).
Proof.
  assert (V : forall z y, rv s y = true -> set (rv s) z true y = true)
    by (intros z y H; unfold set; destruct (node_eq y z); auto).
  unfold do_receive. destruct m as [k r|r h|r h].
  - destruct (answer _ from k) as [s1 o1] eqn:E. intros [= Es <-].
    apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8 & F9).
    rewrite F1, F2, F3, F4, F5, F7, F8. clear F1 F2 F3 F4 F5 F6 F7 F8.
    pose proof (latest_cases (done s) (of from r)). pose proof (sorted_drop (of from r) (lrq s)).
    unfold answer in E. simpl in E.
    destruct (ph s) eqn:Ep; [|destruct (rv s from); [|destruct (covered _ _)]..]; injection E as <- <-;
      simpl in *; unfold asks; simpl; rewrite ?Ep in *; repeat split; auto using sorted_insert; lia.
  - intros [= Es <-]. apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8 & F9).
    rewrite F1, F2, F3, F4, F5, F7, F8. simpl in *. repeat split; auto using latest_cases, sorted_drop. lia.
  - intros [= Es <-]. apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8 & F9).
    rewrite F1, F2, F3, F4, F5, F7, F8. simpl in *. repeat split; auto using latest_cases, sorted_drop. lia.
Qed.

Lemma receive_sends n s from m s' o : do_receive n s from m = (s', o) ->
  o = [] \/ exists h, o = [(from, Reply (last s) h)] /\ asks s = false /\ exists k r, m = Request k r.
Proof.
  unfold do_receive, answer. destruct m as [k r|r h|r h]; [|now intros [= _ <-]; left..].
  unfold asks. simpl. destruct (ph s); [|destruct (rv s from)..]; intros [= _ <-]; auto. right. eauto 6.
Qed.

(* The other nodes notice nothing. *)
Lemma receive_other n s from m s' o y t q p q' p' : do_receive n s from m = (s', o) -> y <> from ->
  pair n y s t q p q' p' -> pair n y s' t q p q' p'.
Proof.
  unfold do_receive. intros E Ny P. destruct m as [k r|r h|r h].
  - apply (pair_learn _ _ _ _ _ _ _ _ (of from r) k) in P. revert P E.
    generalize (learn (of from r) (see k s)) as s1. intros s1 P E. unfold answer in E.
    destruct (ph s1) eqn:Ep; [|destruct (rv s1 from)..]; injection E as <- _; apply pair_enter; auto;
      apply (pair_grow _ _ _ _ _ _ _ _ _ P); simpl; auto; unfold asks; simpl; rewrite ?Ep, ?set_other; auto;
      intros e H; destruct (covered _ _); auto; left; apply in_insert; auto.
  - injection E as <- _. apply pair_enter.
    apply (pair_grow _ _ _ _ _ _ _ _ _ (pair_learn _ _ _ _ _ _ _ _ (of from r) h P)); simpl; auto. now rewrite set_other.
  - injection E as <- _. apply pair_enter. now apply pair_learn.
Qed.

Lemma receive_request n s from k r s' o t q p q' : do_receive n s from (Request k r) = (s', o) ->
  pair n from s t q p (q' ++ [k]) 0 -> pair n from s' t q (length o + p) q' 0.
Proof.
  unfold do_receive. intros E P. apply (pair_learn _ _ _ _ _ _ _ _ (of from r) k) in P.
  assert (K : k <= seen (learn (of from r) (see k s))) by (simpl; lia).
  revert P E K. generalize (learn (of from r) (see k s)) as s1. intros s1 P E K. unfold answer in E.
  assert (A : asks s1 = match ph s1 with Idle => false | _ => true end) by reflexivity.
  destruct (ph s1) eqn:Ep; [|destruct (rv s1 from) eqn:Er..]; injection E as <- <-; apply pair_enter; simpl.
  - now apply (pair_reply _ _ _ _ _ _ _ k).
  - apply (pair_defer _ _ s1 _ _ _ _ _ k P); simpl; auto using set_same.
  - apply (pair_cross _ _ s1 _ _ _ _ _ k P); simpl; auto using set_same.
    destruct (covered _ _) eqn:Ec; auto. left. apply in_insert. auto.
  - apply (pair_defer _ _ s1 _ _ _ _ _ k P); simpl; auto using set_same.
  - apply (pair_cross _ _ s1 _ _ _ _ _ k P); simpl; auto using set_same.
    destruct (covered _ _) eqn:Ec; auto. left. apply in_insert. auto.
Qed.

Lemma receive_reply n s from r h s' o t q p q' p' : do_receive n s from (Reply r h) = (s', o) ->
  pair n from s t q p q' (S p') -> pair n from s' t q p q' p'.
Proof.
  intros [= <- _] P. apply pair_enter. apply (pair_learn _ _ _ _ _ _ _ _ (of from r) h) in P.
  apply (pair_answered _ _ _ _ _ _ _ _ _ P); simpl; auto using set_same.
Qed.

Lemma receive_flush n s from r h s' o y t q p q' p' : do_receive n s from (Flush r h) = (s', o) ->
  pair n y s t q p q' p' -> pair n y s' t q p q' p'.
Proof. intros [= <- _] P. apply pair_enter. now apply pair_learn. Qed.

(* ------------------------------------------------------------------ channels *)
Notation packets := (list (packet lodha_kshemkalyani)).
Notation chan := (@chan N lodha_kshemkalyani).

Definition linked (f : node -> state) (l : packets) (x y : node) : Prop :=
  pair x y (f x) (f y) (reqs (chan l x y)) (reps (chan l x y)) (reqs (chan l y x)) (reps (chan l y x)).
(* All requests up to [r] are satisfied, and later ones get later numbers. *)
Definition safe (f : node -> state) (r : request_id) : Prop :=
  forall y, if asks (f y) then earlier r (my (f y), y) = true else fst r <= seen (f y).

Record inv (f : node -> state) (l : packets) : Prop := {
  i_pair : forall x y, x <> y -> linked f l x y;
  i_order : forall x y, ordered (chan l x y);
  i_self : forall x, reqs (chan l x x) = [] /\ reps (chan l x x) = 0;
  i_my : forall x, my (f x) <= seen (f x);
  i_inside : forall x y, ph (f x) = Inside -> y <> x -> rv (f x) y = true;
  i_first : forall x y, y <> x -> ph (f x) = Inside -> asks (f y) = true ->
    earlier (my (f x), x) (my (f y), y) = true;
  i_sorted : forall x, sorted (lrq (f x));
  i_last : forall x k, last (f x) = Some k -> safe f (k, x);
  i_done : forall x r, done (f x) = Some r -> safe f r;
  i_named : forall x y m k, In m (chan l x y) -> names m = Some k -> safe f (k, x) }.

Lemma linked_step f l l' n s :
  (forall x y, x <> y -> linked f l x y) ->
  (forall y, y <> n -> pair n y s (f y) (reqs (chan l' n y)) (reps (chan l' n y))
                                        (reqs (chan l' y n)) (reps (chan l' y n))) ->
  (forall x y, x <> n -> y <> n -> chan l' x y = chan l x y) ->
  forall x y, x <> y -> linked (set f n s) l' x y.
Proof.
  intros H1 H2 H3 x y Nxy. unfold linked, set.
  destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; [congruence|..].
  - now apply H2.
  - now apply pair_sym, H2.
  - rewrite !H3 by auto. now apply H1.
Qed.

(* A node that enters goes before all others. *)
Lemma entry_first f l n y : (forall x y, x <> y -> linked f l x y) -> sorted (lrq (f n)) ->
  (forall r, done (f n) = Some r -> safe f r) -> is_first n (f n) = true -> asks (f n) = true ->
  y <> n -> asks (f y) = true -> earlier (my (f n), n) (my (f y), y) = true.
Proof.
  intros L So Dn Fi An Ny Ay. apply is_first_spec in Fi as [(q & Eq) Rv].
  destruct (L n y ltac:(auto)) as (A & _). destruct (h_known _ _ _ _ _ _ _ A An (Rv y Ny) Ay) as [H|[H|H]]; auto.
  - rewrite Eq in *. destruct H as [H|H]; [congruence|]. destruct So as [So _].
    apply earlier_total; simpl; auto. now apply So.
  - exfalso. unfold covered in H. destruct (done (f n)) as [r|] eqn:E; [|discriminate].
    specialize (Dn r eq_refl y). rewrite Ay in Dn. rewrite Dn in H. discriminate.
Qed.

Lemma step_request_inv f l n s o : inv f l -> do_request n (f n) = Some (s, o) ->
  inv (set f n s) (post (A:=lodha_kshemkalyani) n o ++ l).
Proof.
  intros I E. unfold do_request in E. destruct (ph (f n)) eqn:Ep; try discriminate.
  set (k := S (seen (f n))) in *. set (m := Request k (last (f n))) in *. injection E as Es <-.
  apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8 & F9). simpl in F2, F3, F4, F5, F6, F7, F8, F9.
  change (asks s = true) in F1.
  assert (Id : asks (f n) = false) by (unfold asks; now rewrite Ep).
  set (l' := post (A:=lodha_kshemkalyani) n (map (fun p => (p, m)) (peers n)) ++ l).
  assert (Ch : forall x y, chan l' x y
    = if node_eq n x then if node_eq y n then chan l x y else m :: chan l x y else chan l x y).
  { intros x y. unfold l'. rewrite chan_app, (chan_post_each (A:=lodha_kshemkalyani)) by auto.
    destruct (node_eq n x); auto. destruct (in_dec node_eq y (peers n)) as [P|P], (node_eq y n) as [->|Ny]; auto.
    - apply peers_other in P. congruence.
    - exfalso. apply P. now apply peers_other. }
  assert (Li : forall x y, x <> y -> linked (set f n s) l' x y).
  { apply linked_step with l; [apply (i_pair _ _ I)| |].
    - intros y Ny. rewrite !Ch. destruct (node_eq n n), (node_eq y n), (node_eq n y); try congruence. simpl.
      rewrite <- F2. apply (pair_request _ _ (f n)); auto; try congruence; [now apply (i_pair _ _ I)|].
      rewrite F4, set_other; auto.
    - intros x y Nx Ny. rewrite Ch. destruct (node_eq n x); congruence. }
  assert (Sf : forall r, safe f r -> safe (set f n s) r).
  { intros r H y. specialize (H y). unfold set. destruct (node_eq y n) as [->|]; auto.
    rewrite Id in H. rewrite F1, F2. apply earlier_spec. simpl. unfold k. lia. }
  assert (Dn : forall x r, done (set f n s x) = Some r -> safe (set f n s) r).
  { intros x r. unfold set at 1. destruct (node_eq x n) as [->|]; rewrite ?F8; intros H; apply Sf; eapply (i_done _ _ I); eauto. }
  assert (So : forall x, sorted (lrq (set f n s x))).
  { intros x. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_sorted _ _ I)]. rewrite F5. simpl. tauto. }
  assert (In_ : ph s = Inside -> is_first n s = true) by (intros H; destruct (F9 H); [discriminate | auto]).
  split; auto.
  - intros x y. rewrite Ch. pose proof (i_order _ _ I x y). destruct (node_eq n x), (node_eq y n); simpl; auto.
  - intros x. rewrite Ch. destruct (node_eq n x) as [<-|]; [destruct (node_eq n n); [|congruence]|]; apply (i_self _ _ I).
  - intros x. unfold set. destruct (node_eq x n); [lia | apply (i_my _ _ I)].
  - intros x y. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_inside _ _ I)].
    intros H. now apply is_first_spec, In_.
  - intros x y Nxy Hx Hy. destruct (node_eq x n) as [->|Nx].
    + eapply entry_first; eauto; rewrite ?set_same in *; auto.
    + rewrite (set_other _ _ _ x) in * by auto. unfold set in *. destruct (node_eq y n) as [->|Ny]; [|now apply (i_first _ _ I)].
      rewrite F2. apply earlier_number. unfold k. apply le_n_S.
      apply (pair_later _ _ _ _ _ _ _ _ (i_pair _ _ I x n Nx)); auto. apply need_rv. now apply (i_inside _ _ I).
  - intros x j. unfold set at 1. destruct (node_eq x n) as [->|]; rewrite ?F7; intros H; apply Sf, (i_last _ _ I); auto.
  - intros x y m' j H Hm. apply Sf. rewrite Ch in H.
    destruct (node_eq n x) as [<-|]; [destruct (node_eq y n)|]; try (eapply (i_named _ _ I); eauto; fail).
    destruct H as [<-|H]; [now apply (i_last _ _ I) | eapply (i_named _ _ I); eauto].
Qed.

Lemma step_release_inv f l n s o : inv f l -> do_release n (f n) = Some (s, o) ->
  inv (set f n s) (post (A:=lodha_kshemkalyani) n o ++ l).
Proof.
  intros I E. unfold do_release in E. destruct (ph (f n)) eqn:Ep; try discriminate.
  set (fl := match lrq (f n) with _ :: r :: _ => _ | _ => [] end) in *.
  set (m := Reply (Some (my (f n))) (told (f n))) in *. injection E as <- <-.
  set (s := learn _ _).
  assert (As : asks (f n) = true) by now apply inside_asks.
  assert (Rv : forall y, y <> n -> rv (f n) y = true) by (intros y; now apply (i_inside _ _ I)).
  (* a FLUSH is neither a REQUEST nor a REPLY *)
  assert (Fl : forall x y, exists a, chan (post (A:=lodha_kshemkalyani) n fl) x y = a /\ reqs a = [] /\ reps a = 0 /\
    (forall c, ordered c -> ordered (a ++ c)) /\ (x <> n -> a = []) /\
    forall m', In m' a -> names m' = Some (my (f n))).
  { intros x y. eexists. split; [reflexivity|]. unfold fl. destruct (lrq (f n)) as [|? [|r ?]]; [simpl; intuition..|].
    rewrite (chan_post_one (A:=lodha_kshemkalyani)).
    destruct (node_eq n x), (node_eq (snd r) y); simpl; intuition; try congruence. now subst. }
  set (l' := post (A:=lodha_kshemkalyani) n (fl ++ map (fun p => (p, m)) (filter (deferred (f n)) (peers n))) ++ l).
  assert (Ch : forall x y, chan l' x y = chan (post (A:=lodha_kshemkalyani) n fl) x y ++
    (if node_eq n x then if node_eq y n then [] else if deferred (f n) y then [m] else [] else []) ++ chan l x y).
  { intros x y. unfold l'. rewrite (post_app (A:=lodha_kshemkalyani)), !chan_app, <- app_assoc. f_equal. f_equal.
    rewrite (chan_post_each (A:=lodha_kshemkalyani)) by apply NoDup_filter, peers_once. destruct (node_eq n x); auto.
    destruct (in_dec node_eq y _) as [P|P], (node_eq y n) as [->|Ny]; auto.
    - apply filter_In in P as [P _]. apply peers_other in P. congruence.
    - apply filter_In in P as [_ P]. now rewrite P.
    - destruct (deferred (f n) y) eqn:D; auto. exfalso. apply P, filter_In. split; auto. now apply peers_other. }
  assert (Ow : forall y, y <> n -> deferred (f n) y = true -> reqs (chan l n y) = []).
  { intros y Ny D. destruct (i_pair _ _ I n y ltac:(auto)) as (A & B & C).
    assert (Eo : owed (f n) y = 1) by (unfold owed; now rewrite D).
    pose proof (need_rv _ _ (Rv y Ny)) as Z. pose proof (need_le (f y) n) as L.
    apply length_zero_iff_nil. lia. }
  assert (Li : forall x y, x <> y -> linked (set f n s) l' x y).
  { apply linked_step with l; [apply (i_pair _ _ I)| |].
    - intros y Ny. rewrite !Ch, !reqs_app, !reps_app. destruct (Fl n y) as (a & -> & -> & -> & _).
      destruct (Fl y n) as (b & -> & -> & -> & _).
      pose proof (pair_release _ _ _ s _ _ _ _ _ (i_pair _ _ I n y ltac:(auto)) (Rv y Ny)
        eq_refl eq_refl eq_refl eq_refl) as P.
      destruct (node_eq n n), (node_eq y n), (node_eq n y); try congruence. simpl.
      unfold owed in P. destruct (deferred (f n) y); simpl in *; rewrite ?Nat.add_0_r, ?Nat.add_1_r in P; auto.
    - intros x y Nx Ny. rewrite Ch. destruct (Fl x y) as (a & -> & _ & _ & _ & -> & _); auto.
      destruct (node_eq n x); [congruence | auto]. }
  assert (Sf : forall r, safe f r -> safe (set f n s) r).
  { intros r H y. specialize (H y). unfold set. destruct (node_eq y n) as [->|]; auto.
    rewrite As in H. simpl. apply earlier_spec in H. simpl in H. pose proof (i_my _ _ I n). lia. }
  assert (Me : safe (set f n s) (my (f n), n)).
  { intros y. unfold set. destruct (node_eq y n) as [->|Ny]; [simpl; apply (i_my _ _ I)|].
    destruct (asks (f y)) eqn:Ay; [now apply (i_first _ _ I)|]. simpl.
    apply (pair_later _ _ _ _ _ _ _ _ (i_pair _ _ I n y ltac:(auto))); auto using need_rv. }
  split; auto.
  - intros x y. rewrite Ch. destruct (Fl x y) as (a & -> & _ & _ & Oa & _). apply Oa.
    pose proof (i_order _ _ I x y). destruct (node_eq n x) as [<-|]; auto. destruct (node_eq y n); auto.
    destruct (deferred (f n) y) eqn:D; simpl; auto.
  - intros x. rewrite Ch, !reqs_app, !reps_app. destruct (Fl x x) as (a & -> & -> & -> & _).
    destruct (i_self _ _ I x) as [-> ->]. destruct (node_eq n x) as [<-|]; auto. destruct (node_eq n n); [auto | congruence].
  - intros x. unfold set. destruct (node_eq x n) as [->|]; simpl; apply (i_my _ _ I).
  - intros x y. unfold set. destruct (node_eq x n); [discriminate | apply (i_inside _ _ I)].
  - intros x y Nxy. unfold set. destruct (node_eq x n); [discriminate|].
    destruct (node_eq y n); [discriminate | now apply (i_first _ _ I)].
  - intros x. unfold set. destruct (node_eq x n); [simpl; auto | apply (i_sorted _ _ I)].
  - intros x k. unfold set at 1. destruct (node_eq x n) as [->|]; [simpl; now intros [= <-]|].
    intros H. now apply Sf, (i_last _ _ I).
  - intros x r. unfold set at 1. destruct (node_eq x n) as [->|]; [|intros H; apply Sf; eapply (i_done _ _ I); eauto].
    change (done s) with (latest (done (f n)) (Some (my (f n), n))).
    destruct (latest_cases (done (f n)) (Some (my (f n), n))) as [-> | ->]; [|now intros [= <-]].
    intros H. apply Sf. eapply (i_done _ _ I); eauto.
  - intros x y m' k H Hm. rewrite Ch in H. apply in_app_or in H as [H|H].
    + destruct (Fl x y) as (a & Ea & _ & _ & _ & Na & Nm). rewrite Ea in H. destruct (node_eq x n) as [->|Nx].
      * rewrite (Nm _ H) in Hm. now injection Hm as <-.
      * now rewrite (Na Nx) in H.
    + apply in_app_or in H as [H|H]; [|apply Sf; eapply (i_named _ _ I); eauto].
      destruct (node_eq n x) as [<-|]; [|destruct H]. destruct (node_eq y n); [destruct H|].
      destruct (deferred (f n) y); [|destruct H]. destruct H as [<-|[]]. simpl in Hm. now injection Hm as <-.
Qed.

Lemma step_deliver_inv f l l1 l2 from n m s o : inv f l ->
  l = l1 ++ (from, n, m) :: l2 -> (forall m', ~ In (from, n, m') l2) -> do_receive n (f n) from m = (s, o) ->
  inv (set f n s) (post (A:=lodha_kshemkalyani) n o ++ l1 ++ l2).
Proof.
  intros I En Ff E.
  assert (Cd : forall x y, chan l x y =
    chan (l1 ++ l2) x y ++ (if node_eq from x then if node_eq n y then [m] else [] else []))
    by (intros x y; rewrite En; now apply chan_deliver).
  assert (Cm : chan l from n = chan (l1 ++ l2) from n ++ [m])
    by (rewrite Cd; destruct (node_eq from from), (node_eq n n); congruence).
  assert (Co : forall x y, x <> from \/ y <> n -> chan l x y = chan (l1 ++ l2) x y).
  { intros x y H. rewrite Cd. destruct (node_eq from x), (node_eq n y); try apply app_nil_r. intuition congruence. }
  assert (Sub : forall x y k, In k (chan (l1 ++ l2) x y) -> In k (chan l x y))
    by (intros x y k H; rewrite Cd; apply in_or_app; auto).
  assert (Hin : In m (chan l from n)) by (rewrite Cm; apply in_or_app; simpl; auto).
  assert (Or : forall x y, ordered (chan (l1 ++ l2) x y)).
  { intros x y. pose proof (i_order _ _ I x y) as Or. rewrite Cd in Or.
    destruct (node_eq from x), (node_eq n y); rewrite ?app_nil_r in Or; auto. now apply ordered_last in Or. }
  pose proof (receive_facts _ _ _ _ _ _ E) as (F1 & F2 & F3 & F4 & F5 & F6 & F7 & F8).
  set (l' := post (A:=lodha_kshemkalyani) n o ++ l1 ++ l2).
  (* a REQUEST or a REPLY comes from another node *)
  assert (Nf : from = n -> reqs [m] = [] /\ reps [m] = 0).
  { intros ->. destruct (i_self _ _ I n) as [H1 H2]. rewrite Cm, reqs_app in H1. rewrite Cm, reps_app in H2.
    apply app_eq_nil in H1. split; [tauto | lia]. }
  (* what is sent *)
  assert (So : o = [] \/ exists h, o = [(from, Reply (last (f n)) h)] /\ asks (f n) = false /\ from <> n /\
    exists k r, m = Request k r).
  { destruct (receive_sends _ _ _ _ _ _ E) as [H|(h & H1 & H2 & k & r & H3)]; auto. right. exists h.
    repeat split; eauto. intros X. apply Nf in X as [X _]. rewrite H3 in X. discriminate. }
  assert (Cn : forall x y, x <> n \/ y <> from \/ o = [] -> chan l' x y = chan (l1 ++ l2) x y).
  { intros x y H. unfold l'. rewrite chan_app. destruct So as [->|(h & -> & _)]; auto.
    rewrite (chan_post_one (A:=lodha_kshemkalyani)).
    destruct (node_eq n x), (node_eq from y); auto. intuition congruence. }
  assert (Li : forall x y, x <> y -> linked (set f n s) l' x y).
  { apply linked_step with l; [apply (i_pair _ _ I)| |].
    - intros y Ny. pose proof (i_pair _ _ I n y ltac:(auto)) as P. unfold linked in P.
      destruct (node_eq y from) as [->|Nf'].
      + rewrite (Cn from n) by auto. rewrite (Co n from) in P by auto. rewrite Cm, reqs_app, reps_app in P.
        destruct m as [k r|r h|r h]; cbn [reqs reps] in P; rewrite ?app_nil_r, ?Nat.add_0_r, ?Nat.add_1_r in P.
        * assert (Z : reps (chan (l1 ++ l2) from n) = 0).
          { pose proof (i_order _ _ I from n) as X. rewrite Cm in X. apply ordered_last in X as [_ X]. now apply X. }
          rewrite Z in P |- *. apply (receive_request _ _ _ _ _ _ _ _ _ _ _ E) in P.
          destruct So as [->|(h & -> & _)]; [rewrite (Cn n from); auto|].
          unfold l'. rewrite chan_app, (chan_post_one (A:=lodha_kshemkalyani)).
          destruct (node_eq n n), (node_eq from from); try congruence. exact P.
        * destruct So as [->|(h' & _ & _ & _ & k & r' & [=])]. rewrite (Cn n from) by auto.
          now apply (receive_reply _ _ _ _ _ _ _ _ _ _ _ _ E).
        * destruct So as [->|(h' & _ & _ & _ & k & r' & [=])]. rewrite (Cn n from) by auto.
          now apply (receive_flush _ _ _ _ _ _ _ _ _ _ _ _ _ E).
      + rewrite !Cn by auto. rewrite !Co in P by auto. now apply (receive_other _ _ _ _ _ _ _ _ _ _ _ _ E).
    - intros x y Nx Ny. rewrite Cn by auto. rewrite Co; auto. }
  assert (Sf : forall r, safe f r -> safe (set f n s) r).
  { intros r H y. specialize (H y). unfold set. destruct (node_eq y n) as [->|]; auto.
    rewrite F1, F2. destruct (asks (f n)); auto. lia. }
  assert (Dn : forall x r, done (set f n s x) = Some r -> safe (set f n s) r).
  { intros x r. unfold set at 1. destruct (node_eq x n) as [->|]; [|intros H; apply Sf; eapply (i_done _ _ I); eauto].
    destruct F7 as [-> | ->]; intros H; apply Sf; [eapply (i_done _ _ I); eauto|].
    unfold of in H. destruct (names m) as [k|] eqn:Em; [|discriminate]. injection H as <-.
    eapply (i_named _ _ I); eauto. }
  assert (Srt : forall x, sorted (lrq (set f n s x))).
  { intros x. unfold set. destruct (node_eq x n) as [->|]; [apply F6|]; apply (i_sorted _ _ I). }
  assert (As : forall x, asks (set f n s x) = asks (f x)) by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  assert (My : forall x, my (set f n s x) = my (f x)) by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  split; auto.
  - intros x y. unfold l'. rewrite chan_app. destruct So as [->|(h & -> & Ai & Nfn & k & r & ->)]; [apply Or|].
    rewrite (chan_post_one (A:=lodha_kshemkalyani)).
    destruct (node_eq n x) as [<-|]; [destruct (node_eq from y) as [<-|]|]; try apply Or. simpl. split; [|apply Or].
    destruct (i_pair _ _ I n from ltac:(auto)) as (_ & _ & C).
    rewrite Cm, reqs_app, app_length, (Co n from) in C by auto. simpl in C.
    pose proof (need_idle _ from Ai). pose proof (need_le (f from) n). apply length_zero_iff_nil. lia.
  - intros x. assert (X : chan l' x x = chan (l1 ++ l2) x x).
    { destruct So as [->|(h & _ & _ & Nfn & _)]; apply Cn; auto.
      destruct (node_eq x n) as [->|]; auto. }
    rewrite X. destruct (i_self _ _ I x) as [H1 H2]. rewrite Cd, reqs_app in H1. rewrite Cd, reps_app in H2.
    apply app_eq_nil in H1. split; [tauto | lia].
  - intros x. rewrite My. pose proof (i_my _ _ I x). unfold set. destruct (node_eq x n) as [->|]; lia.
  - intros x y. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_inside _ _ I)]. intros H Ny.
    destruct (F8 H) as [H'|H']; [now apply F5, (i_inside _ _ I) | now apply is_first_spec in H' as [_ H']; apply H'].
  - intros x y Nxy Hx Hy. destruct (node_eq x n) as [->|Nx].
    + rewrite set_same in Hx. destruct (F8 Hx) as [H|H].
      * rewrite !My. rewrite As in Hy. now apply (i_first _ _ I).
      * eapply entry_first; eauto; rewrite ?set_same; auto. now apply inside_asks.
    + rewrite !My. rewrite As in Hy. rewrite set_other in Hx by auto. now apply (i_first _ _ I).
  - intros x k. unfold set at 1. destruct (node_eq x n) as [->|]; rewrite ?F4; intros H; apply Sf, (i_last _ _ I); auto.
  - intros x y m' k H Hm. apply Sf. unfold l' in H. rewrite chan_app in H. apply in_app_or in H as [H|H];
      [|eapply (i_named _ _ I); eauto]. destruct So as [->|(h & -> & _)]; [destruct H|].
    rewrite (chan_post_one (A:=lodha_kshemkalyani)) in H.
    destruct (node_eq n x) as [<-|]; [|destruct H]. destruct (node_eq from y); [|destruct H].
    destruct H as [<-|[]]. now apply (i_last _ _ I).
Qed.

Theorem lodha_kshemkalyani_mutual_exclusion root held g :
  reachable lodha_kshemkalyani Fifo (begins (A:=lodha_kshemkalyani) (initial root held)) g -> mutual_exclusion g.
Proof.
  intros R. assert (I : inv (st g) (net g)).
  { revert g R. apply (invariant_holds _ _ _ (fun g : global lodha_kshemkalyani => inv (st g) (net g))).
    - intros g [-> ->]. assert (Ai : forall x, asks (initial root held x) = true -> x = root).
      { intros x. unfold asks, initial, first_phase. simpl. destruct (node_eq x root); congruence. }
      assert (Rv : forall x y, asks (initial root held x) = true -> rv (initial root held x) y = true).
      { intros x y. unfold asks, initial, first_phase. simpl. destruct (node_eq x root), held; congruence. }
      assert (Nd : forall x y, need (initial root held x) y = 0).
      { intros x y. unfold need. destruct (asks _) eqn:Ea; auto. now rewrite Rv. }
      assert (H : forall x y, x <> y -> half x y (initial root held x) (initial root held y) [] 0 []).
      { intros x y Nxy. split; simpl; auto; try lia; try discriminate.
        - unfold owed. simpl. lia.
        - intros A _ B. apply Ai in A. apply Ai in B. congruence. }
      split; simpl; auto; try discriminate; try tauto.
      + intros x y Nxy. split; [now apply H | split; [apply H; auto|]].
        change (need (initial root held x) y + need (initial root held y) x = 0). now rewrite !Nd.
      + intros x y Hx _. apply (Rv x y). now apply (inside_asks (initial root held x)).
      + intros x y Nxy Hx Hy. apply (inside_asks (initial root held x)), Ai in Hx. apply Ai in Hy. congruence.
      + intros x. destruct (first_phase root held x); simpl; tauto.
    - intros g g' I S. destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En Ov E | g l1 l2 p Ec _].
      + now apply step_request_inv.
      + now apply step_release_inv.
      + eapply step_deliver_inv; eauto.
      + discriminate. }
  intros x y Hx Hy. destruct (node_eq x y) as [|Nxy]; auto. exfalso. simpl in Hx, Hy.
  apply (earlier_asym (my (st g x), x) (my (st g y), y)); apply (i_first _ _ I); auto using inside_asks.
Qed.
End LodhaKshemkalyani.
