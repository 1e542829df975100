(* Carvalho, Roucairol 1983, "On mutual exclusion in computer networks", also with the initial state
   of Singhal 1992.  Mutual exclusion for any number of nodes.

   A permission is kept until its giver asks for it.  The invariant is about each pair of nodes x, y.
   There is at most one permission between them: x has that of y, or y has that of x, or a REPLY is
   in flight ([i_one]).  Requests are accounted for as in RicartAgrawala.v ([i_count]).  What keeps a
   second permission from being given is the order of requests: while a REPLY of x to y is in
   flight, x has seen the number of y, and a request of x comes after it ([i_reply]); so y defers.

   Rust: crates/algorithms/src/carvalho_roucairol.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Count Order.
Import ListNotations.

Section CarvalhoRoucairol.
Context {N : Nodes} {O : NodeOrder N}.
Variable peers : node -> list node.                 (* all other nodes *)
Hypothesis peers_other : forall n x, In x (peers n) <-> x <> n.
Hypothesis peers_once : forall n, NoDup (peers n).

Inductive message := Request (number : nat) | Reply.
Record state := mk {
  ph : phase;
  my : nat;
  seen : nat;
  missing : node -> bool;                           (* whose permission this node does not have *)
  deferred : node -> bool }.

Definition none : node -> bool := fun _ => false.
Definition is_empty (me : node) (a : node -> bool) : bool := negb (existsb a (peers me)).
Definition enter_if_none_missing (me : node) (s : state) : state :=
  if is_empty me (missing s) then mk Inside (my s) (seen s) (missing s) (deferred s) else s.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let k := S (seen s) in
      Some (enter_if_none_missing me (mk Waiting k k (missing s) (deferred s)),
            map (fun p => (p, Request k)) (filter (missing s) (peers me)))
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => Some (mk Idle (my s) (seen s) (fun x => missing s x || deferred s x) none,
                    map (fun p => (p, Reply)) (filter (deferred s) (peers me)))
  | _ => None
  end.
Definition goes_first (me : node) (s : state) (k : nat) (from : node) : bool :=
  match ph s with Inside => true | Waiting => earlier (my s, me) (k, from) | Idle => false end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request k =>
      let h := max (seen s) k in
      if goes_first me s k from
      then (mk (ph s) (my s) h (missing s) (set (deferred s) from true), [])
      else (mk (ph s) (my s) h (set (missing s) from true) (deferred s),
            (from, Reply) ::
            match ph s with Waiting => if missing s from then [] else [(from, Request (my s))] | _ => [] end)
  | Reply =>
      match ph s with
      | Waiting => (enter_if_none_missing me (mk Waiting (my s) (seen s) (set (missing s) from false) (deferred s)), [])
      | _ => (s, [])
      end
  end.

Definition carvalho_roucairol : algorithm := Algorithm state message do_request do_release do_receive ph.

(* [has x y]: [x] starts with the permission of [y].  A node that starts inside has all. *)
Definition initial (has : node -> node -> bool) (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) 0 0
     (fun x => if node_eq x me then false
               else if held && (if node_eq me root then true else false) then false
               else if held && (if node_eq x root then true else false) then true
               else negb (has me x)) none.

(* ------------------------------------------------------------------ the invariant *)
Definition w_req (m : message) : nat := match m with Request _ => 1 | Reply => 0 end.
Definition w_rep (m : message) : nat := match m with Request _ => 0 | Reply => 1 end.
Notation counts := (count (A:=carvalho_roucairol)).
Notation reqs := (counts w_req).
Notation reps := (counts w_rep).
Notation posts := (post (A:=carvalho_roucairol)).

Definition b (x : bool) : nat := if x then 1 else 0.
Definition misses (s : state) (y : node) : nat := match ph s with Waiting => b (missing s y) | _ => 0 end.
Definition asking (s : state) : Prop := ph s <> Idle.
Definition yields (f : node -> state) (x y : node) : Prop :=
  my (f x) <= seen (f y) /\ (asking (f y) -> earlier (my (f x), x) (my (f y), y) = true).

Record inv (g : global carvalho_roucairol) : Prop := {
  i_count : forall x y, reqs (net g) x y + b (deferred (st g y) x) + reps (net g) y x <= misses (st g x) y;
  i_one : forall x y, x <> y ->
    b (negb (missing (st g x) y)) + b (negb (missing (st g y) x)) + reps (net g) x y + reps (net g) y x <= 1;
  i_number : forall x y k, In (x, y, Request k) (net g) -> k = my (st g x);
  i_deferred : forall x y, deferred (st g y) x = true -> my (st g x) <= seen (st g y);
  i_reply : forall x y, In (y, x, Reply) (net g) -> yields (st g) x y;
  i_self : forall x, missing (st g x) x = false;
  i_inside : forall x y, ph (st g x) = Inside -> missing (st g x) y = false }.

Lemma is_empty_spec n a : a n = false -> is_empty n a = true -> forall x, a x = false.
Proof.
  unfold is_empty. intros Hn H x. apply negb_true_iff in H. destruct (node_eq x n) as [->|Nx]; auto.
  destruct (a x) eqn:E; auto. exfalso. rewrite <- not_true_iff_false, existsb_exists in H.
  apply H. exists x. now rewrite peers_other.
Qed.

Lemma yields_grow (f f' : node -> state) x y :
  my (f' x) = my (f x) -> my (f' y) = my (f y) \/ seen (f y) < my (f' y) -> seen (f y) <= seen (f' y) ->
  (asking (f' y) -> asking (f y) \/ seen (f y) < my (f' y)) ->
  yields f x y -> yields f' x y.
Proof.
  intros Ex Ey Es Ea [H1 H2]. split; [rewrite Ex; lia|]. intros A. rewrite Ex.
  destruct (Ea A) as [A'|A']; [destruct Ey as [Ey|Ey]; [rewrite Ey; auto|]|]; apply earlier_number; lia.
Qed.

Lemma posts_each w n (m : message) l u v : NoDup l ->
  counts w (posts n (map (fun p => (p, m)) l)) u v
  = if node_eq u n then if in_dec node_eq v l then w m else 0 else 0.
Proof.
  intros Nd. destruct (node_eq u n) as [->|Nu];
    [exact (count_post_each (A:=carvalho_roucairol) w n m l v Nd) | now apply count_post_other].
Qed.

Lemma in_posts n (m : message) l p :
  In p (posts n (map (fun q => (q, m)) l)) -> exists q, In q l /\ p = (n, q, m).
Proof.
  unfold post. rewrite map_map. intros H. apply in_map_iff in H as (q & <- & H). now exists q.
Qed.

Lemma in_chosen n a x : In x (filter a (peers n)) <-> x <> n /\ a x = true.
Proof. now rewrite filter_In, peers_other. Qed.

Ltac dec_in := repeat match goal with
  | |- context [in_dec node_eq ?u ?l] =>
      let Mem := fresh "Mem" in destruct (in_dec node_eq u l) as [Mem|Mem]; rewrite in_chosen in Mem
  end.

Lemma step_request_inv g n s o :
  inv g -> do_request n (st g n) = Some (s, o) ->
  inv (Global (A:=carvalho_roucairol) (set (st g) n s) (posts n o ++ net g)).
Proof.
  intros I E. unfold do_request in E. destruct (ph (st g n)) eqn:Ep; try discriminate.
  set (k := S (seen (st g n))) in *. injection E as Es <-.
  assert (F : my s = k /\ seen s = k /\ missing s = missing (st g n) /\ deferred s = deferred (st g n) /\
              ph s <> Idle /\ (ph s = Inside -> is_empty n (missing (st g n)) = true)).
  { subst s. unfold enter_if_none_missing. simpl. destruct (is_empty n _); simpl; repeat split; congruence. }
  destruct F as (F1 & F2 & F3 & F4 & F5 & F6). clear Es.
  assert (Nd : NoDup (filter (missing (st g n)) (peers n))) by apply NoDup_filter, peers_once.
  assert (Z : forall y, reqs (net g) n y = 0 /\ deferred (st g y) n = false /\ reps (net g) y n = 0).
  { intros y. pose proof (i_count _ I n y) as C. unfold misses in C. rewrite Ep in C.
    destruct (deferred (st g y) n); simpl in C; repeat split; lia. }
  pose proof (i_self _ I n) as An.
  assert (Wt : forall y, misses s y = b (missing (st g n) y)).
  { intros y. unfold misses. rewrite F3. destruct (ph s) eqn:E; try congruence.
    now rewrite (is_empty_spec n _ An (F6 eq_refl)). }
  assert (Ms : forall x y, missing (set (st g) n s x) y = missing (st g x) y)
    by (intros x y; unfold set; destruct (node_eq x n) as [->|]; congruence).
  assert (Y : forall x, x <> n -> yields (st g) x n -> yields (set (st g) n s) x n).
  { intros x Nx. apply yields_grow; rewrite ?set_same, ?(set_other _ _ _ x) by auto; rewrite ?F1, ?F2; auto;
      unfold k; lia || (right; lia). }
  split; simpl.
  - intros x y. rewrite !count_app, !posts_each by auto. unfold set. pose proof (i_count _ I x y) as C.
    destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; rewrite ?Wt, ?F4; simpl.
    + destruct (Z n) as (-> & -> & ->). dec_in; [intuition congruence | simpl; lia].
    + destruct (Z y) as (-> & -> & ->). dec_in; [destruct Mem as [_ ->]; simpl; lia | simpl; lia].
    + dec_in; simpl; lia.
    + lia.
  - intros x y Nxy. rewrite !Ms, !count_app, !posts_each by auto. pose proof (i_one _ I x y Nxy).
    destruct (node_eq x n), (node_eq y n); dec_in; simpl; lia.
  - intros x y j H. apply in_app_or in H as [H|H].
    + apply in_posts in H as (q & _ & [= -> -> ->]). now rewrite set_same.
    + unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_number _ I x y)].
      destruct (Z y) as (X & _). pose proof (in_count (A:=carvalho_roucairol) w_req _ _ _ _ H). simpl in *. lia.
  - intros x y H. unfold set in *. destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; rewrite ?F2.
    + lia.
    + destruct (Z y) as (_ & X & _). congruence.
    + rewrite F4 in H. pose proof (i_deferred _ I x n H). unfold k. lia.
    + now apply (i_deferred _ I).
  - intros x y H. apply in_app_or in H as [H|H]; [apply in_posts in H as (q & _ & [=])|].
    destruct (node_eq x n) as [->|Nx].
    { destruct (Z y) as (_ & _ & X). pose proof (in_count (A:=carvalho_roucairol) w_rep _ _ _ _ H). simpl in *. lia. }
    pose proof (i_reply _ I x y H) as Hy. destruct (node_eq y n) as [->|Ny]; [now apply Y|].
    unfold yields in *. now rewrite !set_other by auto.
  - intros x. rewrite Ms. apply (i_self _ I).
  - intros x y. rewrite Ms. unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_inside _ I)].
    intros H. apply (is_empty_spec n _ An (F6 H)).
