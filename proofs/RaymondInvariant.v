(* Raymond's algorithm on a graph with HOLDERs: the whole invariant, and each step keeps it.

   [small] is what Raymond.v has of one token, here with the edges that it crosses.  [whole] adds
   the rest: each edge has one HOLDER; a node has ASKED exactly if its REQUEST is in flight, or is
   in the queue of its HOLDER, or the PRIVILEGE is on its way back; and going from HOLDER to HOLDER
   leads to the privilege.  [settled] is what a node knows of itself between events.

   Channels may reorder messages, but not lose them.  RaymondTree.v shows that a tree starts so, and
   has the theorems.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Count Raymond.
Import ListNotations.

Section RaymondInvariant.
Context {cluster : Nodes} {strategies : Strategies}.
Variable c : channels.
Hypothesis no_loss : c <> Lossy.

(* How many REQUESTs (PRIVILEGEs) are on their way from [u] to [v]. *)
Definition is_req (m : message) : nat := match m with Privilege => 0 | _ => 1 end.
Definition is_prv (m : message) : nat := match m with Request => 0 | _ => 1 end.
Notation reqs := (count (A:=raymond) is_req).
Notation prvs := (count (A:=raymond) is_prv).
Notation posts := (post (A:=raymond)).
Definition R (g : global raymond) := reqs (net g).
Definition P (g : global raymond) := prvs (net g).

(* ------------------------------------------------------------------ one token, on edges *)
(* At most one token: a node with HOLDER = self, or a PRIVILEGE in flight; USING only with it.
   Nothing is assumed of queues, ASKED, REQUESTs, neighbours, or of what HOLDER points to. *)
Definition at_most_one (f : node -> state) (p : node -> node -> nat) : Prop :=
  (forall x y, holder (f x) = x -> holder (f y) = y -> x = y) /\
  (forall x u v, holder (f x) = x -> p u v = 0) /\
  (forall u v u' v', p u v <> 0 -> p u' v' <> 0 -> u = u' /\ v = v') /\
  (forall u v, p u v <= 1).
Definition using_holds (f : node -> state) : Prop := forall x, ph (f x) = Inside -> holder (f x) = x.
Definition small (f : node -> state) (p : node -> node -> nat) : Prop := at_most_one f p /\ using_holds f.

(* The parts of a step, as changes of one node [n] and of the counts. *)
Section Changes.
Variables f f' : node -> state.
Variable n : node.
Hypothesis others : forall x, x <> n -> f' x = f x.

(* nothing that matters: queues, ASKED, leaving *)
Lemma small_quiet p p' :
  small f p -> (forall u v, p' u v = p u v) ->
  holder (f' n) = holder (f n) -> (ph (f' n) = Inside -> holder (f n) = n) -> small f' p'.
Proof.
  intros [(A & B & C & D) U] Ep Eh Ei.
  assert (H : forall x, holder (f' x) = holder (f x))
    by (intro x; destruct (node_eq x n) as [->|N]; [auto | now rewrite others]).
  split; [split; [|split; [|split]]|].
  - intros x y. rewrite !H. apply A.
  - intros x u v. rewrite H, Ep. apply B.
  - intros u v u' v'. rewrite !Ep. apply C.
  - intros u v. rewrite Ep. apply D.
  - intros x. rewrite H. destruct (node_eq x n) as [->|N]; [auto | rewrite others by auto; apply U].
Qed.

(* HOLDER := self for a PRIVILEGE that is no longer in flight *)
Lemma small_take p p' from :
  small f p -> (forall u v, p u v = p' u v + pair_is from n u v) ->
  holder (f' n) = n -> small f' p'.
Proof.
  intros [(A & B & C & D) U] Ep Eh.
  assert (F : p from n <> 0)
    by (rewrite Ep; unfold pair_is; destruct (node_eq from from), (node_eq n n); congruence || lia).
  assert (Z : forall u v, p' u v = 0).
  { intros u v. specialize (D u v). specialize (C u v from n).
    rewrite (Ep u v) in C, D. unfold pair_is in C, D.
    destruct (node_eq u from), (node_eq v n); try lia;
      destruct (Nat.eq_dec (p' u v) 0); auto; destruct C; auto; try lia; congruence. }
  assert (H : forall x, holder (f' x) = x -> x = n).
  { intros x E. destruct (node_eq x n) as [|N]; auto. rewrite others in E by auto.
    now destruct F; apply (B x). }
  split; [split; [|split; [|split]]|].
  - intros x y Ex Ey. rewrite (H x), (H y); auto.
  - auto.
  - intros u v u' v' N. now rewrite Z in N.
  - intros u v. rewrite Z. lia.
  - intros x. destruct (node_eq x n) as [->|N]; [auto | rewrite others by auto; apply U].
Qed.

(* the holder, not inside, gives the privilege away *)
Lemma small_give p p' w :
  small f p -> holder (f n) = n -> (forall u v, p' u v = p u v + pair_is n w u v) ->
  holder (f' n) = w -> w <> n -> ph (f' n) <> Inside -> small f' p'.
Proof.
  intros [(A & B & C & D) U] Hn Ep Eh Nw Np.
  assert (Z : forall u v, p u v = 0) by (intros u v; apply (B n); auto).
  assert (H : forall x, holder (f' x) <> x).
  { intros x E. destruct (node_eq x n) as [->|N]; [congruence|].
    rewrite others in E by auto. apply N, A; auto. }
  split; [split; [|split; [|split]]|].
  - intros x y E. now apply H in E.
  - intros x u v E. now apply H in E.
  - intros u v u' v'. rewrite !Ep, !Z. unfold pair_is.
    destruct (node_eq u n), (node_eq v w), (node_eq u' n), (node_eq v' w); simpl; intros; try lia; split; congruence.
  - intros u v. rewrite Ep, Z. unfold pair_is. destruct (node_eq u n), (node_eq v w); lia.
  - intros x. destruct (node_eq x n) as [->|N]; [tauto | rewrite others by auto; apply U].
Qed.
End Changes.

(* ------------------------------------------------------------------ the whole invariant *)
Section Whole.
Variable neighbours : node -> list node.
Definition nbr (u v : node) : Prop := In v (neighbours u).
Hypothesis nbr_sym : forall u v, nbr u v -> nbr v u.
Hypothesis nbr_irr : forall u, ~ nbr u u.

Definition hp (f : node -> state) (u v : node) : nat := if node_eq (holder (f u)) v then 1 else 0.
Definition A (f : node -> state) (u v : node) : nat :=
  if node_eq (holder (f u)) v then if asked (f u) then 1 else 0 else 0.
Definition Q (f : node -> state) (v u : node) : nat := count_occ node_eq (queue (f v)) u.
Definition waits (s : state) : nat := match ph s with Waiting => 1 | _ => 0 end.

(* Who goes from HOLDER to HOLDER comes to the privilege, or over the edge that it is crossing. *)
Inductive leads (f : node -> state) (p : node -> node -> nat) : node -> Prop :=
| leads_here x : holder (f x) = x -> leads f p x
| leads_cross x : p x (holder (f x)) <> 0 -> leads f p x
| leads_on x : leads f p (holder (f x)) -> leads f p x.

Record whole (f : node -> state) (r p : node -> node -> nat) : Prop := {
  w_small : small f p;
  w_ask : forall u v, u <> v -> A f u v = r u v + Q f v u + p v u;
  w_self : forall u, Q f u u = waits (f u);
  w_rest : forall u, holder (f u) = u -> asked (f u) = false;
  w_own : forall u, r u u = 0 /\ p u u = 0;
  w_edge : forall u v, nbr u v -> hp f u v + hp f v u = 1 + p u v + p v u;
  w_nbr : forall u, holder (f u) = u \/ nbr u (holder (f u));
  w_leads : forall u, leads f p u }.

(* What is true of a node between events, whatever the others do. *)
Record settled (n : node) (s : state) : Prop := {
  s_idle : holder s = n -> ph s <> Inside -> queue s = [];
  s_asked : holder s <> n -> (asked s = true <-> queue s <> []) }.

Section MoreChanges.
Variables f f' : node -> state.
Variables (n : node) (s' : state).
Hypothesis E : forall x, f' x = if node_eq x n then s' else f x.

Lemma E_n : f' n = s'.
Proof. rewrite E. destruct (node_eq n n); congruence. Qed.
Lemma E_o x : x <> n -> f' x = f x.
Proof. rewrite E. destruct (node_eq x n); congruence. Qed.

Lemma leads_quiet p p' :
  (forall u v, p' u v = p u v) -> holder s' = holder (f n) ->
  forall x, leads f p x -> leads f' p' x.
Proof.
  intros Ep Eh x L.
  assert (H : forall y, holder (f' y) = holder (f y))
    by (intro y; rewrite E; destruct (node_eq y n) as [->|]; auto).
  induction L as [x Hx | x Hx | x _ IH].
  - apply leads_here. now rewrite H.
  - apply leads_cross. now rewrite H, Ep.
  - apply leads_on. now rewrite H.
Qed.

Lemma leads_take p p' from :
  small f p -> (forall u v, p u v = p' u v + pair_is from n u v) -> from <> n ->
  holder (f from) = n -> holder s' = n -> forall x, leads f p x -> leads f' p' x.
Proof.
  intros [(_ & _ & C & _) _] Ep N Hf Hs x L.
  assert (Hn : leads f' p' n) by (apply leads_here; now rewrite E_n).
  assert (F : p from n <> 0)
    by (rewrite Ep; unfold pair_is; destruct (node_eq from from), (node_eq n n); congruence || lia).
  induction L as [x Hx | x Hx | x _ IH]; (destruct (node_eq x n) as [->|Nx]; [exact Hn|]).
  - apply leads_here. now rewrite E_o.
  - destruct (C _ _ _ _ Hx F) as [-> _]. apply leads_on. now rewrite E_o, Hf.
  - apply leads_on. now rewrite E_o.
Qed.

Lemma leads_give p p' w :
  (forall u v, p' u v = p u v + pair_is n w u v) ->
  holder s' = w -> forall x, leads f p x -> leads f' p' x.
Proof.
  intros Ep Hs x L.
  assert (Hn : leads f' p' n).
  { apply leads_cross. rewrite E_n, Hs, Ep. unfold pair_is.
    destruct (node_eq n n), (node_eq w w); congruence || lia. }
  induction L as [x Hx | x Hx | x _ IH]; (destruct (node_eq x n) as [->|Nx]; [exact Hn|]).
  - apply leads_here. now rewrite E_o.
  - apply leads_cross. rewrite E_o, Ep by auto. lia.
  - apply leads_on. now rewrite E_o.
Qed.

Ltac split_eq := repeat match goal with
  | |- context [node_eq ?a ?b] => destruct (node_eq a b)
  | H : context [node_eq ?a ?b] |- _ => destruct (node_eq a b)
  end.
Ltac here := repeat match goal with
  | H : context [if node_eq ?a ?a then _ else _] |- _ => destruct (node_eq a a); [|congruence]
  | |- context [if node_eq ?a ?a then _ else _] => destruct (node_eq a a); [|congruence]
  end.
Ltac go := subst; simpl in *; try congruence; try lia.

(* a REQUEST of [from] goes from the channel into the queue *)
Lemma whole_enqueue r r' p from :
  whole f r p -> (forall u v, r u v = r' u v + pair_is from n u v) ->
  s' = enqueue from (f n) -> whole f' r' p.
Proof.
  intros I Er Es.
  assert (N : from <> n).
  { intros ->. destruct (w_own _ _ _ I n) as [Z _]. rewrite Er in Z. unfold pair_is in Z. here. lia. }
  destruct I as [I1 I2 I3 I4 I5 I6 I7 I8]. split.
  - apply (small_quiet f f' n E_o p); auto; rewrite E_n, Es; simpl; auto. destruct I1 as [_ U]. apply U.
  - intros u v Nuv. specialize (I2 u v Nuv). rewrite Er in I2. unfold A, Q, pair_is in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go; rewrite ?count_occ_app; simpl;
      split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es.
    destruct (node_eq u n); go. rewrite count_occ_app. simpl. split_eq; go.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. specialize (I5 u). rewrite Er in I5. lia.
  - intros u v Huv. specialize (I6 u v Huv). unfold hp in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_quiet p p); auto. now rewrite Es.
Qed.

(* the node's own do_request *)
Lemma whole_wish r p :
  whole f r p -> ph (f n) = Idle -> s' = enqueue_self n (f n) -> whole f' r p.
Proof.
  intros [I1 I2 I3 I4 I5 I6 I7 I8] Ei Es. split.
  - apply (small_quiet f f' n E_o p); auto; rewrite E_n, Es; simpl; auto. discriminate.
  - intros u v Nuv. specialize (I2 u v Nuv). unfold A, Q in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go; destruct greedy; rewrite ?count_occ_app; simpl;
      split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es.
    destruct (node_eq u n); go. rewrite Ei in I3. destruct greedy; rewrite ?count_occ_app; simpl; split_eq; go.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - auto.
  - intros u v Huv. specialize (I6 u v Huv). unfold hp in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_quiet p p); auto. now rewrite Es.
Qed.

(* leaving the critical section *)
Lemma whole_leave r p :
  whole f r p -> ph (f n) = Inside -> s' = leave (f n) -> whole f' r p.
Proof.
  intros [I1 I2 I3 I4 I5 I6 I7 I8] Ei Es. split.
  - apply (small_quiet f f' n E_o p); auto; rewrite E_n, Es; simpl; auto. discriminate.
  - intros u v Nuv. specialize (I2 u v Nuv). unfold A, Q in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es.
    destruct (node_eq u n); go. now rewrite Ei in I3.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - auto.
  - intros u v Huv. specialize (I6 u v Huv). unfold hp in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_quiet p p); auto. now rewrite Es.
Qed.

(* What a PRIVILEGE in flight says of its two ends. *)
Lemma privilege_ends r p from to :
  whole f r p -> p from to <> 0 ->
  from <> to /\ holder (f to) = from /\ asked (f to) = true /\ holder (f from) = to.
Proof.
  intros I F. destruct I as [I1 I2 I3 I4 I5 I6 I7 I8].
  assert (N : from <> to) by (intros ->; destruct (I5 to); lia).
  assert (H : holder (f to) = from /\ asked (f to) = true).
  { specialize (I2 to from (not_eq_sym N)). unfold A in I2.
    destruct (node_eq (holder (f to)) from), (asked (f to)); auto; lia. }
  destruct H as [H1 H2]. repeat split; auto.
  destruct (I7 to) as [X|X]; [congruence|]. rewrite H1 in X.
  specialize (I6 to from X). unfold hp in I6.
  destruct (node_eq (holder (f from)) to); auto.
  destruct (node_eq (holder (f to)) from); lia.
Qed.

(* the PRIVILEGE arrives *)
Lemma whole_take r p p' from :
  whole f r p -> (forall u v, p u v = p' u v + pair_is from n u v) ->
  s' = take_privilege n (f n) -> whole f' r p'.
Proof.
  intros I Ep Es.
  assert (F : p from n <> 0) by (rewrite Ep; unfold pair_is; here; lia).
  destruct (privilege_ends _ _ _ _ I F) as (N & H1 & H2 & H3).
  destruct I as [I1 I2 I3 I4 I5 I6 I7 I8]. split.
  - apply (small_take f f' n E_o p p' from); auto. now rewrite E_n, Es.
  - intros u v Nuv. specialize (I2 u v Nuv). rewrite Ep in I2. unfold A, Q, pair_is in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
    + split_eq; go. rewrite H2 in I2. lia.
    + split_eq; go.
    + split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es. destruct (node_eq u n); go.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. specialize (I5 u). rewrite Ep in I5. lia.
  - intros u v Huv. specialize (I6 u v Huv). rewrite !Ep in I6. unfold hp, pair_is in *. rewrite !E, Es.
    assert (u <> v) by (intros ->; eapply nbr_irr; eauto).
    destruct (node_eq u n), (node_eq v n); go; split_eq; go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_take p p' from); auto. now rewrite Es.
Qed.

(* ASSIGN_PRIVILEGE, to oneself *)
Lemma whole_enter r p rest :
  whole f r p -> holder (f n) = n -> queue (f n) = n :: rest ->
  s' = mk n rest Inside false -> whole f' r p.
Proof.
  intros [I1 I2 I3 I4 I5 I6 I7 I8] Eh Eq Es. split.
  - apply (small_quiet f f' n E_o p); auto; rewrite E_n, Es; simpl; auto.
  - intros u v Nuv. specialize (I2 u v Nuv). unfold A, Q in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
    + rewrite Eh in I2. split_eq; go.
    + rewrite Eq in I2. simpl in I2. split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es. destruct (node_eq u n); go.
    rewrite Eq in I3. simpl in I3. here. destruct (ph (f n)); lia.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - auto.
  - intros u v Huv. specialize (I6 u v Huv). unfold hp in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go; rewrite Eh in I6; auto.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_quiet p p); auto. now rewrite Es.
Qed.

(* ASSIGN_PRIVILEGE, to a neighbour *)
Lemma whole_give r p p' w rest :
  whole f r p -> holder (f n) = n -> ph (f n) <> Inside -> queue (f n) = w :: rest -> w <> n ->
  (forall u v, p' u v = p u v + pair_is n w u v) ->
  s' = mk w rest (ph (f n)) false -> whole f' r p'.
Proof.
  intros [I1 I2 I3 I4 I5 I6 I7 I8] Eh Np Eq Nw Ep Es.
  assert (Hw : holder (f w) = n).
  { specialize (I2 w n Nw). unfold A, Q in I2. rewrite Eq in I2. simpl in I2. here.
    destruct (node_eq (holder (f w)) n); auto; lia. }
  assert (Hb : nbr n w).
  { apply nbr_sym. destruct (I7 w) as [X|X]; [congruence|]. now rewrite Hw in X. }
  split.
  - apply (small_give f f' n E_o p p' w); auto; rewrite E_n, Es; auto.
  - intros u v Nuv. specialize (I2 u v Nuv). rewrite Ep. unfold A, Q, pair_is in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
    + rewrite Eh in I2. split_eq; go.
    + rewrite Eq in I2. simpl in I2. split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es. destruct (node_eq u n); go.
    rewrite Eq in I3. simpl in I3. split_eq; go.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. specialize (I5 u). rewrite Ep. unfold pair_is. split_eq; go.
  - intros u v Huv. specialize (I6 u v Huv). rewrite !Ep. unfold hp, pair_is in *. rewrite !E, Es.
    assert (u <> v) by (intros ->; eapply nbr_irr; eauto).
    destruct (node_eq u n), (node_eq v n); go; split_eq; go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_give p p' w); auto. now rewrite Es.
Qed.

(* MAKE_REQUEST *)
Lemma whole_request r r' p w :
  whole f r p -> holder (f n) = w -> w <> n -> asked (f n) = false ->
  (forall u v, r' u v = r u v + pair_is n w u v) ->
  s' = mk w (queue (f n)) (ph (f n)) true -> whole f' r' p.
Proof.
  intros [I1 I2 I3 I4 I5 I6 I7 I8] Eh Nw Ea Er Es. split.
  - apply (small_quiet f f' n E_o p); auto; rewrite E_n, Es; simpl; auto. destruct I1 as [_ U]. apply U.
  - intros u v Nuv. specialize (I2 u v Nuv). rewrite Er. unfold A, Q, pair_is in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
    + rewrite Ea in I2. split_eq; go.
  - intros u. specialize (I3 u). unfold Q, waits in *. rewrite !E, Es. destruct (node_eq u n); go.
  - intros u. specialize (I4 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. specialize (I5 u). rewrite Er. unfold pair_is. split_eq; go.
  - intros u v Huv. specialize (I6 u v Huv). unfold hp in *. rewrite !E, Es.
    destruct (node_eq u n), (node_eq v n); go.
  - intros u. specialize (I7 u). rewrite !E, Es. destruct (node_eq u n); go; auto.
  - intros u. apply (leads_quiet p p); auto. now rewrite Es.
Qed.
End MoreChanges.

Lemma whole_ext f r p r' p' :
  whole f r p -> (forall u v, r' u v = r u v) -> (forall u v, p' u v = p u v) -> whole f r' p'.
Proof.
  intros [[(J1 & J2 & J3 & J4) J5] I2 I3 I4 I5 I6 I7 I8] Er Ep. split; auto.
  - split; auto. split; [|split; [|split]]; intros; rewrite ?Ep in *; eauto.
  - intros. rewrite Er, Ep. auto.
  - intros. rewrite Er, Ep. auto.
  - intros. rewrite !Ep. auto.
  - intros u. apply (leads_quiet f f u (f u)) with (p := p); auto.
    intros x. destruct (node_eq x u); congruence.
Qed.

Lemma set_set (f : node -> state) n s t x : set f n t x = if node_eq x n then t else set f n s x.
Proof. unfold set. destruct (node_eq x n); auto. Qed.

Lemma whole_assign f n s l :
  whole (set f n s) (reqs l) (prvs l) ->
  forall s' o, assign_and_ask n s = (s', o) ->
  whole (set f n s') (reqs (posts n o ++ l)) (prvs (posts n o ++ l)).
Proof.
  intros I s' o. unfold assign_and_ask.
  (* MAKE_REQUEST alone *)
  assert (M : forall s l, whole (set f n s) (reqs l) (prvs l) ->
              forall s' o, make_request n s = (s', o) ->
              whole (set f n s') (reqs (posts n o ++ l)) (prvs (posts n o ++ l))).
  { clear. intros s l I s' o. unfold make_request.
    destruct (node_eq (holder s) n) as [Hh|Hh]; [intros [= <- <-]; exact I|].
    destruct (queue s) eqn:Eq; [intros [= <- <-]; exact I|].
    destruct (asked s) eqn:Ea; intros [= <- <-]; [exact I|].
    apply whole_ext with (r := reqs (posts n [(holder s, Request)] ++ l)) (p := prvs l); auto.
    eapply (whole_request _ _ n _ (set_set f n s _)); eauto; rewrite ?set_same; auto.
    - intros u v. simpl. lia.
    - now rewrite Eq. }
  unfold assign_privilege.
  destruct (node_eq (holder s) n) as [Hh|Hh];
    [|destruct (make_request n s) as [s2 o2] eqn:Em; intros [= <- <-]; simpl; eauto].
  assert (S : (let (s2, o2) := make_request n s in (s2, [] ++ o2)) = (s', o) ->
    whole (set f n s') (reqs (posts n o ++ l)) (prvs (posts n o ++ l)))
    by (destruct (make_request n s) as [s2 o2] eqn:Em; intros [= <- <-]; simpl; eauto).
  destruct (ph s) eqn:Eph; try exact S.
  all: destruct (queue s) as [|w rest] eqn:Eq; try exact S; clear S.
  all: destruct (node_eq w n) as [->|Nw];
    [ unfold make_request; simpl; destruct (node_eq n n); try congruence; intros [= <- <-];
      eapply (whole_enter _ _ n _ (set_set f n s _)); eauto; rewrite ?set_same; auto |].
  all: assert (G : whole (set f n (mk w rest (ph s) false)) (reqs (posts n [(w, Privilege)] ++ l))
                     (prvs (posts n [(w, Privilege)] ++ l)))
    by (apply whole_ext with (r := reqs l) (p := prvs (posts n [(w, Privilege)] ++ l)); auto;
        eapply (whole_give _ _ n _ (set_set f n s _)); eauto; rewrite ?set_same; auto; try congruence;
        intros u v; simpl; lia);
    rewrite Eph in G.
  all: destruct (piggyback && _) eqn:Pg.
  (* PRIVILEGE and REQUEST in one: as if sent one after the other *)
  1,3: unfold make_request; simpl; destruct (node_eq w n); try congruence; destruct rest as [|z rest];
    [rewrite andb_false_r in Pg; discriminate|]; simpl; intros [= <- <-];
    eapply whole_ext; [eapply (M _ _ G); unfold make_request; simpl;
      destruct (node_eq w n); try congruence; reflexivity | |];
    intros u v; simpl; lia.
  all: destruct (make_request n _) as [s2 o2] eqn:Em; intros [= <- <-];
    eapply whole_ext; [eapply (M _ _ G); exact Em | |];
    intros u v; simpl; unfold post; rewrite ?count_app; simpl; lia.
Qed.

Lemma assign_settled n s s' o :
  (holder s <> n -> asked s = true -> queue s <> []) ->
  assign_and_ask n s = (s', o) -> settled n s'.
Proof.
  intros Pre. unfold assign_and_ask, assign_privilege, make_request.
  destruct (node_eq (holder s) n) as [Hh|Hh]; [destruct (ph s) eqn:Eph; destruct (queue s) as [|w rest] eqn:Eq|].
  all: try (rewrite Hh; destruct (node_eq n n); [|congruence]; intros [= <- <-]; split; congruence).
  all: try (destruct (node_eq w n) as [->|Nw];
    [ simpl; destruct (node_eq n n); [|congruence]; intros [= <- <-]; split; simpl; congruence |];
    destruct (piggyback && _) eqn:Pg; simpl; destruct (node_eq w n); try congruence;
    destruct rest; simpl; intros [= <- <-]; split; simpl; try congruence; intros _;
    rewrite ?andb_false_r in Pg; try discriminate; split; congruence).
  destruct (node_eq (holder s) n); [congruence|].
  destruct (queue s) eqn:Eq; [|destruct (asked s) eqn:Ea]; intros [= <- <-]; split; simpl; try congruence; intros _.
  - rewrite Eq. split; [|congruence]. intros H. now apply Pre in H.
  - rewrite Eq, Ea. split; congruence.
  - split; congruence.
Qed.

Definition good (g : global raymond) : Prop := whole (st g) (R g) (P g) /\ forall x, settled x (st g x).

Theorem good_step g g' : good g -> step raymond c g g' -> good g'.
Proof.
  intros [I Se] S. destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En _ E | g l1 l2 p Ec _];
    [| | |congruence]; split; simpl.
  - change (do_request n (st g n) = Some (s, o)) in E. unfold do_request in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as E.
    eapply whole_assign; [|exact E].
    eapply (whole_wish (st g) _ n _ (fun x => eq_refl)); eauto.
  - change (do_request n (st g n) = Some (s, o)) in E. unfold do_request in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as E.
    intros x. unfold set. destruct (node_eq x n) as [->|]; auto.
    eapply assign_settled; [|exact E]. simpl. intros _ _.
    destruct greedy; [congruence|]. apply not_eq_sym, app_cons_not_nil.
  - change (do_release n (st g n) = Some (s, o)) in E. unfold do_release in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as E.
    eapply whole_assign; [|exact E].
    eapply (whole_leave (st g) _ n _ (fun x => eq_refl)); eauto.
  - change (do_release n (st g n) = Some (s, o)) in E. unfold do_release in E. destruct (ph (st g n)) eqn:Ep; try discriminate. injection E as E.
    intros x. unfold set. destruct (node_eq x n) as [->|]; auto.
    eapply assign_settled; [|exact E]. simpl. intros N.
    destruct (w_small _ _ _ I) as [_ U]. now apply U in Ep.
  - eapply whole_assign; [|exact E].
    assert (CR : forall u v, R g u v = reqs (l1 ++ l2) u v + is_req m * pair_is from n u v)
      by (intros; unfold R; rewrite En; apply count_mid).
    assert (CP : forall u v, P g u v = prvs (l1 ++ l2) u v + is_prv m * pair_is from n u v)
      by (intros; unfold P; rewrite En; apply count_mid).
    destruct m; simpl in CR, CP.
    + eapply (whole_enqueue (st g) _ n _ (fun x => eq_refl) (R g) _ _ from); eauto.
      * eapply whole_ext; eauto. intros. rewrite CP. lia.
      * intros. rewrite CR. lia.
    + eapply (whole_take (st g) _ n _ (fun x => eq_refl) _ (P g) _ from); eauto.
      * eapply whole_ext; eauto. intros. rewrite CR. lia.
      * intros. rewrite CP. lia.
    + eapply (whole_take (set (st g) n (enqueue from (st g n))) _ n _ (set_set _ _ _ _) _ (P g) _ from).
      * eapply (whole_enqueue (st g) _ n _ (fun x => eq_refl) (R g) _ _ from); eauto.
        intros. rewrite CR. lia.
      * intros. rewrite CP. lia.
      * now rewrite set_same.
  - intros x. unfold set. destruct (node_eq x n) as [->|]; auto.
    eapply assign_settled; [|exact E]. destruct m; simpl; try congruence.
    intros _ _. apply not_eq_sym, app_cons_not_nil.
Qed.
End Whole.
End RaymondInvariant.
