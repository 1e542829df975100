(* Ricart, Agrawala 1981, "An optimal algorithm for mutual exclusion in computer networks", with
   numbers that always count as seen.  Mutual exclusion for any number of nodes.

   The invariant is about each ordered pair of nodes x, y.  At most one of these is the case, and
   only while x waits and awaits the reply of y: the REQUEST of x to y is in flight; y has deferred
   its reply to x; the REPLY is in flight.  As long as y has replied to the present request of x, y
   has seen its number, and a request of y comes after it ([yields]).

   Rust: crates/algorithms/src/ricart_agrawala.rs, without the variant `as-published`.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token Count Order.
Import ListNotations.

Section RicartAgrawala.
Context {N : Nodes} {O : NodeOrder N}.
Variable peers : node -> list node.                 (* all other nodes *)
Hypothesis peers_other : forall n x, In x (peers n) <-> x <> n.
Hypothesis peers_once : forall n, NoDup (peers n).

Inductive message := Request (number : nat) | Reply.
Record state := mk {
  ph : phase;
  my : nat;                                         (* the number of the latest request *)
  seen : nat;                                       (* the highest number seen *)
  awaited : node -> bool;
  deferred : node -> bool }.

Definition none : node -> bool := fun _ => false.
Definition is_empty (me : node) (a : node -> bool) : bool := negb (existsb a (peers me)).
Definition all_but (me x : node) : bool := if node_eq x me then false else true.

Definition enter_if_all_replied (me : node) (s : state) : state :=
  if is_empty me (awaited s) then mk Inside (my s) (seen s) (awaited s) (deferred s) else s.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let k := S (seen s) in
      Some (enter_if_all_replied me (mk Waiting k k (all_but me) (deferred s)),
            map (fun p => (p, Request k)) (peers me))
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => Some (mk Idle (my s) (seen s) (awaited s) none,
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
      then (mk (ph s) (my s) h (awaited s) (set (deferred s) from true), [])
      else (mk (ph s) (my s) h (awaited s) (deferred s), [(from, Reply)])
  | Reply =>
      match ph s with
      | Waiting => (enter_if_all_replied me (mk Waiting (my s) (seen s) (set (awaited s) from false) (deferred s)), [])
      | _ => (s, [])
      end
  end.

Definition ricart_agrawala : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition initial (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) 0 0 none none.

(* ------------------------------------------------------------------ the invariant *)
Definition w_req (m : message) : nat := match m with Request _ => 1 | Reply => 0 end.
Definition w_rep (m : message) : nat := match m with Request _ => 0 | Reply => 1 end.
Notation reqs := (count (A:=ricart_agrawala) w_req).
Notation reps := (count (A:=ricart_agrawala) w_rep).

Definition b (x : bool) : nat := if x then 1 else 0.
Definition waits_for (s : state) (y : node) : nat := match ph s with Waiting => b (awaited s y) | _ => 0 end.
Definition asking (s : state) : Prop := ph s <> Idle.

(* [y] has replied to the request of [x]. *)
Definition yields (f : node -> state) (x y : node) : Prop :=
  my (f x) <= seen (f y) /\ (asking (f y) -> earlier (my (f x), x) (my (f y), y) = true).

Record inv (g : global ricart_agrawala) : Prop := {
  i_count : forall x y, reqs (net g) x y + b (deferred (st g y) x) + reps (net g) y x
                        <= waits_for (st g x) y;
  i_number : forall x y k, In (x, y, Request k) (net g) -> k = my (st g x);
  i_deferred : forall x y, deferred (st g y) x = true -> my (st g x) <= seen (st g y);
  i_reply : forall x y, In (y, x, Reply) (net g) -> yields (st g) x y;
  i_has : forall x y, x <> y -> asking (st g x) -> awaited (st g x) y = false -> yields (st g) x y;
  i_self : forall x, awaited (st g x) x = false;
  i_inside : forall x y, x <> y -> ph (st g x) = Inside -> awaited (st g x) y = false }.

Lemma is_empty_spec n a : a n = false -> is_empty n a = true -> forall x, a x = false.
Proof.
  unfold is_empty. intros Hn H x. apply negb_true_iff in H. destruct (node_eq x n) as [->|Nx]; auto.
  destruct (a x) eqn:E; auto. exfalso. rewrite <- not_true_iff_false, existsb_exists in H.
  apply H. exists x. now rewrite peers_other.
Qed.

(* Somebody yields, as long as the number stays and the highest number seen grows. *)
Lemma yields_grow (f f' : node -> state) x y :
  my (f' x) = my (f x) -> my (f' y) = my (f y) \/ seen (f y) < my (f' y) -> seen (f y) <= seen (f' y) ->
  (asking (f' y) -> asking (f y) \/ seen (f y) < my (f' y)) ->
  yields f x y -> yields f' x y.
Proof.
  intros Ex Ey Es Ea [H1 H2]. split; [rewrite Ex; lia|]. intros A. rewrite Ex.
  destruct (Ea A) as [A'|A']; [destruct Ey as [Ey|Ey]; [rewrite Ey; auto|]|]; apply earlier_number; lia.
Qed.

Lemma posts_each w n (m : message) l u v : NoDup l ->
  count (A:=ricart_agrawala) w (post (A:=ricart_agrawala) n (map (fun p => (p, m)) l)) u v
  = if node_eq u n then if in_dec node_eq v l then w m else 0 else 0.
Proof.
  intros Nd. destruct (node_eq u n) as [->|Nu]; [exact (count_post_each (A:=ricart_agrawala) w n m l v Nd) | now apply count_post_other].
Qed.

Lemma in_posts n (m : message) l p :
  In p (post (A:=ricart_agrawala) n (map (fun q => (q, m)) l)) -> exists q, In q l /\ p = (n, q, m).
Proof.
  unfold post. rewrite map_map. intros H. apply in_map_iff in H as (q & <- & H). now exists q.
Qed.

Lemma step_request_inv g n s o :
  inv g -> do_request n (st g n) = Some (s, o) ->
  inv (Global (A:=ricart_agrawala) (set (st g) n s) (post (A:=ricart_agrawala) n o ++ net g)).
Proof.
  intros I E. unfold do_request in E. destruct (ph (st g n)) eqn:Ep; try discriminate.
  set (k := S (seen (st g n))) in *. injection E as Es <-.
  assert (F : my s = k /\ seen s = k /\ awaited s = all_but n /\ deferred s = deferred (st g n) /\
              ph s <> Idle /\ (ph s = Inside -> is_empty n (all_but n) = true)).
  { subst s. unfold enter_if_all_replied. simpl. destruct (is_empty n (all_but n)); simpl;
      repeat split; congruence. }
  destruct F as (F1 & F2 & F3 & F4 & F5 & F6). clear Es.
  assert (Z : forall y, reqs (net g) n y = 0 /\ deferred (st g y) n = false /\ reps (net g) y n = 0).
  { intros y. pose proof (i_count _ I n y) as C. unfold waits_for in C. rewrite Ep in C.
    destruct (deferred (st g y) n); simpl in C; repeat split; lia. }
  assert (Al : forall x, x <> n -> all_but n x = true)
    by (intros x Nx; unfold all_but; destruct (node_eq x n); congruence).
  assert (An : all_but n n = false) by (unfold all_but; destruct (node_eq n n); congruence).
  assert (Wt : forall y, waits_for s y = b (all_but n y)).
  { intros y. unfold waits_for. rewrite F3. destruct (ph s) eqn:E; try congruence.
    now rewrite (is_empty_spec n _ An (F6 eq_refl)). }
  assert (Y : forall x, x <> n -> yields (st g) x n -> yields (set (st g) n s) x n).
  { intros x Nx. apply yields_grow; rewrite ?set_same, ?(set_other _ _ _ x) by auto; rewrite ?F1, ?F2; auto;
      unfold k; lia || (right; lia). }
  split; simpl.
  - intros x y. rewrite !count_app, !posts_each by auto. unfold set. pose proof (i_count _ I x y) as C.
    destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; rewrite ?Wt, ?F4; simpl.
    + destruct (Z n) as (-> & -> & ->). destruct (in_dec node_eq n (peers n)) as [X|X]; [|simpl; lia].
      apply peers_other in X. congruence.
    + destruct (Z y) as (-> & -> & ->). rewrite (Al y Ny). destruct (in_dec node_eq y (peers n)); simpl; lia.
    + destruct (in_dec node_eq x (peers n)); simpl; lia.
    + lia.
  - intros x y j H. apply in_app_or in H as [H|H].
    + apply in_posts in H as (q & _ & [= -> -> ->]). now rewrite set_same.
    + unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_number _ I x y)].
      destruct (Z y) as (X & _). pose proof (in_count (A:=ricart_agrawala) w_req _ _ _ _ H). simpl in *. lia.
  - intros x y H. unfold set in *. destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; rewrite ?F2.
    + lia.
    + destruct (Z y) as (_ & X & _). congruence.
    + rewrite F4 in H. pose proof (i_deferred _ I x n H). unfold k. lia.
    + now apply (i_deferred _ I).
  - intros x y H. apply in_app_or in H as [H|H]; [apply in_posts in H as (q & _ & [=])|].
    destruct (node_eq x n) as [->|Nx].
    { destruct (Z y) as (_ & _ & X). pose proof (in_count (A:=ricart_agrawala) w_rep _ _ _ _ H). simpl in *. lia. }
    pose proof (i_reply _ I x y H) as Hy. destruct (node_eq y n) as [->|Ny]; [now apply Y|].
    unfold yields in *. now rewrite !set_other by auto.
  - intros x y Nxy Ax Aw. destruct (node_eq x n) as [->|Nx].
    + rewrite set_same, F3, Al in Aw by auto. discriminate.
    + rewrite set_other in Ax, Aw by auto. pose proof (i_has _ I x y Nxy Ax Aw) as Hy.
      destruct (node_eq y n) as [->|Ny]; [now apply Y|]. unfold yields in *. now rewrite !set_other by auto.
  - intros x. unfold set. destruct (node_eq x n) as [->|]; [now rewrite F3 | apply (i_self _ I)].
  - intros x y Nxy. unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_inside _ I)].
    intros H. rewrite F3. apply (is_empty_spec n _ An (F6 H)).