Qed.

Lemma step_release_inv g n s o :
  inv g -> do_release n (st g n) = Some (s, o) ->
  inv (Global (A:=carvalho_roucairol) (set (st g) n s) (posts n o ++ net g)).
Proof.
  intros I E. unfold do_release in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as <- <-.
  set (s := mk _ _ _ _ _).
  assert (Nd : NoDup (filter (deferred (st g n)) (peers n))) by apply NoDup_filter, peers_once.
  assert (Zn : forall y, reqs (net g) n y = 0 /\ reps (net g) y n = 0 /\ deferred (st g y) n = false).
  { intros z. pose proof (i_count _ I n z) as D. unfold misses in D. rewrite Ep in D.
    destruct (deferred (st g z) n); simpl in D; repeat split; lia. }
  assert (Y : forall x, x <> n -> yields (st g) x n -> yields (set (st g) n s) x n).
  { intros x Nx. apply yields_grow; rewrite ?set_same, ?(set_other _ _ _ x) by auto; simpl; auto.
    unfold asking. simpl. congruence. }
  split; simpl.
  - intros x y. rewrite !count_app, !posts_each by auto. unfold set. pose proof (i_count _ I x y) as C.
    destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; simpl.
    + destruct (Zn n) as (-> & -> & E). unfold misses. simpl. dec_in; [intuition congruence | simpl; lia].
    + destruct (Zn y) as (-> & -> & E). rewrite E. dec_in; unfold misses; simpl; lia.
    + dec_in; simpl; [destruct Mem as [_ Mem]; rewrite Mem in C; simpl in C; lia | lia].
    + lia.
  - intros x y Nxy. rewrite !count_app, !posts_each by auto. pose proof (i_one _ I x y Nxy) as C. unfold set.
    destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; try congruence; simpl.
    + rewrite (i_inside _ I n y Ep) in *. simpl in *. destruct (Zn y) as (_ & -> & _).
      dec_in; simpl.
      * destruct Mem as [_ ->]. simpl. lia.
      * destruct (deferred (st g n) y) eqn:Ed; [exfalso; apply Mem; auto|]. simpl. lia.
    + rewrite (i_inside _ I n x Ep) in *. simpl in *. destruct (Zn x) as (_ & -> & _).
      dec_in; simpl.
      * destruct Mem as [_ ->]. simpl. lia.
      * destruct (deferred (st g n) x) eqn:Ed; [exfalso; apply Mem; auto|]. simpl. lia.
    + lia.
  - intros x y j H. apply in_app_or in H as [H|H]; [apply in_posts in H as (q & _ & [=])|].
    rewrite (i_number _ I x y j H). unfold set. now destruct (node_eq x n) as [->|].
  - intros x y H. unfold set in *. destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; simpl in *;
      try discriminate; now apply (i_deferred _ I).
  - intros x y H. apply in_app_or in H as [H|H].
    + apply in_posts in H as (q & H & [= -> -> ]). apply in_chosen in H as [X H].
      unfold yields. rewrite set_same, set_other by auto. split; [now apply (i_deferred _ I)|].
      unfold asking. simpl. congruence.
    + assert (Nx : x <> n).
      { intros ->. pose proof (in_count (A:=carvalho_roucairol) w_rep _ _ _ _ H) as C. destruct (Zn y) as (_ & X & _).
        simpl in *. lia. }
      pose proof (i_reply _ I x y H) as Hy. destruct (node_eq y n) as [->|Ny]; [now apply Y|].
      unfold yields in *. now rewrite !set_other by auto.
  - intros x. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_self _ I)]. simpl.
    rewrite (i_self _ I). now destruct (Zn n) as (_ & _ & ->).
  - intros x y. unfold set. destruct (node_eq x n) as [->|]; [simpl; congruence | now apply (i_inside _ I)].
