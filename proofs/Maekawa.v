(* Maekawa 1985, "A square root N algorithm for mutual exclusion in decentralized systems", with the
   repairs R1 and R2.  Mutual exclusion for any family of sets of which every two intersect, over
   channels that may reorder and lose messages.

   The lock of a member is a token of its own kind.  It is at the member while that is not locked,
   at the node that holds the member's LOCKED, or in a LOCKED, RELINQUISH or RELEASE in flight.  No
   handler call makes a lock out of nothing; repair R2 is what this needs.  Two nodes that are inside
   hold the locks of all their members, and have a member in common.

   A node that is in its own set handles messages to itself at once.  Such calls nest, and [depth]
   bounds the nesting: a message beyond it is lost.  The comparison with the Rust code shows that a
   depth of 100 is enough in small clusters; the theorem is true for any depth.

   Rust: crates/algorithms/src/maekawa/, without the variant `as-published`.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token Order.
Import ListNotations.

Section Maekawa.
Context {N : Nodes} {O : NodeOrder N}.
Variable members : node -> list node.
Hypothesis members_once : forall n, NoDup (members n).
Hypothesis members_meet : forall x y, exists m, In m (members x) /\ In m (members y).

Inductive message :=
| Request (k : nat) | Locked (k : nat) | Failed (k : nat)
| Inquire (k : nat) | Relinquish (k : nat) | Release (k : nat).
Inductive standing := SOpen | SLocked | SLockedInquired | SInquired.
Record state := mk {
  ph : phase;
  my : nat;
  seen : nat;
  at_member : node -> standing;
  failed : bool;
  locking : option request_id;             (* as a member *)
  inquired : bool;
  waiting : list request_id }.

Definition is_locked (x : standing) : bool :=
  match x with SLocked | SLockedInquired => true | _ => false end.
Definition with_standing (s : state) (m : node) (x : standing) : state :=
  mk (ph s) (my s) (seen s) (set (at_member s) m x) (failed s) (locking s) (inquired s) (waiting s).
Definition with_member (s : state) (l : option request_id) (i : bool) (q : list request_id) : state :=
  mk (ph s) (my s) (seen s) (at_member s) (failed s) l i q.
Definition see (s : state) (k : nat) : state :=
  mk (ph s) (my s) (max (seen s) k) (at_member s) (failed s) (locking s) (inquired s) (waiting s).
Definition waits_with (s : state) (k : nat) : bool :=
  match ph s with Waiting => my s =? k | _ => false end.

Definition has_earlier (r : request_id) (q : list request_id) : bool :=
  match q with x :: _ => earlier x r | [] => false end.

(* Step (5). *)
Definition enter (s : state) : state :=
  mk Inside (my s) (seen s) (fun m => if is_locked (at_member s m) then SLocked else at_member s m)
     false (locking s) (inquired s) (waiting s).
Definition all_locked (me : node) (s : state) : bool :=
  forallb (fun m => is_locked (at_member s m)) (members me).

Section Steps.
(* Sends a message, or handles it if it is for this node itself. *)
Variable tell : state -> node -> message -> state * outbox message.

Fixpoint tell_each (s : state) (l : list (node * message)) : state * outbox message :=
  match l with
  | [] => (s, [])
  | (to, m) :: l' =>
      let (s1, o1) := tell s to m in
      let (s2, o2) := tell_each s1 l' in (s2, o1 ++ o2)
  end.

Definition lock_for (s : state) (r : request_id) (i : bool) (q : list request_id) : state * outbox message :=
  tell (with_member s (Some r) i q) (snd r) (Locked (fst r)).

(* Step (2), with repair R1. *)
Definition on_request (s0 : state) (r : request_id) : state * outbox message :=
  let s := see s0 (fst r) in
  match locking s with
  | None => lock_for s r (inquired s) (waiting s)
  | Some l =>
      let s1 := with_member s (Some l) (inquired s) (insert r (waiting s)) in
      if has_earlier r (waiting s) || earlier l r then tell s1 (snd r) (Failed (fst r))
      else if negb (inquired s)
      then tell (with_member s1 (Some l) true (waiting s1)) (snd l) (Inquire (fst l))
      else match waiting s with
           | displaced :: _ => tell s1 (snd displaced) (Failed (fst displaced))
           | [] => (s1, [])
           end
  end.
(* Step (4). *)
Definition on_relinquish (s : state) : state * outbox message :=
  match locking s, waiting s with
  | Some relieved, next :: rest => lock_for s next false (insert relieved rest)
  | l, q => (with_member s l false q, [])
  end.
(* Step (7). *)
Definition on_release (s : state) : state * outbox message :=
  match waiting s with
  | next :: rest => lock_for s next false rest
  | [] => (with_member s None false [], [])
  end.
Definition relinquish (s : state) (m : node) : state * outbox message :=
  tell (with_standing s m SOpen) m (Relinquish (my s)).
(* Step (3), with repair R2: a lock that is not held is not given back. *)
Definition relinquish_if_inquired (s : state) (m : node) : state * outbox message :=
  match at_member s m with SLockedInquired => relinquish s m | _ => (s, []) end.
Fixpoint relinquish_each (s : state) (l : list node) : state * outbox message :=
  match l with
  | [] => (s, [])
  | m :: l' =>
      let (s1, o1) := relinquish_if_inquired s m in
      let (s2, o2) := relinquish_each s1 l' in (s2, o1 ++ o2)
  end.
Definition on_locked (me : node) (s : state) (m : node) : state * outbox message :=
  if in_dec node_eq m (members me) then
    match ph s with
    | Waiting =>
        let s1 := with_standing s m
          match at_member s m with SOpen | SLocked => SLocked | _ => SLockedInquired end in
        if all_locked me s1 then (enter s1, [])
        else if failed s then relinquish_if_inquired s1 m else (s1, [])
    | _ => (s, [])
    end
  else (s, []).
Definition on_failed (me : node) (s : state) (k : nat) : state * outbox message :=
  if waits_with s k && negb (failed s)
  then relinquish_each (mk (ph s) (my s) (seen s) (at_member s) true (locking s) (inquired s) (waiting s)) (members me)
  else (s, []).
Definition on_inquire (me : node) (s : state) (m : node) (k : nat) : state * outbox message :=
  if in_dec node_eq m (members me) then
    if waits_with s k then
      let s1 := with_standing s m
        match at_member s m with SLocked | SLockedInquired => SLockedInquired | _ => SInquired end in
      if failed s then relinquish_if_inquired s1 m else (s1, [])
    else (s, [])
  else (s, []).
Definition on_message (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request k => on_request s (k, from)
  | Locked _ => on_locked me s from
  | Failed k => on_failed me s k
  | Inquire k => on_inquire me s from k
  | Relinquish _ => on_relinquish s
  | Release _ => on_release s
  end.
End Steps.

Fixpoint tell (depth : nat) (me : node) (s : state) (to : node) (m : message) : state * outbox message :=
  if node_eq to me then
    match depth with
    | 0 => (s, [])
    | S d => on_message (tell d me) me s me m
    end
  else (s, [(to, m)]).

Variable depth : nat.

(* Step (1). *)
Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let k := S (seen s) in
      Some (tell_each (tell depth me)
              (mk Waiting k k (at_member s) (failed s) (locking s) (inquired s) (waiting s))
              (map (fun m => (m, Request k)) (members me)))
  | _ => None
  end.
(* Step (6). *)
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside =>
      Some (tell_each (tell depth me)
              (mk Idle (my s) (seen s) (fun _ => SOpen) (failed s) (locking s) (inquired s) (waiting s))
              (map (fun m => (m, Release (my s))) (members me)))
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  on_message (tell depth me) me s from m.

Definition maekawa : algorithm := Algorithm state message do_request do_release do_receive ph.

(* A node that starts inside has locked its members for a request with the number 0. *)
Definition initial (root : node) (held : bool) (me : node) : state :=
  let mine := held && if node_eq me root then true else false in
  let owned := held && if in_dec node_eq me (members root) then true else false in
  mk (first_phase root held me) 0 0
     (fun m => if mine && (if in_dec node_eq m (members root) then true else false) then SLocked else SOpen)
     false (if owned then Some (0, root) else None) false [].

(* ------------------------------------------------------------------ the locks *)
Definition is (x y : node) : nat := if node_eq x y then 1 else 0.
Definition free (s : state) : nat := match locking s with None => 1 | Some _ => 0 end.
Definition held_lock (k : node) (s : state) : nat := if is_locked (at_member s k) then 1 else 0.
Definition has (k n : node) (s : state) : nat := is k n * free s + held_lock k s.
Definition carries (k from to : node) (m : message) : nat :=
  match m with
  | Locked _ => is k from
  | Relinquish _ | Release _ => is k to
  | _ => 0
  end.
Notation sent := (sent maekawa node carries).

(* A node that is inside holds the locks of all its members, and defers no INQUIRE. *)
Definition J (n : node) (s : state) : Prop :=
  ph s = Inside -> forall m, In m (members n) -> at_member s m = SLocked.

(* What a step does at node [n]: it keeps [J], and makes no lock beyond the [extra] ones. *)
Definition sound (n : node) (s : state) (extra : node -> nat) (r : state * outbox message) : Prop :=
  J n (fst r) /\ forall k, has k n (fst r) + sent k n (snd r) <= has k n s + extra k.

Lemma sent_app k n o1 o2 : sent k n (o1 ++ o2) = sent k n o1 + sent k n o2.
Proof. unfold Token.sent. now rewrite map_app, list_sum_app. Qed.

Lemma sound_stay n s s' extra :
  J n s' -> (forall k, has k n s' <= has k n s + extra k) -> sound n s extra (s', []).
Proof. intros Hj L. split; auto. intros k. specialize (L k). unfold Token.sent. simpl. lia. Qed.

Section Sound.
Variable n : node.
Variable tell : state -> node -> message -> state * outbox message.
Hypothesis tell_sound : forall s to m, J n s -> sound n s (fun k => carries k n to m) (tell s to m).

Lemma then_tell s s1 to m extra :
  J n s1 -> (forall k, has k n s1 + carries k n to m <= has k n s + extra k) ->
  sound n s extra (tell s1 to m).
Proof.
  intros Hj L. destruct (tell_sound s1 to m Hj) as [H1 H2]. split; auto.
  intros k. specialize (L k). specialize (H2 k). lia.
Qed.

Lemma lock_for_sound s r i q extra :
  J n s -> (forall k, is k n <= is k n * free s + extra k) -> sound n s extra (lock_for tell s r i q).
Proof.
  intros Hj L. apply then_tell; [exact Hj|]. intros k. specialize (L k).
  unfold has, free, held_lock in *. simpl. lia.
Qed.

Lemma on_request_sound s r : J n s -> sound n s (fun _ => 0) (on_request tell s r).
Proof.
  intros Hj. unfold on_request. change (locking (see s (fst r))) with (locking s).
  destruct (locking s) as [l|] eqn:El.
  - assert (Z : forall s1 to m, J n s1 -> at_member s1 = at_member s -> locking s1 = Some l ->
              (forall k, carries k n to m = 0) -> sound n s (fun _ => 0) (tell s1 to m)).
    { intros s1 to m J1 E1 E2 E3. apply then_tell; auto. intros k. rewrite E3.
      unfold has, free, held_lock. rewrite E1, E2, El. lia. }
    destruct (_ || _); [apply Z; auto|]. destruct (negb _); [apply Z; auto|].
    destruct (waiting _) as [|d q]; [|apply Z; auto].
    apply sound_stay; auto. intros k. unfold has, free, held_lock. simpl. rewrite El. lia.
  - assert (F : free (see s (fst r)) = 1) by (unfold free; simpl; now rewrite El).
    assert (E : forall k, has k n (see s (fst r)) = has k n s) by reflexivity.
    destruct (lock_for_sound (see s (fst r)) r (inquired (see s (fst r))) (waiting (see s (fst r))) (fun _ => 0))
      as [H1 H2]; auto.
    + intros k. rewrite F. lia.
    + split; auto.
Qed.

Lemma on_relinquish_sound s : J n s -> sound n s (fun k => is k n) (on_relinquish tell s).
Proof.
  intros Hj. unfold on_relinquish.
  assert (Z : sound n s (fun k => is k n) (with_member s (locking s) false (waiting s), [])).
  { apply sound_stay; auto. intros k. unfold has, free, held_lock. simpl. lia. }
  destruct (locking s); auto. destruct (waiting s); auto. apply lock_for_sound; auto. intros. lia.
Qed.

Lemma on_release_sound s : J n s -> sound n s (fun k => is k n) (on_release tell s).
Proof.
  intros Hj. unfold on_release. destruct (waiting s).
  - apply sound_stay; auto. intros k. unfold has, free, held_lock. simpl. lia.
  - apply lock_for_sound; auto. intros. lia.
Qed.

Lemma relinquish_sound s m : In m (members n) -> J n s -> sound n s (fun _ => 0) (relinquish_if_inquired tell s m).
Proof.
  intros Hm Hj. unfold relinquish_if_inquired. destruct (at_member s m) eqn:E;
    try (apply sound_stay; auto; intros; lia).
  apply then_tell.
  - intros Hi. specialize (Hj Hi m Hm). congruence.
  - intros k. unfold has, free, held_lock, is. simpl. unfold set, is.
    destruct (node_eq k m) as [->|]; [rewrite E; simpl|]; lia.
Qed.

Lemma relinquish_each_sound l : incl l (members n) ->
  forall s, J n s -> sound n s (fun _ => 0) (relinquish_each tell s l).
Proof.
  induction l as [|m l IH]; intros Il s Hj; simpl; [apply sound_stay; auto; intros; lia|].
  destruct (relinquish_if_inquired tell s m) as [s1 o1] eqn:E1.
  destruct (relinquish_each tell s1 l) as [s2 o2] eqn:E2.
  assert (H1 : sound n s (fun _ => 0) (s1, o1)) by (rewrite <- E1; apply relinquish_sound; auto; apply Il; now left).
  assert (H2 : sound n s1 (fun _ => 0) (s2, o2)).
  { rewrite <- E2. apply IH; [|apply H1]. intros x Hx. apply Il. now right. }
  split; [apply H2|]. intros k. destruct H1 as [_ H1], H2 as [_ H2]. specialize (H1 k). specialize (H2 k).
  simpl in *. rewrite sent_app. lia.
Qed.

Lemma on_locked_sound s m : J n s -> sound n s (fun k => is k m) (on_locked tell n s m).
Proof.
  intros Hj. unfold on_locked.
  assert (Stay : sound n s (fun k => is k m) (s, [])) by (apply sound_stay; auto; intros; lia).
  destruct (in_dec node_eq m (members n)) as [Hm|]; auto. destruct (ph s) eqn:Ep; auto.
  set (s1 := with_standing s m _).
  assert (L : forall k, has k n s1 <= has k n s + is k m).
  { intros k. unfold has, free, held_lock, is, s1. simpl. unfold set.
    destruct (node_eq k m) as [->|]; [|lia]. destruct (at_member s m); simpl; lia. }
  assert (J1 : J n s1) by (intros Hi; simpl in Hi; congruence).
  destruct (all_locked n s1) eqn:Ea.
  - apply sound_stay.
    + intros _ x Hx. unfold all_locked in Ea. rewrite forallb_forall in Ea.
      specialize (Ea x Hx). change (at_member (enter s1) x) with (if is_locked (at_member s1 x) then SLocked else at_member s1 x).
      now rewrite Ea.
    + intros k. specialize (L k). unfold has, free, held_lock in *.
      change (locking (enter s1)) with (locking s1).
      change (at_member (enter s1) k) with (if is_locked (at_member s1 k) then SLocked else at_member s1 k).
      destruct (is_locked (at_member s1 k)) eqn:E; rewrite ?E; cbn [is_locked]; lia.
  - destruct (failed s); [|now apply sound_stay].
    destruct (relinquish_sound s1 m Hm J1) as [H1 H2]. split; auto. intros k. specialize (H2 k). specialize (L k). lia.
Qed.

Lemma on_failed_sound s k : J n s -> sound n s (fun _ => 0) (on_failed tell n s k).
Proof.
  intros Hj. unfold on_failed. destruct (_ && _); [|apply sound_stay; auto; intros; lia].
  destruct (relinquish_each_sound (members n) (incl_refl _)
    (mk (ph s) (my s) (seen s) (at_member s) true (locking s) (inquired s) (waiting s))) as [H1 H2]; auto.
  split; auto.
Qed.

Lemma on_inquire_sound s m k : J n s -> sound n s (fun _ => 0) (on_inquire tell n s m k).
Proof.
  intros Hj. unfold on_inquire.
  assert (Stay : sound n s (fun _ => 0) (s, [])) by (apply sound_stay; auto; intros; lia).
  destruct (in_dec node_eq m (members n)) as [Hm|]; auto. destruct (waits_with s k) eqn:Ew; auto.
  set (s1 := with_standing s m _).
  assert (L : forall k, has k n s1 <= has k n s + 0).
  { intros j. unfold has, free, held_lock, s1. simpl. unfold set.
    destruct (node_eq j m) as [->|]; [destruct (at_member s m); simpl|]; lia. }
  assert (J1 : J n s1) by (intros Hi; unfold waits_with in Ew; simpl in Hi; rewrite Hi in Ew; discriminate).
  destruct (failed s); [|now apply sound_stay].
  destruct (relinquish_sound s1 m Hm J1) as [H1 H2]. split; auto. intros j. specialize (H2 j). specialize (L j). lia.
Qed.

Lemma on_message_sound s from m : J n s -> sound n s (fun k => carries k from n m) (on_message tell n s from m).
Proof.
  intros Hj. destruct m; simpl.
  - now apply on_request_sound.
  - now apply on_locked_sound.
  - now apply on_failed_sound.
  - now apply on_inquire_sound.
  - now apply on_relinquish_sound.
  - now apply on_release_sound.
Qed.

Lemma tell_each_sound l : forall s, J n s ->
  sound n s (fun k => list_sum (map (fun p => carries k n (fst p) (snd p)) l)) (tell_each tell s l).
Proof.
  induction l as [|[to m] l IH]; intros s Hj; simpl; [apply sound_stay; auto; intros; lia|].
  destruct (tell s to m) as [s1 o1] eqn:E1. destruct (tell_each tell s1 l) as [s2 o2] eqn:E2.
  destruct (tell_sound s to m Hj) as [H1 H1']. rewrite E1 in H1, H1'. simpl in H1, H1'.
  destruct (IH s1 H1) as [H2 H2']. rewrite E2 in H2, H2'. simpl in H2, H2'.
  split; auto. intros k. specialize (H1' k). specialize (H2' k). simpl. rewrite sent_app. lia.
Qed.
End Sound.

Lemma tell_sound d n : forall s to m, J n s -> sound n s (fun k => carries k n to m) (tell d n s to m).
Proof.
  induction d as [|d IH]; intros s to m Hj; simpl; destruct (node_eq to n) as [->|].
  - apply sound_stay; auto. intros. lia.
  - split; auto. intros k. unfold Token.sent. simpl. lia.
  - now apply on_message_sound.
  - split; auto. intros k. unfold Token.sent. simpl. lia.
Qed.

Lemma releases k n l j : NoDup l ->
  list_sum (map (fun p => carries k n (fst p) (snd p)) (map (fun m => (m, Release j)) l))
  = if in_dec node_eq k l then 1 else 0.
Proof.
  intros Nd. rewrite map_map. simpl. induction l as [|x l IH]; auto. inversion Nd; subst.
  change (is k x + list_sum (map (fun m => is k m) l) = if in_dec node_eq k (x :: l) then 1 else 0).
  rewrite IH by auto. unfold is.
  destruct (node_eq k x), (in_dec node_eq k l), (in_dec node_eq k (x :: l)) as [I|I]; simpl in *; subst;
    try tauto; try lia. destruct I; congruence || tauto.
Qed.

Lemma no_locks (l : list node) : list_sum (map (fun _ => 0) l) = 0.
Proof. induction l; auto. Qed.

Lemma maekawa_call n s i s' o : J n s -> call maekawa n s i s' o ->
  J n s' /\ forall k, has k n s' + sent k n o <= has k n s + received maekawa node carries k n i.
Proof.
  intros Hj C. destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
  - destruct (on_message_sound n (tell depth n) (tell_sound depth n) s from m Hj) as [H1 H2].
    unfold do_receive in C. rewrite C in H1, H2. auto.
  - unfold do_request in C. destruct (ph s) eqn:Ep; try discriminate. injection C as C.
    match type of C with tell_each _ ?s1 ?l = _ =>
      destruct (tell_each_sound n (tell depth n) (tell_sound depth n) l s1) as [H1 H2]; [discriminate|] end.
    rewrite C in H1, H2. split; auto. intros k. specialize (H2 k). simpl in *.
    rewrite map_map in H2. simpl in H2.
    rewrite no_locks in H2. unfold has, free, held_lock in *. simpl in *. lia.
  - unfold do_release in C. destruct (ph s) eqn:Ep; try discriminate. injection C as C.
    match type of C with tell_each _ ?s1 ?l = _ =>
      destruct (tell_each_sound n (tell depth n) (tell_sound depth n) l s1) as [H1 H2]; [discriminate|] end.
    rewrite C in H1, H2. split; auto. intros k. specialize (H2 k). rewrite releases in H2 by auto. simpl in *.
    unfold has, free, held_lock in *. simpl in *.
    destruct (in_dec node_eq k (members n)) as [I|I]; [rewrite (Hj Ep k I); simpl|]; lia.
Qed.

Theorem maekawa_mutual_exclusion c root held g :
  reachable maekawa c (begins (A:=maekawa) (initial root held)) g -> mutual_exclusion g.
Proof.
  intros R. apply (token_mutual_exclusion maekawa c node has carries J).
  - intros n s i s' o Hj C. now apply (maekawa_call n s i s' o).
  - intros k n s i s' o Hj C. now apply (maekawa_call n s i s' o).
  - intros x sx y sy _ Jx Jy Hx Hy. destruct (members_meet x y) as (m & Mx & My). exists m.
    unfold has, held_lock. simpl in Hx, Hy. rewrite (Jx Hx m Mx), (Jy Hy m My). simpl. lia.
  - apply reachable_from with (begins (A:=maekawa) (initial root held)); auto. clear g R. intros g [Es En].
    apply one_at_root with
      (root := fun k => if held && (if in_dec node_eq k (members root) then true else false) then root else k); auto.
    + intros k x. rewrite Es. unfold has, free, held_lock, is, initial. simpl.
      destruct held; simpl; destruct (in_dec node_eq k (members root)) as [I|I]; simpl;
        destruct (node_eq x root), (node_eq k x); simpl; subst; try congruence; try lia;
        repeat match goal with |- context [in_dec node_eq ?u ?l] => destruct (in_dec node_eq u l); simpl end;
        try congruence; try tauto; try lia.
    + intros k. rewrite Es. unfold has, free, held_lock, is, initial. simpl.
      destruct held; simpl; destruct (in_dec node_eq k (members root)) as [I|I]; simpl;
        try (destruct (node_eq root root); [|congruence]);
        try (destruct (node_eq k root) as [->|]); simpl;
        repeat match goal with |- context [if in_dec node_eq ?u ?l then true else false] =>
          destruct (in_dec node_eq u l); simpl end;
        repeat match goal with |- context [node_eq ?u ?v] => destruct (node_eq u v); simpl end;
        try congruence; try tauto; lia.
    + intros x. rewrite Es. unfold J, initial, first_phase. simpl.
      destruct (node_eq x root) as [->|]; [|discriminate]. destruct held; [|discriminate].
      intros _ m Hm. simpl. now destruct (in_dec node_eq m (members root)).
Qed.
End Maekawa.