Qed.

Lemma step_release_inv g n s o :
  inv g -> do_release n (st g n) = Some (s, o) ->
  inv (Global (A:=ricart_agrawala) (set (st g) n s) (post (A:=ricart_agrawala) n o ++ net g)).
Proof.
  intros I E. unfold do_release in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as <- <-.
  set (s := mk _ _ _ _ _).
  assert (Nd : NoDup (filter (deferred (st g n)) (peers n))) by apply NoDup_filter, peers_once.
  assert (Y : forall x, x <> n -> yields (st g) x n -> yields (set (st g) n s) x n).
  { intros x Nx. apply yields_grow; rewrite ?set_same, ?(set_other _ _ _ x) by auto; simpl; auto.
    unfold asking. simpl. congruence. }
  split; simpl.
  - intros x y. rewrite !count_app, !posts_each by auto. unfold set. pose proof (i_count _ I x y) as C.
    assert (Zn : forall y, reqs (net g) n y = 0 /\ reps (net g) y n = 0 /\ deferred (st g y) n = false).
    { intros z. pose proof (i_count _ I n z) as D. unfold waits_for in D. rewrite Ep in D.
      destruct (deferred (st g z) n); simpl in D; repeat split; lia. }
    destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; simpl.
    + destruct (Zn n) as (-> & -> & E). unfold waits_for. simpl.
      match goal with |- context [in_dec node_eq n ?l] => destruct (in_dec node_eq n l) as [X|X] end;
        [|simpl; lia].
      apply filter_In in X as [X _]. apply peers_other in X. congruence.
    + destruct (Zn y) as (-> & -> & E). rewrite E.
      match goal with |- context [in_dec node_eq y ?l] => destruct (in_dec node_eq y l) end;
        simpl; unfold waits_for; simpl; lia.
    + match goal with |- context [in_dec node_eq x ?l] => destruct (in_dec node_eq x l) as [X|X] end; simpl.
      * apply filter_In in X as [_ X]. rewrite X in C. simpl in C. lia.
      * lia.
    + lia.
  - intros x y j H. apply in_app_or in H as [H|H]; [apply in_posts in H as (q & _ & [=])|].
    rewrite (i_number _ I x y j H). unfold set. now destruct (node_eq x n) as [->|].
  - intros x y H. unfold set in *. destruct (node_eq x n) as [->|Nx], (node_eq y n) as [->|Ny]; simpl in *;
      try discriminate; now apply (i_deferred _ I).
  - intros x y H. apply in_app_or in H as [H|H].
    + apply in_posts in H as (q & H & [= -> -> ]). apply filter_In in H as [X H]. apply peers_other in X.
      unfold yields. rewrite set_same, set_other by auto. split; [now apply (i_deferred _ I)|].
      unfold asking. simpl. congruence.
    + assert (Nx : x <> n).
      { intros ->. pose proof (in_count (A:=ricart_agrawala) w_rep _ _ _ _ H) as C. pose proof (i_count _ I n y) as D.
        unfold waits_for in D. rewrite Ep in D. simpl in *. lia. }
      pose proof (i_reply _ I x y H) as Hy. destruct (node_eq y n) as [->|Ny]; [now apply Y|].
      unfold yields in *. now rewrite !set_other by auto.
  - intros x y Nxy Ax Aw. destruct (node_eq x n) as [->|Nx].
    + rewrite set_same in Ax. unfold asking in Ax. simpl in Ax. congruence.
    + rewrite set_other in Ax, Aw by auto. pose proof (i_has _ I x y Nxy Ax Aw) as Hy.
      destruct (node_eq y n) as [->|Ny]; [now apply Y|]. unfold yields in *. now rewrite !set_other by auto.
  - intros x. unfold set. destruct (node_eq x n) as [->|]; apply (i_self _ I).
  - intros x y Nxy. unfold set. destruct (node_eq x n) as [->|]; [simpl; congruence | now apply (i_inside _ I)].