Qed.

Ltac split_eq := repeat match goal with
  | |- context [node_eq ?u ?v] => destruct (node_eq u v)
  | H : context [node_eq ?u ?v] |- _ => destruct (node_eq u v)
  end.

Lemma deliver_request_inv g (l1 l2 : list (packet carvalho_roucairol)) from n k s o :
  inv g -> net g = l1 ++ (from, n, Request k) :: l2 -> from <> n ->
  do_receive n (st g n) from (Request k) = (s, o) ->
  inv (Global (A:=carvalho_roucairol) (set (st g) n s) (posts n o ++ l1 ++ l2)).
Proof.
  intros I En Nf E.
  assert (Hin : In (from, n, Request k) (net g)) by (rewrite En; apply in_or_app; simpl; auto).
  assert (Sub : forall p, In p (l1 ++ l2) -> In p (net g)) by (intros p H; rewrite En; now apply in_net_without).
  assert (C : forall w u v, counts w (net g) u v = counts w (l1 ++ l2) u v + w (Request k) * pair_is from n u v)
    by (intros; rewrite En; apply (count_mid (A:=carvalho_roucairol))).
  assert (Ek : k = my (st g from)) by now apply (i_number _ I from n).
  pose proof (i_count _ I from n) as Cf.
  pose proof (in_count (A:=carvalho_roucairol) w_req _ _ _ _ Hin) as Cr. simpl in Cr.
  assert (Pf : ph (st g from) = Waiting /\ missing (st g from) n = true).
  { unfold misses in Cf. destruct (ph (st g from)), (missing (st g from) n); simpl in Cf; auto; lia. }
  assert (Zf : reps (net g) n from = 0 /\ deferred (st g n) from = false).
  { unfold misses in Cf. destruct Pf as [P1 P2]. rewrite P1, P2 in Cf.
    destruct (deferred (st g n) from); simpl in Cf; split; auto; lia. }
  set (h := max (seen (st g n)) k) in *.
  assert (F : ph s = ph (st g n) /\ my s = my (st g n) /\ seen s = h).
  { unfold do_receive in E. destruct (goes_first _ _ _ _); injection E as <- <-; auto. }
  destruct F as (F1 & F2 & F3).
  assert (Y : forall x y, yields (st g) x y -> yields (set (st g) n s) x y).
  { intros x y. apply yields_grow; unfold set, asking.
    - destruct (node_eq x n) as [->|]; auto.
    - left. destruct (node_eq y n) as [->|]; auto.
    - destruct (node_eq y n) as [->|]; auto. rewrite F3. unfold h. lia.
    - destruct (node_eq y n) as [->|]; auto. rewrite F1. auto. }
  assert (My : forall x, my (set (st g) n s x) = my (st g x))
    by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  unfold do_receive in E. destruct (goes_first n (st g n) k from) eqn:Eg; injection E as Es Eo.
  - (* deferred *)
    assert (M : forall x y, missing (set (st g) n s x) y = missing (st g x) y)
      by (intros x y; unfold set; destruct (node_eq x n) as [->|]; [now rewrite <- Es | auto]).
    assert (W : forall x y, misses (set (st g) n s x) y = misses (st g x) y).
    { intros x y. unfold misses. rewrite M. unfold set. destruct (node_eq x n) as [->|]; [now rewrite F1 | auto]. }
    assert (D : deferred s = set (deferred (st g n)) from true) by now rewrite <- Es.
    rewrite <- Eo. split; simpl.
    + intros x y. rewrite W. pose proof (i_count _ I x y) as Cn. rewrite !C in Cn. simpl in Cn.
      unfold set at 1. destruct (node_eq y n) as [->|Ny].
      * rewrite D. unfold set, pair_is in *. split_eq; try congruence; subst; simpl in *; lia.
      * rewrite pair_is_other in Cn by auto. lia.
    + intros x y Nxy. rewrite !M. pose proof (i_one _ I x y Nxy) as Cn. rewrite !C in Cn. simpl in Cn. lia.
    + intros x y j H. rewrite My. now apply (i_number _ I x y), Sub.
    + intros x y H. rewrite My. unfold set in *. destruct (node_eq y n) as [->|Ny]; [|now apply (i_deferred _ I)].
      rewrite F3. unfold h. rewrite D in H. unfold set in H.
      destruct (node_eq x from) as [->|]; [lia|]. apply (i_deferred _ I) in H. lia.
    + intros x y H. now apply Y, (i_reply _ I), Sub.
    + intros x. rewrite M. apply (i_self _ I).
    + intros x y. rewrite M. unfold set. destruct (node_eq x n) as [->|]; rewrite ?F1; apply (i_inside _ I).
  - (* replied *)
    assert (Zn : reps (net g) from n = 0).
    { destruct (Nat.eq_dec (reps (net g) from n) 0) as [|X]; auto. exfalso.
      destruct (count_in (A:=carvalho_roucairol) w_rep (net g) from n) as (m & Hm & Wm); [lia|].
      destruct m; [simpl in Wm; lia|].
      destruct (i_reply _ I n from Hm) as [_ Hy]. rewrite <- Ek in Hy.
      pose proof (i_count _ I n from) as Cn. unfold misses in Cn. unfold goes_first in Eg.
      destruct (ph (st g n)); try lia. rewrite Hy in Eg; [discriminate|]. unfold asking. destruct Pf as [-> _]. discriminate. }
    assert (Ni : ph (st g n) <> Inside) by (intros X; unfold goes_first in Eg; rewrite X in Eg; discriminate).
    assert (Lt : asking (st g n) -> earlier (k, from) (my (st g n), n) = true).
    { intros A. unfold goes_first, asking in *. destruct (ph (st g n)); try congruence. apply earlier_total; auto. }
    assert (D : deferred s = deferred (st g n)) by now rewrite <- Es.
    assert (M : missing s = set (missing (st g n)) from true) by now rewrite <- Es.
    set (again := match ph (st g n) with Waiting => if missing (st g n) from then [] else [(from, Request (my (st g n)))]
                  | _ => [] end) in *.
    assert (Ca : forall w u v, counts w (posts n again) u v =
      match ph (st g n) with
      | Waiting => if missing (st g n) from then 0 else w (Request (my (st g n))) * pair_is n from u v
      | _ => 0 end).
    { intros w u v. unfold again. destruct (ph (st g n)); auto. destruct (missing (st g n) from); auto. simpl. lia. }
    assert (Co : forall w u v, counts w (posts n o) u v = w Reply * pair_is n from u v + counts w (posts n again) u v)
      by (intros; now rewrite <- Eo).
    assert (Io : forall p, In p (posts n o) -> p = (n, from, Reply) \/ p = (n, from, Request (my (st g n)))).
    { intros p. rewrite <- Eo. unfold again. destruct (ph (st g n)); simpl; try tauto; intuition.
      destruct (missing (st g n) from); simpl in *; intuition. }
    split; simpl.
    + intros x y. pose proof (i_count _ I x y) as Cn. rewrite !C in Cn.
      rewrite !(count_app (A:=carvalho_roucairol)) in *. rewrite !Co, !Ca. cbn [w_req w_rep] in *.
      match goal with |- context [b (deferred ?z x)] =>
        replace (deferred z x) with (deferred (st g y) x)
          by (unfold set; destruct (node_eq y n) as [->|]; congruence) end.
      unfold misses, set in *. unfold pair_is in *.
      destruct (node_eq x n) as [->|Nx].
      * rewrite F1, M. unfold set. destruct (node_eq y from) as [->|Ny].
        -- destruct (ph (st g n)) eqn:Ep; try congruence; [|destruct (missing (st g n) from) eqn:Em];
             split_eq; try congruence; simpl in *; lia.
        -- destruct (ph (st g n)) eqn:Ep; try congruence; [|destruct (missing (st g n) from) eqn:Em];
             split_eq; try congruence; simpl in *; lia.
      * destruct (ph (st g n)) eqn:Ep; try congruence; [|destruct (missing (st g n) from) eqn:Em];
             split_eq; try congruence; subst; simpl in *; try lia.
    + intros x y Nxy. pose proof (i_one _ I x y Nxy) as Cn. rewrite !C in Cn.
      rewrite !(count_app (A:=carvalho_roucairol)) in *. rewrite !Co, !Ca. cbn [w_req w_rep] in *.
      destruct Zf as [Zf _]. destruct Pf as [_ Pf]. rewrite C, count_app in Zf, Zn. simpl in Zf, Zn.
      assert (R0 : forall (q : phase) (a : bool), match q with Waiting => if a then 0 else 0 | _ => 0 end = 0)
        by (intros [] []; auto).
      rewrite !R0. unfold set. unfold pair_is.
      destruct (node_eq x n) as [->|Nx]; [|destruct (node_eq y n) as [->|Ny]]; rewrite ?M; unfold set;
        split_eq; try congruence; subst; rewrite ?Pf in *; simpl in *; lia.
    + intros x y j H. rewrite My. apply in_app_or in H as [H|H]; [|now apply (i_number _ I x y), Sub].
      apply Io in H as [[=]|[= -> -> ->]]. auto.
    + intros x y H. rewrite My. unfold set in *. destruct (node_eq y n) as [->|Ny]; [|now apply (i_deferred _ I)].
      rewrite F3. unfold h. rewrite D in H. apply (i_deferred _ I) in H. lia.
    + intros x y H. apply in_app_or in H as [H|H]; [|now apply Y, (i_reply _ I), Sub].
      apply Io in H as [[= -> ->]|[=]].
      unfold yields, asking. rewrite !My, set_same, F1, F3, <- Ek. split; [unfold h; lia | exact Lt].
    + intros x. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_self _ I)]. rewrite M.
      rewrite set_other by auto. apply (i_self _ I).
    + intros x y. unfold set. destruct (node_eq x n) as [->|]; [|apply (i_inside _ I)]. rewrite F1. congruence.
