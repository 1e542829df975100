(* Lodha and Kshemkalyani's algorithm: the state of a node, and what is true of any two nodes and the
   two channels between them.  LodhaKshemkalyani.v has the handlers and the theorem.

   A node that asks needs an answer from each other node: a REPLY, or a REQUEST that crosses its own.
   So, between two nodes, the answers that are needed are as many as the REQUESTs and REPLYs in flight
   and the REPLYs deferred ([pair]).  From this it follows what may be in flight at all: once a node has
   the answer of another, that other node has a later request, or one that the first has queued or
   knows to be satisfied ([h_known]).  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Order.
Import ListNotations.

Section LodhaKshemkalyaniPair.
Context {N : Nodes} {O : NodeOrder N}.

(* [satisfied] is the number of a request of the sender. *)
Inductive message :=
| Request (k : nat) (satisfied : option nat)
| Reply (satisfied : option nat) (highest : nat)
| Flush (satisfied highest : nat).
Record state := mk {
  ph : phase;
  my : nat;
  seen : nat;
  rv : node -> bool;                                (* who has answered *)
  lrq : list request_id;
  deferred : node -> bool;
  last : option nat;                                (* the latest own request that was satisfied *)
  done : option request_id }.                       (* all requests up to this one are satisfied *)

Definition covered (r : request_id) (d : option request_id) : bool :=
  match d with Some e => negb (earlier e r) | None => false end.
Definition latest (a b : option request_id) : option request_id :=
  match a, b with
  | Some p, Some q => if earlier p q then b else a
  | Some _, None => a
  | None, _ => b
  end.
Fixpoint drop (d : option request_id) (q : list request_id) : list request_id :=
  match q with [] => [] | r :: q' => if covered r d then drop d q' else q end.
Definition of (n : node) (k : option nat) : option request_id := option_map (fun k => (k, n)) k.

Definition see (k : nat) (s : state) : state :=
  mk (ph s) (my s) (max (seen s) k) (rv s) (lrq s) (deferred s) (last s) (done s).
Definition learn (r : option request_id) (s : state) : state :=
  mk (ph s) (my s) (seen s) (rv s) (drop r (lrq s)) (deferred s) (last s) (latest (done s) r).

(* ------------------------------------------------------------------ order *)
Lemma covered_latest r a b : covered r a = true \/ covered r b = true -> covered r (latest a b) = true.
Proof.
  destruct a as [p|], b as [q|]; simpl; try (intuition congruence).
  rewrite !negb_true_iff. destruct (earlier p q) eqn:E; simpl; rewrite negb_true_iff;
    rewrite <- !not_true_iff_false, !earlier_spec in *; lia.
Qed.
Lemma latest_cases a b : latest a b = a \/ latest a b = b.
Proof. destruct a, b; simpl; auto. destruct (earlier _ _); auto. Qed.
Lemma in_drop r d q : In r q -> In r (drop d q) \/ covered r d = true.
Proof.
  induction q as [|x q IH]; simpl; [tauto|]. intros H. destruct (covered x d) eqn:E; [|auto].
  destruct H as [->|H]; auto.
Qed.
Lemma sorted_drop d q : sorted q -> sorted (drop d q).
Proof. induction q as [|x q IH]; simpl; auto. intros [H1 H2]. destruct (covered x d); simpl; auto. Qed.

(* ------------------------------------------------------------------ channels *)
Definition names (m : message) : option nat :=
  match m with Request _ r | Reply r _ => r | Flush r _ => Some r end.
Fixpoint reqs (l : list message) : list nat :=
  match l with [] => [] | Request k _ :: l' => k :: reqs l' | _ :: l' => reqs l' end.
Fixpoint reps (l : list message) : nat :=
  match l with [] => 0 | Reply _ _ :: l' => S (reps l') | _ :: l' => reps l' end.
(* No REPLY is behind a REQUEST. *)
Fixpoint ordered (l : list message) : Prop :=
  match l with [] => True | m :: l' => match m with Reply _ _ => reqs l' = [] | _ => True end /\ ordered l' end.