Qed.

Lemma step_deliver_inv g l1 l2 from n m s o :
  inv g -> net g = l1 ++ (from, n, m) :: l2 -> do_receive n (st g n) from m = (s, o) ->
  inv (Global (A:=ricart_agrawala) (set (st g) n s) (post (A:=ricart_agrawala) n o ++ l1 ++ l2)).
Proof.
  intros I En E.
  assert (Hin : In (from, n, m) (net g)) by (rewrite En; apply in_or_app; simpl; auto).
  assert (Sub : forall p, In p (l1 ++ l2) -> In p (net g)) by (intros p H; rewrite En; now apply in_net_without).
  assert (C : forall w u v, count (A:=ricart_agrawala) w (net g) u v
                            = count (A:=ricart_agrawala) w (l1 ++ l2) u v + w m * pair_is from n u v)
    by (intros; rewrite En; apply count_mid).
  assert (Nf : from <> n).
  { intros ->. pose proof (i_count _ I n n) as D. unfold waits_for in D. rewrite (i_self _ I) in D.
    pose proof (in_count (A:=ricart_agrawala) w_req _ _ _ _ Hin). pose proof (in_count (A:=ricart_agrawala) w_rep _ _ _ _ Hin).
    destruct m, (ph (st g n)); simpl in *; lia. }
  destruct m as [k|].
  - (* a REQUEST *)
    assert (Ek : k = my (st g from)) by now apply (i_number _ I from n).
    set (h := max (seen (st g n)) k) in *.
    assert (F : ph s = ph (st g n) /\ my s = my (st g n) /\ seen s = h /\ awaited s = awaited (st g n)).
    { unfold do_receive in E. destruct (goes_first _ _ _ _); injection E as <- <-; auto. }
    destruct F as (F1 & F2 & F3 & F4).
    assert (Y : forall x y, yields (st g) x y -> yields (set (st g) n s) x y).
    { intros x y. apply yields_grow; unfold set, asking.
      - destruct (node_eq x n) as [->|]; auto.
      - left. destruct (node_eq y n) as [->|]; auto.
      - destruct (node_eq y n) as [->|]; auto. rewrite F3. unfold h. lia.
      - destruct (node_eq y n) as [->|]; auto. rewrite F1. auto. }
    assert (Wt : forall x y, waits_for (set (st g) n s x) y = waits_for (st g x) y).
    { intros x y. unfold set. destruct (node_eq x n) as [->|]; auto. unfold waits_for. now rewrite F1, F4. }
    assert (My : forall x, my (set (st g) n s x) = my (st g x))
      by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
    assert (D : (deferred s = set (deferred (st g n)) from true /\ o = []) \/
                (deferred s = deferred (st g n) /\ o = [(from, Reply)] /\
                 (asking (st g n) -> earlier (k, from) (my (st g n), n) = true))).
    { unfold do_receive in E. destruct (goes_first n (st g n) k from) eqn:Eg; injection E as <- <-; auto.
      right. repeat split; auto. intros A. unfold goes_first, asking in *.
      destruct (ph (st g n)); try congruence. apply earlier_total; auto. }
    split; simpl.
    + intros x y. rewrite Wt. pose proof (i_count _ I x y) as Cn. rewrite !C in Cn. rewrite !count_app.
      simpl in Cn. destruct D as [[D ->]|(D & -> & _)]; simpl.
      * unfold set at 1. destruct (node_eq y n) as [->|Ny].
        -- rewrite D. unfold set. unfold pair_is in Cn. destruct (node_eq x from) as [->|], (node_eq n n); try congruence; simpl; try lia.
        -- rewrite pair_is_other in Cn by auto. lia.
      * unfold set at 1. destruct (node_eq y n) as [->|Ny].
        -- rewrite D. unfold pair_is in *. destruct (node_eq x from) as [->|], (node_eq n n); try congruence;
             repeat match goal with |- context [node_eq ?u ?v] => destruct (node_eq u v) end;
             try congruence; simpl; lia.
        -- rewrite (pair_is_other from n x y) in Cn by auto. unfold pair_is. destruct (node_eq y n); [congruence|].
           destruct (node_eq x n); try destruct (node_eq y from); simpl; lia.
    + intros x y j H. rewrite My. apply in_app_or in H as [H|H]; [|now apply (i_number _ I x y), Sub].
      destruct D as [[_ ->]|(_ & -> & _)]; simpl in H; [tauto | destruct H as [[=]|[]]].
    + intros x y H. rewrite My. unfold set in *. destruct (node_eq y n) as [->|Ny]; [|now apply (i_deferred _ I)].
      rewrite F3. unfold h. destruct D as [[D _]|(D & _)]; rewrite D in H.
      * unfold set in H. destruct (node_eq x from) as [->|]; [lia|]. apply (i_deferred _ I) in H. lia.
      * apply (i_deferred _ I) in H. lia.
    + intros x y H. apply in_app_or in H as [H|H]; [|now apply Y, (i_reply _ I), Sub].
      destruct D as [[_ ->]|(_ & -> & D)]; simpl in H; [tauto|]. destruct H as [[= <- <-]|[]].
      unfold yields, asking. rewrite !My, set_same, F1, F3, <- Ek. split; [unfold h; lia | exact D].
    + intros x y Nxy Ax Aw. apply Y, (i_has _ I); auto; unfold set, asking in *; destruct (node_eq x n) as [->|]; congruence.
    + intros x. unfold set. destruct (node_eq x n) as [->|]; rewrite ?F4; apply (i_self _ I).
    + intros x y Nxy. unfold set. destruct (node_eq x n) as [->|]; rewrite ?F4, ?F1; now apply (i_inside _ I).
  - (* a REPLY *)
    pose proof (i_count _ I n from) as Cf. pose proof (in_count (A:=ricart_agrawala) w_rep _ _ _ _ Hin) as Cr.
    simpl in Cr. unfold do_receive in E. unfold waits_for in Cf.
    destruct (ph (st g n)) eqn:Ep; try lia. injection E as Es <-.
    set (a := set (awaited (st g n)) from false) in *.
    assert (An : a n = false) by (unfold a, set; destruct (node_eq n from); auto; apply (i_self _ I)).
    assert (F : my s = my (st g n) /\ seen s = seen (st g n) /\ awaited s = a /\ deferred s = deferred (st g n) /\
                ph s <> Idle /\ (ph s = Inside -> is_empty n a = true)).
    { subst s. unfold enter_if_all_replied. simpl. destruct (is_empty n a); simpl; repeat split; congruence. }
    destruct F as (F1 & F2 & F3 & F4 & F5 & F6). clear Es.
    assert (Wn : forall y, waits_for s y = b (a y)).
    { intros y. unfold waits_for. rewrite F3. destruct (ph s) eqn:E; try congruence.
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
    + intros x y. rewrite Df. pose proof (i_count _ I x y) as Cn. rewrite !C in Cn. simpl in Cn.
      unfold set. destruct (node_eq x n) as [->|Nx].
      * rewrite Wn. unfold waits_for in Cn. rewrite Ep in Cn. unfold a, set.
        destruct (node_eq y from) as [->|Ny].
        -- rewrite pair_is_same in Cn. destruct (awaited (st g n) from); simpl in *; lia.
        -- rewrite pair_is_other in Cn by auto. lia.
      * rewrite pair_is_other in Cn by auto. lia.
    + intros x y j H. rewrite (i_number _ I x y j (Sub _ H)). unfold set. destruct (node_eq x n) as [->|]; congruence.
    + intros x y. rewrite Df. intros H. apply (i_deferred _ I) in H. unfold set.
      destruct (node_eq x n) as [->|], (node_eq y n) as [->|]; congruence || lia.
    + intros x y H. now apply Y, (i_reply _ I), Sub.
    + intros x y Nxy Ax Aw. destruct (node_eq x n) as [->|Nx].
      * rewrite set_same, F3 in Aw. unfold a, set in Aw. apply Y. destruct (node_eq y from) as [->|Ny].
        -- now apply (i_reply _ I).
        -- apply (i_has _ I); auto. unfold asking. congruence.
      * rewrite set_other in Ax, Aw by auto. now apply Y, (i_has _ I).
    + intros x. unfold set. destruct (node_eq x n) as [->|]; [now rewrite F3 | apply (i_self _ I)].
    + intros x y Nxy. unfold set. destruct (node_eq x n) as [->|]; [|now apply (i_inside _ I)].
      intros H. rewrite F3. apply (is_empty_spec n _ An (F6 H)).
Qed.

Lemma inv_step c g g' : inv g -> step ricart_agrawala c g g' -> inv g'.
Proof.
  intros I S. destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En _ E | g l1 l2 [[u v] m] _ En].
  - now apply step_request_inv.
  - now apply step_release_inv.
  - now apply (step_deliver_inv g l1 l2 from n m s o).
  - assert (Sub : forall p, In p (l1 ++ l2) -> In p (net g)) by (intros p H; rewrite En; now apply in_net_without).
    destruct I as [I1 I2 I3 I4 I5 I6 I7]. split; simpl; auto; try (intros; eauto; fail).
    intros x y. specialize (I1 x y).
    assert (C : forall w a d, count (A:=ricart_agrawala) w (net g) a d
                              = count (A:=ricart_agrawala) w (l1 ++ l2) a d + w m * pair_is u v a d)
      by (intros; rewrite En; apply count_mid).
    rewrite !C in I1. lia.