Qed.

Lemma deliver_reply_inv g (l1 l2 : list (packet carvalho_roucairol)) from n s o :
  inv g -> net g = l1 ++ (from, n, Reply) :: l2 -> from <> n ->
  do_receive n (st g n) from Reply = (s, o) ->
  inv (Global (A:=carvalho_roucairol) (set (st g) n s) (posts n o ++ l1 ++ l2)).
Proof.
  intros I En Nf E.
  assert (Hin : In (from, n, Reply) (net g)) by (rewrite En; apply in_or_app; simpl; auto).
  assert (Sub : forall p, In p (l1 ++ l2) -> In p (net g)) by (intros p H; rewrite En; now apply in_net_without).
  assert (C : forall w u v, counts w (net g) u v = counts w (l1 ++ l2) u v + w Reply * pair_is from n u v)
    by (intros; rewrite En; apply (count_mid (A:=carvalho_roucairol))).
  pose proof (i_count _ I n from) as Cf. pose proof (in_count (A:=carvalho_roucairol) w_rep _ _ _ _ Hin) as Cr.
  simpl in Cr. unfold do_receive in E. unfold misses in Cf.
  destruct (ph (st g n)) eqn:Ep; try lia. injection E as Es <-.
  destruct (missing (st g n) from) eqn:Em; [|simpl in Cf; lia].
  set (a := set (missing (st g n)) from false) in *.
  assert (An : a n = false) by (unfold a, set; destruct (node_eq n from); auto; apply (i_self _ I)).
  assert (F : my s = my (st g n) /\ seen s = seen (st g n) /\ missing s = a /\ deferred s = deferred (st g n) /\
              ph s <> Idle /\ (ph s = Inside -> is_empty n a = true)).
  { subst s. unfold enter_if_none_missing. simpl. destruct (is_empty n a); simpl; repeat split; congruence. }
  destruct F as (F1 & F2 & F3 & F4 & F5 & F6). clear Es.
  assert (Wn : forall y, misses s y = b (a y)).
  { intros y. unfold misses. rewrite F3. destruct (ph s) eqn:E; try congruence.
    now rewrite (is_empty_spec n _ An (F6 eq_refl)). }
  assert (Y : forall x y, yields (st g) x y -> yields (set (st g) n s) x y).
  { intros x y. apply yields_grow; unfold set, asking.
    - destruct (node_eq x n) as [->|]; auto.
    - left. destruct (node_eq y n) as [->|]; auto.
    - destruct (node_eq y n) as [->|]; auto. lia.
    - destruct (node_eq y n) as [->|]; auto. left. congruence. }
  assert (Df : forall y x, deferred (set (st g) n s y) x = deferred (st g y) x)
    by (intros y x; unfold set; destruct (node_eq y n) as [->|]; congruence).
  split; simpl.
  - intros x y. rewrite Df. pose proof (i_count _ I x y) as Cn. rewrite !C in Cn. simpl in Cn.
    unfold set. destruct (node_eq x n) as [->|Nx].
    + rewrite Wn. unfold misses in Cn. rewrite Ep in Cn. unfold a, set.
      destruct (node_eq y from) as [->|Ny].
      * rewrite pair_is_same, Em in Cn. simpl in *. lia.
      * rewrite pair_is_other in Cn by auto. lia.
    + rewrite pair_is_other in Cn by auto. lia.
  - intros x y Nxy. pose proof (i_one _ I x y Nxy) as Cn. rewrite !C in Cn. simpl in Cn. unfold set, pair_is in *.
    destruct (node_eq x n) as [->|Nx]; [|destruct (node_eq y n) as [->|Ny]]; rewrite ?F3; unfold a, set;
      split_eq; try congruence; subst; rewrite ?Em in *; simpl in *; lia.
  - intros x y j H. rewrite (i_number _ I x y j (Sub _ H)). unfold set. destruct (node_eq x n) as [->|]; congruence.
  - intros x y. rewrite Df. intros H. apply (i_deferred _ I) in H. unfold set.
    destruct (node_eq x n) as [->|], (node_eq y n) as [->|]; congruence || lia.
  - intros x y H. now apply Y, (i_reply _ I), Sub.
  - intros x. unfold set. destruct (node_eq x n) as [->|]; [now rewrite F3 | apply (i_self _ I)].
  - intros x y. unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_inside _ I)].
    intros H. rewrite F3. apply (is_empty_spec n _ An (F6 H)).
