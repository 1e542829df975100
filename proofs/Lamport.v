(* Lamport 1978, "Time, clocks, and the ordering of events in a distributed system": the algorithm of
   five rules.  Mutual exclusion for any number of nodes, over channels that preserve order.

   The invariant is about each ordered pair of nodes x, y and the channel from x to y.  While x has a
   request, it is in the queue of y, or its REQUEST is in the channel ([i_there]).  A REQUEST is later
   than everything that was sent before it ([i_order]).  So, once y has heard something from x that is
   not earlier than its own request, all REQUESTs that still come from x are later than that request
   ([i_later]).  Hence a node that is inside goes before all others that have a request ([i_first]).

   Rust: crates/algorithms/src/lamport.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Order Channel.
Import ListNotations.

Section Lamport.
Context {N : Nodes} {O : NodeOrder N}.
Variable spare_acks : bool.
Variable peers : node -> list node.                 (* all other nodes *)
Hypothesis peers_other : forall n x, In x (peers n) <-> x <> n.
Hypothesis peers_once : forall n, NoDup (peers n).

Inductive message := Request (time : nat) | Ack (time : nat) | Release (time request : nat).
Record state := mk {
  ph : phase;
  clock : nat;
  my : nat;                                         (* the timestamp of the latest request *)
  shown : nat;                                      (* the clock value that all others received *)
  queue : list request_id;
  heard : node -> bool }.                           (* who sent something later than [my] *)

Definition time (m : message) : nat := match m with Request t | Ack t | Release t _ => t end.
Fixpoint remove (r : request_id) (q : list request_id) : list request_id :=
  match q with [] => [] | x :: q' => if same_id x r then q' else x :: remove r q' end.

(* Rule 5 *)
Definition is_first (me : node) (s : state) : bool :=
  match queue s with
  | r :: _ => same_id r (my s, me) && forallb (heard s) (peers me)
  | [] => false
  end.
Definition enter_if_first (me : node) (s : state) : state :=
  match ph s with
  | Waiting => if is_first me s then mk Inside (clock s) (my s) (shown s) (queue s) (heard s) else s
  | _ => s
  end.

(* Rule 1 *)
Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let t := S (clock s) in
      Some (enter_if_first me (mk Waiting t t t (insert (t, me) (queue s)) (heard s)),
            map (fun p => (p, Request t)) (peers me))
  | _ => None
  end.
(* Rule 3 *)
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => Some (mk Idle (clock s) (my s) (clock s) (tl (queue s)) (fun _ => false),
                    map (fun p => (p, Release (clock s) (my s))) (peers me))
  | _ => None
  end.
(* Rules 2 and 4 *)
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  let c := max (clock s) (time m) in
  let q := match m with
           | Request t => insert (t, from) (queue s)
           | Ack _ => queue s
           | Release _ r => remove (r, from) (queue s)
           end in
  let o := match m with
           | Request t => if negb spare_acks || (shown s <? t) then [(from, Ack c)] else []
           | _ => []
           end in
  let later := match ph s with Waiting => my s <=? time m | _ => false end in
  let h := if later then set (heard s) from true else heard s in
  (enter_if_first me (mk (ph s) c (my s) (shown s) q h), o).

Definition lamport : algorithm := Algorithm state message do_request do_release do_receive ph.

(* A node that starts inside has a request that is older than any clock, in every queue. *)
Definition initial (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) 0 0 0 (if held then [(0, root)] else [])
     (fun x => held && (if node_eq me root then if node_eq x me then false else true else false)).

(* ------------------------------------------------------------------ channels *)
(* Each REQUEST is later than everything older in the channel. *)
Fixpoint ordered (l : list message) : Prop :=
  match l with
  | [] => True
  | m :: l' => (match m with Request t => forall m', In m' l' -> time m' < t | _ => True end) /\ ordered l'
  end.
Lemma ordered_last l m : ordered (l ++ [m]) -> ordered l /\ forall t, In (Request t) l -> time m < t.
Proof.
  induction l as [|a l IH]; simpl; [split; [auto | tauto]|]. intros [H1 H2]. destruct (IH H2) as [H3 H4].
  repeat split; auto.
  - destruct a; auto. intros m' Hm. apply H1, in_or_app. now left.
  - intros t [->|Ht]; [apply H1, in_or_app; simpl; auto | now apply H4].
Qed.

(* ------------------------------------------------------------------ queues *)
Lemma in_remove r q x : In x (remove r q) -> In x q.
Proof. induction q as [|y q IH]; simpl; auto. destruct (same_id y r); simpl; intuition. Qed.
Lemma sorted_remove r q : sorted q -> sorted (remove r q).
Proof.
  induction q as [|y q IH]; simpl; auto. intros [H1 H2]. destruct (same_id y r); simpl; auto.
  split; auto. intros x Hx. apply H1. eapply in_remove; eauto.
Qed.
Lemma kept_remove r q x : In x q -> x <> r -> In x (remove r q).
Proof.
  induction q as [|y q IH]; simpl; auto. intros [->|H] Nx; destruct (same_id _ r) eqn:E; simpl; auto.
  apply same_id_spec in E. congruence.
Qed.

(* ------------------------------------------------------------------ the invariant *)
Definition asking (s : state) : Prop := ph s <> Idle.

Record inv (g : global lamport) : Prop := {
  i_clock : forall x y m, In m (chan (net g) x y) -> time m <= clock (st g x);
  i_my : forall x, my (st g x) <= clock (st g x);
  i_none : forall x, chan (net g) x x = [];
  i_order : forall x y, ordered (chan (net g) x y);
  i_release : forall x y t r, In (Release t r) (chan (net g) x y) ->
    r <= my (st g x) /\ (asking (st g x) -> r < my (st g x));
  i_there : forall x y, x <> y -> asking (st g x) ->
    In (my (st g x), x) (queue (st g y)) \/ In (Request (my (st g x))) (chan (net g) x y);
  i_later : forall x y t, asking (st g y) -> heard (st g y) x = true ->
    In (Request t) (chan (net g) x y) -> my (st g y) < t;
  i_heard : forall x y, asking (st g y) -> heard (st g y) x = true -> my (st g y) <= clock (st g x);
  i_idle : forall x y, ph (st g y) = Idle -> heard (st g y) x = false;
  i_sorted : forall y, sorted (queue (st g y));
  i_inside : forall y, ph (st g y) = Inside ->
    (exists q, queue (st g y) = (my (st g y), y) :: q) /\ forall x, x <> y -> heard (st g y) x = true;
  i_first : forall x y, x <> y -> ph (st g y) = Inside -> asking (st g x) ->
    earlier (my (st g y), y) (my (st g x), x) = true }.

Lemma is_first_spec n s : is_first n s = true ->
  (exists q, queue s = (my s, n) :: q) /\ forall x, x <> n -> heard s x = true.
Proof.
  unfold is_first. destruct (queue s) as [|r q]; [discriminate|]. rewrite andb_true_iff, same_id_spec, forallb_forall.
  intros [-> H]. split; eauto. intros x Nx. apply H. now apply peers_other.
Qed.

Lemma enter_facts n s0 s : enter_if_first n s0 = s ->
  clock s = clock s0 /\ my s = my s0 /\ queue s = queue s0 /\ heard s = heard s0 /\
  (ph s = ph s0 \/ (ph s0 = Waiting /\ ph s = Inside /\ is_first n s0 = true)).
Proof.
  intros <-. unfold enter_if_first. destruct (ph s0) eqn:E; auto 6.
  destruct (is_first n s0) eqn:F; simpl; auto 8.
Qed.

Lemma in_peers {X} n y (a b : X) : (if in_dec node_eq y (peers n) then a else b) = if node_eq y n then b else a.
Proof.
  destruct (in_dec node_eq y (peers n)) as [I|I], (node_eq y n) as [->|Ny]; auto.
  - apply peers_other in I. congruence.
  - exfalso. apply I. now apply peers_other.
Qed.

Lemma step_request_inv g n s o : inv g -> do_request n (st g n) = Some (s, o) ->
  inv (Global (A:=lamport) (set (st g) n s) (post (A:=lamport) n o ++ net g)).
Proof.
  intros I E. unfold do_request in E. destruct (ph (st g n)) eqn:Ep; try discriminate.
  set (t := S (clock (st g n))) in *. injection E as Es <-.
  apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5). simpl in F1, F2, F3, F4, F5.
  assert (Nh : forall x, heard s x = false) by (intros x; rewrite F4; now apply (i_idle _ I)).
  assert (Na : ph s <> Idle) by (destruct F5 as [F5|(_ & F5 & _)]; congruence).
  assert (In_ : ph s = Inside -> (exists q, queue s = (my s, n) :: q) /\ forall x, x <> n -> heard s x = true).
  { intros H. destruct F5 as [F5|(_ & _ & F5)]; [congruence|]. apply is_first_spec in F5. simpl in F5.
    now rewrite F2, F3, F4. }
  pose proof (i_my _ I n) as Mn.
  assert (Ch : forall x y, chan (post (A:=lamport) n (map (fun p => (p, Request t)) (peers n)) ++ net g) x y
    = if node_eq n x then if node_eq y n then chan (net g) x y else Request t :: chan (net g) x y else chan (net g) x y).
  { intros x y. rewrite chan_app, (chan_post_each (A:=lamport)) by auto. rewrite in_peers. destruct (node_eq n x), (node_eq y n); auto. }
  assert (Old : forall x y m, In m (chan (net g) x y) ->
    In m (chan (post (A:=lamport) n (map (fun p => (p, Request t)) (peers n)) ++ net g) x y)).
  { intros x y m H. rewrite Ch. destruct (node_eq n x), (node_eq y n); simpl; auto. }
  assert (New : forall x y m, In m (chan (post (A:=lamport) n (map (fun p => (p, Request t)) (peers n)) ++ net g) x y) ->
    In m (chan (net g) x y) \/ (x = n /\ m = Request t)).
  { intros x y m. rewrite Ch. destruct (node_eq n x) as [<-|], (node_eq y n); simpl; intuition. }
  set (net' := post (A:=lamport) n (map (fun p => (p, Request t)) (peers n)) ++ net g) in *.
  split; simpl; fold net'.
  - intros x y m H. unfold set. destruct (New x y m H) as [H'|[-> ->]].
    + pose proof (i_clock _ I x y m H'). destruct (node_eq x n) as [->|]; [rewrite F1; unfold t|]; lia.
    + destruct (node_eq n n); [|congruence]. rewrite F1. auto.
  - intros x. unfold set. destruct (node_eq x n); [lia | apply (i_my _ I)].
  - intros x. rewrite Ch. destruct (node_eq n x) as [<-|]; [destruct (node_eq n n); [|congruence]|]; apply (i_none _ I).
  - intros x y. rewrite Ch. pose proof (i_order _ I x y). destruct (node_eq n x) as [<-|], (node_eq y n); simpl; auto.
    split; auto. intros m' Hm. pose proof (i_clock _ I _ _ _ Hm). unfold t. lia.
  - intros x y tm r H. destruct (New x y _ H) as [H'|[_ H']]; [|discriminate].
    destruct (i_release _ I x y tm r H') as [H1 H2]. unfold set. destruct (node_eq x n) as [->|]; auto. rewrite F2. unfold t. lia.
  - intros x y Nxy. unfold set. destruct (node_eq x n) as [->|Nx].
    + intros _. right. rewrite F2, Ch. destruct (node_eq n n), (node_eq y n); try congruence. now left.
    + intros Ax. destruct (i_there _ I x y Nxy Ax) as [H|H]; [left|right; now apply Old].
      destruct (node_eq y n) as [->|]; auto. rewrite F3. apply in_insert. now right.
  - intros x y t0 Ay Hh Ht. unfold set in *. destruct (node_eq y n) as [->|Ny]; [now rewrite Nh in Hh|].
    destruct (New x y _ Ht) as [H'|[-> [= ->]]]; [now apply (i_later _ I x y)|].
    pose proof (i_heard _ I n y Ay Hh). unfold t. lia.
  - intros x y Ay Hh. unfold set in *. destruct (node_eq y n) as [->|Ny]; [now rewrite Nh in Hh|].
    pose proof (i_heard _ I x y Ay Hh). destruct (node_eq x n) as [->|]; [rewrite F1; unfold t|]; lia.
  - intros x y. unfold set. destruct (node_eq y n) as [->|]; [congruence | apply (i_idle _ I)].
  - intros y. unfold set. destruct (node_eq y n) as [->|]; [rewrite F3; apply sorted_insert|]; apply (i_sorted _ I).
  - intros y. unfold set. destruct (node_eq y n) as [->|]; [exact In_ | apply (i_inside _ I)].
  - intros x y Nxy Hy Ax. unfold set in *. destruct (node_eq y n) as [->|Ny].
    + destruct (In_ Hy) as [_ X]. specialize (X x Nxy). rewrite Nh in X. discriminate.
    + destruct (node_eq x n) as [->|]; [|now apply (i_first _ I)]. rewrite F2. apply earlier_number.
      destruct (i_inside _ I y Hy) as [_ X].
      pose proof (i_heard _ I n y ltac:(unfold asking; congruence) (X n Nxy)). unfold t. lia.
Qed.

Lemma step_release_inv g n s o : inv g -> do_release n (st g n) = Some (s, o) ->
  inv (Global (A:=lamport) (set (st g) n s) (post (A:=lamport) n o ++ net g)).
Proof.
  intros I E. unfold do_release in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as <- <-.
  set (s := mk _ _ _ _ _ _). set (r := Release (clock (st g n)) (my (st g n))).
  destruct (i_inside _ I n Ep) as [(q & Eq) _].
  assert (Ch : forall x y, chan (post (A:=lamport) n (map (fun p => (p, r)) (peers n)) ++ net g) x y
    = if node_eq n x then if node_eq y n then chan (net g) x y else r :: chan (net g) x y else chan (net g) x y).
  { intros x y. rewrite chan_app, (chan_post_each (A:=lamport)) by auto. rewrite in_peers. destruct (node_eq n x), (node_eq y n); auto. }
  set (net' := post (A:=lamport) n (map (fun p => (p, r)) (peers n)) ++ net g) in *.
  assert (Old : forall x y m, In m (chan (net g) x y) -> In m (chan net' x y)).
  { intros x y m H. rewrite Ch. destruct (node_eq n x), (node_eq y n); simpl; auto. }
  assert (New : forall x y m, In m (chan net' x y) -> In m (chan (net g) x y) \/ (x = n /\ m = r)).
  { intros x y m. rewrite Ch. destruct (node_eq n x) as [<-|], (node_eq y n); simpl; intuition. }
  assert (Cl : forall x, clock (set (st g) n s x) = clock (st g x))
    by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  assert (My : forall x, my (set (st g) n s x) = my (st g x))
    by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  assert (As : forall x, asking (set (st g) n s x) -> x <> n /\ asking (st g x)).
  { intros x. unfold set, asking. destruct (node_eq x n); simpl; [congruence | auto]. }
  split; simpl; fold net'; try (intros x; rewrite ?Cl, ?My).
  - intros y m H. destruct (New x y m H) as [H'|[-> ->]]; [now apply (i_clock _ I x y) | simpl; auto].
  - apply (i_my _ I).
  - rewrite Ch. destruct (node_eq n x) as [<-|]; [destruct (node_eq n n); [|congruence]|]; apply (i_none _ I).
  - intros y. rewrite Ch. pose proof (i_order _ I x y). destruct (node_eq n x), (node_eq y n); simpl; auto.
  - intros y tm r0 H. destruct (New x y _ H) as [H'|[-> [= -> ->]]].
    + destruct (i_release _ I x y tm r0 H') as [H1 H2]. split; auto. intros A. apply H2. now apply As.
    + split; auto. intros A. apply As in A. tauto.
  - intros y Nxy A. apply As in A as [Nx A]. destruct (i_there _ I x y Nxy A) as [H|H]; [left|right; now apply Old].
    unfold set. destruct (node_eq y n) as [->|]; auto. simpl. rewrite Eq in *. destruct H as [H|H]; [congruence | auto].
  - intros y t0 A Hh Ht. apply As in A as [Ny A]. rewrite My. unfold set in Hh. destruct (node_eq y n); [congruence|].
    destruct (New x y _ Ht) as [H'|[_ H']]; [now apply (i_later _ I x y) | discriminate].
  - intros y A Hh. apply As in A as [Ny A]. rewrite My. unfold set in Hh. destruct (node_eq y n); [congruence|].
    now apply (i_heard _ I).
  - intros y. unfold set. destruct (node_eq y n) as [->|]; [auto | apply (i_idle _ I)].
  - unfold set. destruct (node_eq x n) as [->|]; [|apply (i_sorted _ I)]. simpl.
    pose proof (i_sorted _ I n) as S. rewrite Eq in *. now destruct S.
  - unfold set. destruct (node_eq x n) as [->|]; [discriminate | apply (i_inside _ I)].
  - intros y Nxy Hy A. apply As in A as [Nx A]. rewrite My. unfold set in Hy.
    destruct (node_eq y n); [discriminate | now apply (i_first _ I)].
Qed.

Lemma step_deliver_inv g l1 l2 from n m s o : inv g ->
  net g = l1 ++ (from, n, m) :: l2 -> (forall m', ~ In (from, n, m') l2) ->
  do_receive n (st g n) from m = (s, o) ->
  inv (Global (A:=lamport) (set (st g) n s) (post (A:=lamport) n o ++ l1 ++ l2)).
Proof.
  intros I En Ff E.
  assert (Cd : forall x y, chan (net g) x y =
    chan (l1 ++ l2) x y ++ (if node_eq from x then if node_eq n y then [m] else [] else []))
    by (intros x y; rewrite En; now apply chan_deliver).
  assert (Cm : chan (net g) from n = chan (l1 ++ l2) from n ++ [m])
    by (rewrite Cd; destruct (node_eq from from), (node_eq n n); congruence).
  assert (Hin : In m (chan (net g) from n)) by (rewrite Cm; apply in_or_app; simpl; auto).
  assert (Nf : from <> n) by (intros ->; now rewrite (i_none _ I) in Hin).
  assert (Sub : forall x y k, In k (chan (l1 ++ l2) x y) -> In k (chan (net g) x y))
    by (intros x y k H; rewrite Cd; apply in_or_app; auto).
  unfold do_receive in E. set (t := max (clock (st g n)) (time m)) in *.
  set (q := match m with Request t => insert (t, from) (queue (st g n)) | Ack _ => queue (st g n)
            | Release _ r => remove (r, from) (queue (st g n)) end) in *.
  set (later := match ph (st g n) with Waiting => my (st g n) <=? time m | _ => false end) in *.
  set (h := if later then set (heard (st g n)) from true else heard (st g n)) in *.
  injection E as Es Eo. apply enter_facts in Es as (F1 & F2 & F3 & F4 & F5). simpl in F1, F2, F3, F4, F5.
  assert (Lt : later = true -> my (st g n) <= time m).
  { unfold later. destruct (ph (st g n)); try discriminate. apply Nat.leb_le. }
  assert (Hh : forall x, h x = true -> heard (st g n) x = true \/ (x = from /\ later = true)).
  { intros x. unfold h. destruct later; auto. unfold set. destruct (node_eq x from); auto. }
  assert (As : forall x, asking (set (st g) n s x) <-> asking (st g x)).
  { intros x. unfold set, asking. destruct (node_eq x n) as [->|]; [|tauto].
    destruct F5 as [->|(-> & -> & _)]; [tauto|]. split; discriminate. }
  assert (My : forall x, my (set (st g) n s x) = my (st g x))
    by (intros x; unfold set; destruct (node_eq x n) as [->|]; auto).
  assert (Cl : forall x, clock (st g x) <= clock (set (st g) n s x))
    by (intros x; unfold set; destruct (node_eq x n) as [->|]; [rewrite F1; unfold t|]; lia).
  (* the channels afterwards *)
  assert (Co : forall x y, exists a, chan (post (A:=lamport) n o ++ l1 ++ l2) x y = a ++ chan (l1 ++ l2) x y /\
    (a = [] \/ (x = n /\ y = from /\ a = [Ack t]))).
  { intros x y. rewrite chan_app, <- Eo. destruct m as [tm|tm|tm r]; [|exists []; simpl; auto|exists []; simpl; auto].
    destruct (_ || _); [|exists []; simpl; auto]. rewrite (chan_post_one (A:=lamport)).
    destruct (node_eq n x) as [<-|]; [destruct (node_eq from y) as [<-|]|]; eauto 10. }
  set (net' := post (A:=lamport) n o ++ l1 ++ l2) in *.
  assert (Old : forall x y k, In k (chan (l1 ++ l2) x y) -> In k (chan net' x y)).
  { intros x y k H. destruct (Co x y) as (a & -> & _). apply in_or_app. auto. }
  assert (New : forall x y k, In k (chan net' x y) -> In k (chan (l1 ++ l2) x y) \/ (x = n /\ k = Ack t)).
  { intros x y k. destruct (Co x y) as (a & -> & [->|(-> & -> & ->)]); simpl; intuition. }
  (* the parts that the last one needs *)
  assert (There : forall x y, x <> y -> asking (st g x) ->
    In (my (st g x), x) (queue (set (st g) n s y)) \/ In (Request (my (st g x))) (chan net' x y)).
  { intros x y Nxy A. unfold set. destruct (node_eq y n) as [->|Ny].
    - rewrite F3. destruct (i_there _ I x n Nxy A) as [H|H].
      + left. unfold q. destruct m as [tm|tm|tm r]; auto; [apply in_insert; auto|].
        apply kept_remove; auto. intros [= Er ->]. destruct (i_release _ I from n tm r Hin) as [_ X].
        specialize (X A). lia.
      + rewrite Cd in H. apply in_app_or in H as [H|H]; [right; now apply Old|].
        destruct (node_eq from x) as [<-|], (node_eq n n); simpl in H; try tauto. destruct H as [->|[]].
        left. unfold q. apply in_insert. auto.
    - destruct (i_there _ I x y Nxy A) as [H|H]; auto. right. apply Old. rewrite Cd in H.
      apply in_app_or in H as [H|H]; auto. destruct (node_eq from x), (node_eq n y); simpl in H; congruence || tauto. }
  assert (Later : forall x t0, asking (st g n) -> h x = true -> In (Request t0) (chan net' x n) -> my (st g n) < t0).
  { intros x t0 A H Ht. destruct (New x n _ Ht) as [Ht'|[_ [=]]].
    destruct (Hh x H) as [H'|[-> L]]; [now apply (i_later _ I x n t0 A H'), Sub|].
    pose proof (i_order _ I from n) as Or. rewrite Cm in Or. apply ordered_last in Or as [_ Or].
    specialize (Or t0 Ht'). specialize (Lt L). lia. }
  assert (Sorted : sorted q).
  { unfold q. pose proof (i_sorted _ I n). destruct m; auto using sorted_insert, sorted_remove. }
  assert (Inside_ : ph s = Inside -> (exists q', q = (my (st g n), n) :: q') /\ forall x, x <> n -> h x = true).
  { intros H. destruct F5 as [F5|(_ & _ & F5)].
    - rewrite H in F5. symmetry in F5. destruct (i_inside _ I n F5) as [(q' & Eq) Hd].
      assert (Lf : later = false) by (unfold later; now rewrite F5).
      split; [|intros x Nx; unfold h; rewrite Lf; auto].
      unfold q. rewrite Eq. destruct m as [tm|tm|tm r]; eauto.
      + simpl. rewrite earlier_number; eauto.
        apply (i_later _ I from n tm); auto; [unfold asking; congruence].
      + simpl. destruct (same_id (my (st g n), n) (r, from)) eqn:Ei; eauto.
        apply same_id_spec in Ei. congruence.
    - apply is_first_spec in F5. exact F5. }
  split; simpl; fold net'.
  - intros x y k H. destruct (New x y k H) as [H'|[-> ->]].
    + eapply Nat.le_trans; [|apply Cl]. now apply (i_clock _ I x y), Sub.
    + rewrite set_same, F1. auto.
  - intros x. rewrite My. eapply Nat.le_trans; [|apply Cl]. apply (i_my _ I).
  - intros x. destruct (Co x x) as (a & -> & [->|(-> & X & _)]); [|congruence]. simpl.
    pose proof (i_none _ I x) as Z. rewrite Cd in Z. now apply app_eq_nil in Z.
  - intros x y. assert (Or : ordered (chan (l1 ++ l2) x y)).
    { pose proof (i_order _ I x y) as Or. rewrite Cd in Or.
      destruct (node_eq from x), (node_eq n y); rewrite ?app_nil_r in Or; auto. now apply ordered_last in Or. }
    destruct (Co x y) as (a & -> & [->|(_ & _ & ->)]); simpl; auto.
  - intros x y tm r H. rewrite My, As. destruct (New x y _ H) as [H'|[_ [=]]]. now apply (i_release _ I x y tm), Sub.
  - intros x y Nxy. rewrite My, As. now apply There.
  - intros x y t0 A H Ht. rewrite My. rewrite As in A. unfold set in H. destruct (node_eq y n) as [->|Ny].
    + rewrite F4 in H. now apply (Later x).
    + destruct (New x y _ Ht) as [H'|[_ [=]]]. now apply (i_later _ I x y), Sub.
  - intros x y A H. rewrite My. rewrite As in A. eapply Nat.le_trans; [|apply Cl]. unfold set in H.
    destruct (node_eq y n) as [->|Ny]; [|now apply (i_heard _ I)].
    rewrite F4 in H. destruct (Hh x H) as [H'|[-> L]]; [now apply (i_heard _ I)|].
    pose proof (i_clock _ I from n m Hin). specialize (Lt L). lia.
  - intros x y H. unfold set in *. destruct (node_eq y n) as [->|Ny]; [|now apply (i_idle _ I)].
    rewrite F4. assert (Ei : ph (st g n) = Idle) by (destruct F5 as [F5|(_ & F5 & _)]; congruence).
    unfold h, later. rewrite Ei. now apply (i_idle _ I).
  - intros y. unfold set. destruct (node_eq y n) as [->|]; [now rewrite F3 | apply (i_sorted _ I)].
  - intros y. unfold set. destruct (node_eq y n) as [->|]; [|apply (i_inside _ I)]. rewrite F2, F3, F4. exact Inside_.
  - intros x y Nxy Hy A. rewrite !My. rewrite As in A. unfold set in Hy.
    destruct (node_eq y n) as [->|Ny]; [|now apply (i_first _ I)].
    destruct (Inside_ Hy) as [(q' & Eq) Hd]. destruct (There x n Nxy A) as [H|H].
    + rewrite set_same, F3, Eq in H. destruct H as [H|H]; [congruence|].
      rewrite Eq in Sorted. destruct Sorted as [Le _]. apply earlier_total; [simpl; auto|]. now apply Le.
    + apply earlier_number. apply (Later x); auto. apply As. unfold asking. rewrite set_same. congruence.
Qed.

Theorem lamport_mutual_exclusion root held g :
  reachable lamport Fifo (begins (A:=lamport) (initial root held)) g -> mutual_exclusion g.
Proof.
  intros R. assert (I : inv g).
  { revert g R. apply invariant_holds.
    - intros g [Es En]. assert (Z : forall x y, chan (net g) x y = []) by (rewrite En; reflexivity).
      split; intros; rewrite ?Z in *; simpl; auto; try (simpl in *; tauto); rewrite ?Es in *;
        unfold initial, asking, first_phase in *; simpl in *; auto.
      + destruct (node_eq x root) as [->|], held; try congruence. left. simpl. auto.
      + destruct (node_eq y root) as [->|], held; simpl in *; congruence || auto.
      + destruct held; simpl; intuition.
      + destruct (node_eq y root) as [->|], held; try congruence. split; [eauto|].
        intros x Nx. simpl. repeat match goal with |- context [node_eq ?u ?v] => destruct (node_eq u v) end; congruence.
      + destruct (node_eq y root) as [->|], (node_eq x root) as [->|], held; congruence.
    - intros g g' I S. destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En Ov E | g l1 l2 p Ec _].
      + now apply step_request_inv.
      + now apply step_release_inv.
      + apply (step_deliver_inv g l1 l2 from n m s o); auto.
      + discriminate. }
  intros x y Hx Hy. destruct (node_eq x y) as [|Nxy]; auto. exfalso. simpl in Hx, Hy.
  apply (earlier_asym (my (st g x), x) (my (st g y), y)); apply (i_first _ I); auto; unfold asking; congruence.
Qed.
End Lamport.