Lemma reqs_app l1 l2 : reqs (l1 ++ l2) = reqs l1 ++ reqs l2.
Proof. induction l1 as [|[] l1 IH]; simpl; now rewrite ?IH. Qed.
Lemma reps_app l1 l2 : reps (l1 ++ l2) = reps l1 + reps l2.
Proof. induction l1 as [|[] l1 IH]; simpl; now rewrite ?IH. Qed.
Lemma ordered_last l m : ordered (l ++ [m]) -> ordered l /\ (reqs [m] <> [] -> reps l = 0).
Proof.
  induction l as [|a l IH]; simpl; auto. intros [H1 H2]. destruct (IH H2) as [H3 H4]. rewrite reqs_app in H1.
  destruct a; auto. apply app_eq_nil in H1 as [H1 H5]. split; auto. intros H. contradiction.
Qed.

(* ------------------------------------------------------------------ two nodes *)
Definition asks (s : state) : bool := match ph s with Idle => false | _ => true end.
Lemma inside_asks s : ph s = Inside -> asks s = true.
Proof. unfold asks. now intros ->. Qed.
(* 1 if the node [s] needs an answer from [y]. *)
Definition need (s : state) (y : node) : nat := if asks s then if rv s y then 0 else 1 else 0.
(* 1 if it owes one to [y]. *)
Definition owed (s : state) (y : node) : nat := if deferred s y then 1 else 0.