Qed.

Lemma inv_step c g g' : inv g -> step carvalho_roucairol c g g' -> inv g'.
Proof.
  intros I S. destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En _ E | g l1 l2 [[u v] m] _ En].
  - now apply step_request_inv.
  - now apply step_release_inv.
  - assert (Nf : from <> n).
    { intros ->. assert (Hin : In (n, n, m) (net g)) by (rewrite En; apply in_or_app; simpl; auto).
      pose proof (i_count _ I n n) as D. unfold misses in D. rewrite (i_self _ I) in D.
      pose proof (in_count (A:=carvalho_roucairol) w_req _ _ _ _ Hin).
      pose proof (in_count (A:=carvalho_roucairol) w_rep _ _ _ _ Hin).
      destruct m, (ph (st g n)); simpl in *; lia. }
    destruct m; [now apply (deliver_request_inv g l1 l2 from n number) | now apply (deliver_reply_inv g l1 l2 from n)].
  - assert (Sub : forall p, In p (l1 ++ l2) -> In p (net g)) by (intros p H; rewrite En; now apply in_net_without).
    assert (C : forall w a d, counts w (net g) a d = counts w (l1 ++ l2) a d + w m * pair_is u v a d)
      by (intros; rewrite En; apply count_mid).
    destruct I as [I1 I2 I3 I4 I5 I6 I7]. split; simpl; auto; try (intros; eauto; fail).
    + intros x y. specialize (I1 x y). rewrite !C in I1. lia.
    + intros x y Nxy. specialize (I2 x y Nxy). rewrite !C in I2. lia.