Qed.

Theorem ricart_agrawala_mutual_exclusion c root held g :
  reachable ricart_agrawala c (begins (A:=ricart_agrawala) (initial root held)) g -> mutual_exclusion g.
Proof.
  intros R. assert (I : inv g).
  { revert g R. apply invariant_holds; [|intros; eapply inv_step; eauto]. intros g [Es En].
    split; rewrite ?Es, ?En; simpl; auto; try tauto.
    - intros x y. unfold waits_for, initial, first_phase. simpl. destruct (node_eq x root), held; simpl; lia.
    - intros x y Nxy Ax _. unfold yields, initial, asking, first_phase in *. simpl in *. split; auto.
      destruct (node_eq x root), (node_eq y root), held; congruence. }
  intros x y Hx Hy. destruct (node_eq x y) as [|Nxy]; auto. exfalso.
  simpl in Hx, Hy.
  destruct (i_has _ I x y) as [_ H1]; auto; [unfold asking; congruence | now apply (i_inside _ I)|].
  destruct (i_has _ I y x) as [_ H2]; auto; [unfold asking; congruence | now apply (i_inside _ I); auto|].
  apply (earlier_asym (my (st g x), x) (my (st g y), y)); [apply H1 | apply H2]; unfold asking; congruence.
Qed.
End RicartAgrawala.