(* Nodes x and y, their states s and t, the numbers of the REQUESTs on their way from x to y (the
   newest first), and how many REPLYs are; [q'] is for the other direction. *)
Record half (x y : node) (s t : state) (q : list nat) (p : nat) (q' : list nat) : Prop := {
  h_newest : match q with [] => True | k :: _ => k = my s end;
  h_seen : my s <= seen t \/ In (my s) q;
  h_reply : 1 <= p + owed s y -> need t x = 1 /\ length q' = 0 /\ p + owed s y = 1;
  h_owed : deferred s y = true -> asks s = true /\ rv s y = true;
  h_left : 1 <= length q -> need s y = 0 -> my t <= seen s;
  h_again : 2 <= length q -> my t < my s;
  h_replied : 1 <= p -> asks s = true -> my t < my s;
  h_known : asks s = true -> rv s y = true -> asks t = true ->
    earlier (my s, x) (my t, y) = true \/ In (my t, y) (lrq s) \/ covered (my t, y) (done s) = true }.

Definition pair (x y : node) (s t : state) (q : list nat) (p : nat) (q' : list nat) (p' : nat) : Prop :=
  half x y s t q p q' /\ half y x t s q' p' q /\
  need s y + need t x = length q + p + owed s y + length q' + p' + owed t x.

Lemma pair_sym x y s t q p q' p' : pair x y s t q p q' p' -> pair y x t s q' p' q p.
Proof. intros (A & B & C). repeat split; try apply A; try apply B; auto. lia. Qed.

Lemma need_le s y : need s y <= 1.
Proof. unfold need. destruct (asks s), (rv s y); lia. Qed.
Lemma need_idle s y : asks s = false -> need s y = 0.
Proof. unfold need. now intros ->. Qed.
Lemma need_rv s y : rv s y = true -> need s y = 0.
Proof. unfold need. intros ->. now destruct (asks s). Qed.
Lemma need_one s y : asks s = true -> rv s y = false -> need s y = 1.
Proof. unfold need. now intros -> ->. Qed.
Lemma owed_le s y : owed s y <= 1.
Proof. unfold owed. destruct (deferred s y); lia. Qed.

(* Nothing is on its way between two nodes that need nothing of each other. *)
Lemma pair_later x y s t q p q' p' : pair x y s t q p q' p' ->
  need s y = 0 -> asks t = false -> my s <= seen t.
Proof.
  intros (A & B & C) Hs Ht. apply (need_idle t x) in Ht. rewrite Hs, Ht in C.
  destruct (h_seen _ _ _ _ _ _ _ A) as [|H]; auto. destruct q; simpl in *; [tauto | lia].
Qed.

(* A node sees more, learns more, or enters. *)
Lemma pair_grow x y s s' t q p q' p' : pair x y s t q p q' p' ->
  asks s' = asks s -> my s' = my s -> rv s' y = rv s y -> deferred s' y = deferred s y -> seen s <= seen s' ->
  (forall r, In r (lrq s) -> In r (lrq s') \/ covered r (done s') = true) ->
  (forall r, covered r (done s) = true -> covered r (done s') = true) -> pair x y s' t q p q' p'.
Proof.
  intros (A & B & C) Ea Em Er Ed Es El Ec.
  assert (En : need s' y = need s y) by (unfold need; now rewrite Ea, Er).
  assert (Eo : owed s' y = owed s y) by (unfold owed; now rewrite Ed).
  split; [|split]; [| |now rewrite En, Eo]; destruct A, B; split; rewrite ?Em, ?En, ?Eo, ?Ea, ?Er, ?Ed; auto.
  - intros. apply Nat.le_trans with (seen s); auto.
  - intros H1 H2 H3. destruct (h_known0 H1 H2 H3) as [|[H|H]]; auto.
  - destruct h_seen1; auto. left. lia.
Qed.

Lemma pair_request x y s s' t q p q' p' : pair x y s t q p q' p' ->
  asks s = false -> asks s' = true -> my s' = S (seen s) -> seen s' = S (seen s) -> rv s' y = false ->
  deferred s' y = deferred s y -> pair x y s' t (my s' :: q) p q' p'.
Proof.
  intros (A & B & C) Hi Ha Em Es Er Ed.
  pose proof (need_idle s y Hi) as Z. pose proof (need_one s' y Ha Er) as Z'. pose proof (need_le t x) as L.
  assert (Eo : owed s' y = owed s y) by (unfold owed; now rewrite Ed).
  assert (Do : deferred s y = false).
  { destruct (deferred s y) eqn:E; auto. apply (h_owed _ _ _ _ _ _ _ A) in E as [E _]. congruence. }
  assert (Zo : owed s y = 0) by (unfold owed; now rewrite Do).
  split; [|split]; [| |rewrite Eo; simpl; lia]; destruct A, B; split; rewrite ?Eo, ?Ed; simpl; auto; try congruence; try lia.
  - intros H _. rewrite Em. apply le_n_S. destruct (h_reply0 ltac:(lia)) as (H1 & H2 & H3).
    destruct h_seen1 as [|H']; auto. destruct q'; simpl in *; [tauto | lia].
  - destruct h_seen1; auto. left. lia.
  - intros H1 H2 _. left. rewrite Em. apply earlier_number. apply le_n_S.
    pose proof (need_rv t x H2). destruct h_seen1 as [|H']; auto. destruct q'; simpl in *; [tauto | lia].
Qed.

Lemma pair_release x y s s' t q p q' p' : pair x y s t q p q' p' ->
  rv s y = true -> asks s' = false -> my s' = my s -> seen s' = seen s -> deferred s' y = false ->
  pair x y s' t q (p + owed s y) q' p'.
Proof.
  intros (A & B & C) Hr Hi Em Es Ed.
  pose proof (need_rv s y Hr) as Z. pose proof (need_idle s' y Hi) as Z'.
  assert (Zo : owed s' y = 0) by (unfold owed; now rewrite Ed).
  split; [|split]; [| |lia]; destruct A, B; split; rewrite ?Em, ?Es, ?Zo, ?Z', ?Nat.add_0_r; auto; try congruence.
  intros H. destruct (h_reply1 H). lia.
Qed.

(* An idle node answers a REQUEST. *)
Lemma pair_reply x y s t q p q' k : pair x y s t q p (q' ++ [k]) 0 ->
  asks s = false -> k <= seen s -> pair x y s t q (S p) q' 0.
Proof.
  intros (A & B & C) Hi Hk. pose proof (need_idle s y Hi) as Z. rewrite app_length in C. simpl in C.
  pose proof (need_le t x) as L.
  split; [|split]; [| |lia]; destruct A, B; split; rewrite ?app_length in *; simpl in *; auto; try congruence; try lia.
  - destruct q'; auto.
  - destruct h_seen1 as [|H]; auto. apply in_app_or in H as [H|[<-|[]]]; auto.
Qed.

(* A node defers the answer to a REQUEST. *)
Lemma pair_defer x y s s' t q p q' k : pair x y s t q p (q' ++ [k]) 0 ->
  asks s = true -> rv s y = true -> k <= seen s ->
  asks s' = asks s -> my s' = my s -> seen s' = seen s -> rv s' = rv s -> lrq s' = lrq s -> done s' = done s ->
  deferred s' y = true -> pair x y s' t q p q' 0.
Proof.
  intros (A & B & C) Ha Hr Hk Ea Em Es Er El Ed Hd. rewrite app_length in C. simpl in C.
  pose proof (need_rv s y Hr) as Z. pose proof (need_le t x) as L.
  assert (En : need s' y = need s y) by (unfold need; now rewrite Ea, Er).
  assert (Eo : owed s' y = 1) by (unfold owed; now rewrite Hd).
  split; [|split]; [| |lia]; destruct A, B; split; rewrite ?Em, ?Es, ?Ea, ?Er, ?El, ?Ed, ?En, ?Eo;
    rewrite ?app_length in *; simpl in *; auto; try lia.
  - destruct q'; auto.
  - destruct h_seen1 as [|H]; auto. apply in_app_or in H as [H|[<-|[]]]; auto.
Qed.

(* The REQUESTs of two nodes cross: each is the answer to the other. *)
Lemma pair_cross x y s s' t q p q' k : pair x y s t q p (q' ++ [k]) 0 ->
  asks s = true -> rv s y = false -> k <= seen s ->
  asks s' = asks s -> my s' = my s -> seen s' = seen s -> deferred s' = deferred s -> rv s' y = true ->
  (In (k, y) (lrq s') \/ covered (k, y) (done s') = true) -> pair x y s' t q p q' 0.
Proof.
  intros (A & B & C) Ha Hr Hk Ea Em Es Ed Hv Hq. rewrite app_length in C. simpl in C.
  pose proof (need_one s y Ha Hr) as Z. pose proof (need_rv s' y Hv) as Z'. pose proof (need_le t x) as L.
  assert (Eo : owed s' y = owed s y) by (unfold owed; now rewrite Ed).
  assert (Zo : owed t x = 0).
  { unfold owed in *. destruct (deferred t x) eqn:E; auto. exfalso.
    destruct (h_owed _ _ _ _ _ _ _ B E) as [_ X]. apply need_rv in X. lia. }
  assert (Kt : length q' = 0 -> k = my t).
  { intros E. pose proof (h_newest _ _ _ _ _ _ _ B) as X. destruct q'; [auto | discriminate]. }
  split; [|split]; [| |lia]; destruct A, B; split; rewrite ?Em, ?Es, ?Ea, ?Ed, ?Eo, ?Zo, ?Z';
    rewrite ?app_length in *; simpl in *; auto; try lia.
  - intros _ _ Ht. destruct q' as [|j q']; [rewrite <- Kt by auto; auto|].
    left. apply earlier_number. apply h_again1. simpl. lia.
  - destruct q'; auto.
  - destruct h_seen1 as [|H]; auto. apply in_app_or in H as [H|[<-|[]]]; auto.
Qed.

Lemma pair_answered x y s s' t q p q' p' : pair x y s t q p q' (S p') ->
  asks s' = asks s -> my s' = my s -> seen s' = seen s -> deferred s' = deferred s -> rv s' y = true ->
  pair x y s' t q p q' p'.
Proof.
  intros (A & B & C) Ea Em Es Ed Hv. pose proof (need_rv s' y Hv) as Z'.
  destruct (h_reply _ _ _ _ _ _ _ B ltac:(lia)) as (Z & Zq & Zp).
  assert (Eo : owed s' y = owed s y) by (unfold owed; now rewrite Ed).
  split; [|split]; [| |lia]; destruct A, B; split; rewrite ?Em, ?Es, ?Ea, ?Ed, ?Eo, ?Z'; simpl in *; auto; try lia.
  - intros H. apply h_owed0 in H. tauto.
  - intros _ _ Ht. left. apply earlier_number. apply h_replied1; auto. lia.
Qed.

Lemma pair_learn x y s t q p q' p' r k :
  pair x y s t q p q' p' -> pair x y (learn r (see k s)) t q p q' p'.
Proof.
  intros P. apply (pair_grow _ _ _ _ _ _ _ _ _ P); simpl; auto; try lia; intros e H.
  - destruct (in_drop e r (lrq s) H); auto. right. apply covered_latest. auto.
  - apply covered_latest. auto.
Qed.
End LodhaKshemkalyaniPair.