Qed.

(* Of two nodes at most one starts with the permission of the other. *)
Theorem carvalho_roucairol_mutual_exclusion c has root held g :
  (forall x y, x <> y -> has x y = true -> has y x = false) ->
  reachable carvalho_roucairol c (begins (A:=carvalho_roucairol) (initial has root held)) g -> mutual_exclusion g.
Proof.
  intros Has R. assert (I : inv g).
  { revert g R. apply invariant_holds; [|intros; eapply inv_step; eauto]. intros g [Es En].
    split; rewrite ?Es, ?En; simpl; auto; try tauto.
    - intros x y. unfold misses, initial, first_phase. simpl. destruct (node_eq x root), held; simpl; lia.
    - intros x y Nxy. specialize (Has x y Nxy).
      destruct held; simpl; split_eq; try congruence; simpl; try lia;
        destruct (has x y), (has y x); simpl; try lia; specialize (Has eq_refl); discriminate.
    - intros x. now destruct (node_eq x x).
    - intros x y. unfold first_phase. destruct (node_eq x root), held, (node_eq y x); simpl; congruence. }
  intros x y Hx Hy. destruct (node_eq x y) as [|Nxy]; auto. exfalso. simpl in Hx, Hy.
  pose proof (i_one _ I x y Nxy) as C. rewrite (i_inside _ I x y Hx), (i_inside _ I y x Hy) in C. simpl in C. lia.
Qed.
End CarvalhoRoucairol.
