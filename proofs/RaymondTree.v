(* Raymond's algorithm on a tree: what follows from the whole invariant.

   Any number of nodes, any tree, channels that may reorder messages but not lose them.  From a start
   at which all HOLDERs lead to one node, in every reachable state:
   - there is exactly one privilege ([raymond_one_token]);
   - the checks of the Rust code refuse no message of a correct neighbour ([raymond_no_refusal]);
   - no name is in a queue twice ([raymond_queues]);
   - at most one REQUEST and one PRIVILEGE is in flight on each edge, in each direction
     ([raymond_channels]);
   - going from HOLDER to HOLDER leads to the privilege ([raymond_leads]);
   - there is no deadlock: if no message is in flight and no node is inside, no node waits
     ([raymond_no_deadlock]).
   That every request is served is not proved.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Count Raymond RaymondInvariant.
Import ListNotations.

Section RaymondTree.
Context {cluster : Nodes} {strategies : Strategies}.
Variable c : channels.
Hypothesis no_loss : c <> Lossy.
Variable neighbours : node -> list node.
Notation nbr := (nbr neighbours).
Notation whole := (whole neighbours).
Notation good := (good neighbours).
Hypothesis nbr_sym : forall u v, nbr u v -> nbr v u.
Hypothesis nbr_irr : forall u, ~ nbr u u.

(* ------------------------------------------------------------------ what follows from the invariant *)
(* The nodes that may be in a queue, each once. *)
Lemma queued f r p n x : whole f r p -> In x (queue (f n)) -> x = n \/ (holder (f x) = n /\ nbr n x).
Proof.
  intros I H. destruct (node_eq x n) as [|N]; auto. right.
  apply (count_occ_In node_eq) in H.
  pose proof (w_ask _ _ _ _ I x n N) as J. unfold A, Q in J.
  destruct (node_eq (holder (f x)) n) as [Hx|]; [|lia]. split; auto.
  apply nbr_sym. destruct (w_nbr _ _ _ _ I x) as [X|X]; congruence.
Qed.

Lemma queue_nodup f r p n : whole f r p -> NoDup (queue (f n)).
Proof.
  intros I. apply (NoDup_count_occ node_eq). intros x. destruct (node_eq x n) as [->|N].
  - pose proof (w_self _ _ _ _ I n) as J. unfold Q, waits in J. destruct (ph (f n)); lia.
  - pose proof (w_ask _ _ _ _ I x n N) as J. unfold A, Q in J.
    destruct (node_eq (holder (f x)) n), (asked (f x)); lia.
Qed.

Lemma good_checks g from n m :
  good g -> In (from, n, m) (net g) -> check (neighbours n) (st g n) from m.
Proof.
  intros [I _] H.
  assert (CR : is_req m <= R g from n) by (apply in_count; auto).
  assert (CP : is_prv m <= P g from n) by (apply in_count; auto).
  assert (N : from <> n).
  { intros ->. destruct (w_own _ _ _ _ I n). destruct m; simpl in *; lia. }
  assert (B : is_prv m = 1 -> check_privilege (st g n) from /\ nbr n from).
  { intros Em. rewrite Em in CP.
    destruct (privilege_ends neighbours (st g) _ _ from n I) as (_ & H1 & H2 & _); [lia|]. split; [split; auto|].
    destruct (w_nbr _ _ _ _ I n) as [X|X]; congruence. }
  assert (C : is_req m = 1 -> check_request (neighbours n) (st g n) from /\ nbr n from).
  { intros Em. rewrite Em in CR. pose proof (w_ask _ _ _ _ I from n N) as J. unfold A in J.
    destruct (node_eq (holder (st g from)) n) as [Hf|]; [|lia].
    assert (Bn : nbr n from)
      by (apply nbr_sym; destruct (w_nbr _ _ _ _ I from) as [X|X]; congruence).
    assert (Fq : ~ In from (queue (st g n))).
    { intro X. apply (count_occ_In node_eq) in X. unfold Q in J. destruct (asked (st g from)); lia. }
    split; auto. split; [|split; auto].
    - intros [X Y]. pose proof (w_edge _ _ _ _ I n from Bn) as K. unfold hp in K.
      rewrite X, Hf in K. destruct (node_eq from from), (node_eq n n); try congruence.
      assert (Z : P g from n <> 0) by (destruct (asked (st g from)); lia).
      destruct (privilege_ends neighbours (st g) _ _ from n I Z) as (_ & _ & K2 & _). congruence.
    - assert (L : length (from :: queue (st g n)) <= length (n :: neighbours n)).
      { apply NoDup_incl_length.
        - constructor; auto. eapply queue_nodup; eauto.
        - intros x [<-|X]; [right; exact Bn|]. destruct (queued _ _ _ _ _ I X) as [->|[_ Y]]; [now left | now right]. }
      simpl in L. lia. }
  split; destruct m; simpl in *; try (apply B; auto; fail); try (apply C; auto; fail).
  split; [apply B | apply C]; auto.
Qed.

Lemma good_token g : good g -> forall x : node,
  (exists t, holder (st g t) = t) \/ (exists u v, P g u v = 1).
Proof.
  intros [I _] x. pose proof (w_leads _ _ _ _ I x) as L.
  destruct (w_small _ _ _ _ I) as [(_ & _ & _ & D) _].
  induction L as [x H | x H |]; auto.
  - left. now exists x.
  - right. exists x, (holder (st g x)). specialize (D x (holder (st g x))). lia.
Qed.

(* Nobody waits while nothing moves and nobody is inside. *)
Lemma good_no_deadlock g : good g ->
  net g = [] -> (forall y, ph (st g y) <> Inside) ->
  forall x, ph (st g x) = Idle /\ queue (st g x) = [].
Proof.
  intros [I Se] En Ni.
  assert (QE : forall x, queue (st g x) = []).
  { intros x. pose proof (w_leads _ _ _ _ I x) as L. induction L as [x H | x H | x _ IH].
    - now apply (s_idle _ _ (Se x)).
    - unfold P in H. rewrite En in H. simpl in H. congruence.
    - destruct (node_eq (holder (st g x)) x) as [H|H]; [now apply (s_idle _ _ (Se x))|].
      destruct (queue (st g x)) as [|y q] eqn:Eq; auto. exfalso.
      assert (Ea : asked (st g x) = true) by (apply (s_asked _ _ (Se x)); congruence).
      pose proof (w_ask _ _ _ _ I x (holder (st g x)) (not_eq_sym H)) as J.
      unfold A, Q, R, P in J. rewrite Ea, IH, En in J. simpl in J.
      destruct (node_eq (holder (st g x)) (holder (st g x))); congruence || lia. }
  intros x. split; auto. pose proof (w_self _ _ _ _ I x) as J. unfold Q, waits in J. rewrite QE in J.
  specialize (Ni x). simpl in J. destruct (ph (st g x)); congruence.
Qed.

(* ------------------------------------------------------------------ trees *)
(* [path u v l]: [l] are the nodes on a way from [u] to [v], both ends included. *)
Inductive path : node -> node -> list node -> Prop :=
| path_end u : path u u [u]
| path_edge u w v l : nbr u w -> path w v l -> path u v (u :: l).

(* Any two nodes are joined by exactly one way that visits no node twice. *)
Definition tree : Prop := forall u v,
  (exists l, path u v l /\ NoDup l) /\
  (forall l l', path u v l -> NoDup l -> path u v l' -> NoDup l' -> l = l').

(* [h] is the next node on the way from [x] to [root], or [root] itself. *)
Definition next_hop (root x h : node) : Prop :=
  (x = root /\ h = root) \/ (exists l, nbr x h /\ path h root l /\ NoDup (x :: l)).

Definition start (root : node) (g : global raymond) : Prop :=
  net g = [] /\
  (forall x, next_hop root x (holder (st g x)) /\ queue (st g x) = [] /\ asked (st g x) = false /\
             (ph (st g x) = Idle \/ (x = root /\ ph (st g x) = Inside))).

Lemma path_first u v l : path u v l -> exists t, l = u :: t.
Proof. destruct 1; eauto. Qed.
Lemma path_last u v l : path u v l -> In v l.
Proof. induction 1; simpl; auto. Qed.
Lemma path_split u r l v : path u r l -> In v l -> exists l1 t, l = l1 ++ v :: t /\ path u v (l1 ++ [v]).
Proof.
  induction 1 as [u | u w r l B H IH]; simpl.
  - intros [<-|[]]. exists [], []. split; auto. constructor.
  - intros [<-|X].
    + exists [], l. split; auto. constructor.
    + destruct (IH X) as (l1 & t & -> & Hp). exists (u :: l1), t. split; auto. simpl. now apply path_edge with w.
Qed.
Lemma nodup_prefix (l1 l2 : list node) : NoDup (l1 ++ l2) -> NoDup l1.
Proof.
  induction l1; simpl; intros H; [constructor|]. inversion H; subst. constructor; auto.
  intro. apply H2. apply in_or_app. auto.
Qed.

Section Trees.
Hypothesis is_tree : tree.
Variable root : node.
Variable h : node -> node.
Hypothesis hop : forall x, next_hop root x (h x).

Lemma hop_root : h root = root.
Proof.
  destruct (hop root) as [[_ X]|(l & _ & Hp & Nd)]; auto.
  inversion Nd; subst. now apply path_last in Hp.
Qed.

(* the way to the root begins with [h] *)
Lemma hop_path x l : path x root (x :: l) -> NoDup (x :: l) -> l = [] /\ x = root \/ exists t, l = h x :: t.
Proof.
  intros Hp Nd. destruct (hop x) as [[-> X]|(l' & B & Hp' & Nd')].
  - left. split; auto. destruct (is_tree root root) as [_ U].
    assert (Z : root :: l = [root]) by (apply U; auto; repeat constructor; auto).
    now injection Z.
  - right. destruct (is_tree x root) as [_ U].
    assert (Z : x :: l = x :: l') by (apply U; auto; now apply path_edge with (h x)).
    injection Z as ->. now apply path_first in Hp'.
Qed.

Lemma hop_edge u v : nbr u v -> h u = v \/ h v = u.
Proof.
  intros B. assert (N : u <> v) by (intros ->; eapply nbr_irr; eauto).
  destruct (is_tree u root) as [(l & Hp & Nd) _].
  destruct (in_dec node_eq v l) as [X|X].
  - left. destruct (path_split _ _ _ _ Hp X) as (l1 & t & -> & Hv).
    assert (Nd1 : NoDup (l1 ++ [v]))
      by (change (v :: t) with ([v] ++ t) in Nd; rewrite app_assoc in Nd; now apply nodup_prefix in Nd).
    destruct (is_tree u v) as [_ U].
    assert (Z : l1 ++ [v] = [u; v]).
    { apply U; auto.
      - apply path_edge with v; auto. constructor.
      - repeat constructor; simpl; intuition congruence. }
    change [u; v] with ([u] ++ [v]) in Z. apply app_inj_tail in Z as [-> _]. simpl in *.
    destruct (hop_path u (v :: t)) as [[Y _]|[t' Y]]; auto; [discriminate|]. now injection Y.
  - right. destruct (hop_path v l) as [[-> _]|[t ->]].
    + apply path_edge with u; auto.
    + constructor; auto.
    + inversion Hp.
    + destruct (path_first _ _ _ Hp) as [t' Y]. now injection Y.
Qed.

Lemma hop_once u v : u <> v -> h u = v -> h v = u -> False.
Proof.
  intros N Hu Hv.
  destruct (hop u) as [[-> X]|(lv & Bu & Pv & Nu)]; [congruence|].
  destruct (hop v) as [[-> X]|(lu & Bv & Pu & Nv)]; [congruence|].
  rewrite Hu in *. rewrite Hv in *.
  destruct (is_tree v root) as [_ U].
  assert (Z : lv = v :: lu).
  { apply U; auto; [now inversion Nu|]. now apply path_edge with u. }
  subst lv. inversion Nu; subst. apply H1. right.
  destruct (path_first _ _ _ Pu) as [t ->]. now left.
Qed.
End Trees.

Theorem good_start root g : tree -> start root g -> good g.
Proof.
  intros T (En & S).
  assert (hop : forall x, next_hop root x (holder (st g x))) by (intro x; apply S).
  pose proof (hop_root root (fun x => holder (st g x)) hop) as Hr. simpl in Hr.
  assert (Z : forall w u v, count w (net g) u v = 0) by (rewrite En; reflexivity).
  assert (Hx : forall x, holder (st g x) = x -> x = root).
  { intros x E. destruct (hop x) as [[X _]|(l & B & _)]; auto. rewrite E in B. now apply nbr_irr in B. }
  split; [split|].
  - split; [split; [|split; [|split]]|]; intros; unfold P in *; rewrite ?Z in *; try lia.
    + now rewrite (Hx x), (Hx y).
    + intros x Hi. destruct (S x) as (_ & _ & _ & [|[-> _]]); congruence.
  - intros u v N. unfold R, P, A, Q. rewrite !Z.
    destruct (S u) as (_ & _ & -> & _). destruct (S v) as (_ & -> & _).
    simpl. destruct (node_eq (holder (st g u)) v); auto.
  - intros u. unfold Q, waits. destruct (S u) as (_ & -> & _ & [->|[_ ->]]); auto.
  - intros u _. apply S.
  - intros u. unfold R, P. now rewrite !Z.
  - intros u v B. unfold P, hp. rewrite !Z.
    assert (N : u <> v) by (intros ->; eapply nbr_irr; eauto).
    pose proof (hop_edge T root (fun x => holder (st g x)) hop u v B).
    pose proof (hop_once T root (fun x => holder (st g x)) hop u v N). simpl in *.
    destruct (node_eq (holder (st g u)) v), (node_eq (holder (st g v)) u); tauto || lia.
  - intros u. destruct (hop u) as [[-> X]|(l & B & _)]; auto.
  - intros u. destruct (T u root) as [(l & Hp & Nd) _].
    remember root as r eqn:Er in Hp.
    induction Hp as [u | u w v l B Hp IH]; subst.
    + now apply leads_here.
    + inversion Nd; subst. apply leads_on.
      destruct (hop_path T root (fun x => holder (st g x)) hop u l) as [[-> _]|[t Et]]; auto.
      * now apply path_edge with w.
      * inversion Hp.
      * destruct (path_first _ _ _ Hp) as [t' Et']. simpl in Et. rewrite Et in Et'. injection Et' as -> _. auto.
  - intros x. destruct (S x) as (_ & Eq & Ea & _). split; auto.
    rewrite Eq, Ea. split; congruence.
Qed.

Theorem good_reachable root g : tree -> reachable raymond c (start root) g -> good g.
Proof.
  intros T H. induction H as [g H | g g' _ IH S]; [now apply good_start with root | eapply (good_step c no_loss neighbours nbr_sym nbr_irr); eauto].
Qed.

(* ------------------------------------------------------------------ the theorems *)
Section Theorems.
Hypothesis is_tree : tree.
Variables (root : node) (g : global raymond).
Hypothesis here : reachable raymond c (start root) g.

(* at most one node is inside (again, now from a tree's start) *)
Theorem raymond_tree_mutual_exclusion x y :
  ph (st g x) = Inside -> ph (st g y) = Inside -> x = y.
Proof.
  destruct (good_reachable root g is_tree here) as [[[(A & _) U] _ _ _ _ _ _ _] _]. auto.
Qed.

(* exactly one token: at one node, or in one PRIVILEGE *)
Theorem raymond_one_token :
  ((exists t, holder (st g t) = t) \/ (exists u v, P g u v = 1)) /\ at_most_one (st g) (P g).
Proof.
  pose proof (good_reachable root g is_tree here) as I.
  split; [now apply good_token | now destruct I as [[[? _] _ _ _ _ _ _ _] _]].
Qed.

(* no message of a correct neighbour is ever refused *)
Theorem raymond_no_refusal from n m :
  In (from, n, m) (net g) -> check (neighbours n) (st g n) from m.
Proof. apply good_checks, (good_reachable root g is_tree here). Qed.

(* no name is in a queue twice, so it has at most (neighbours + 1) entries *)
Theorem raymond_queues n : NoDup (queue (st g n)) /\ length (queue (st g n)) <= S (length (neighbours n)).
Proof.
  destruct (good_reachable root g is_tree here) as [I _].
  assert (N : NoDup (queue (st g n))) by (eapply queue_nodup; eauto). split; auto.
  change (S (length (neighbours n))) with (length (n :: neighbours n)).
  apply NoDup_incl_length; auto. intros x X.
  destruct (queued _ _ _ _ _ I X) as [->|[_ Y]]; [now left | now right].
Qed.

(* on each edge at most one REQUEST and one PRIVILEGE each way *)
Theorem raymond_channels u v : R g u v <= 1 /\ P g u v <= 1.
Proof.
  destruct (good_reachable root g is_tree here) as [I _].
  destruct (w_own _ _ _ _ I u) as [Z1 Z2].
  destruct (node_eq u v) as [<-|N]; [lia|].
  destruct (w_small _ _ _ _ I) as [(_ & _ & _ & D) _]. split; [|apply D].
  pose proof (w_ask _ _ _ _ I u v N) as J. unfold A in J.
  destruct (node_eq (holder (st g u)) v), (asked (st g u)); lia.
Qed.

(* from HOLDER to HOLDER one comes to the privilege *)
Theorem raymond_leads x : leads (st g) (P g) x.
Proof. apply (good_reachable root g is_tree here). Qed.

(* what one node knows of itself: the Rust code's [invariant] *)
Theorem raymond_local n :
  (ph (st g n) = Inside -> holder (st g n) = n) /\
  (asked (st g n) = true -> holder (st g n) <> n) /\
  (ph (st g n) = Waiting <-> In n (queue (st g n))) /\
  settled n (st g n).
Proof.
  destruct (good_reachable root g is_tree here) as [I Se].
  destruct (w_small _ _ _ _ I) as [_ U].
  split; [apply U|]. split; [|split; auto].
  - intros Ea Eh. rewrite (w_rest _ _ _ _ I n Eh) in Ea. discriminate.
  - pose proof (w_self _ _ _ _ I n) as J. unfold Q, waits in J.
    rewrite (count_occ_In node_eq). destruct (ph (st g n)); split; intros; try congruence; lia.
Qed.

(* no deadlock: if nothing is in flight and nobody is inside, nobody waits *)
Theorem raymond_no_deadlock :
  net g = [] -> (forall y, ph (st g y) <> Inside) ->
  forall x, ph (st g x) = Idle /\ queue (st g x) = [].
Proof. apply good_no_deadlock, (good_reachable root g is_tree here). Qed.
End Theorems.

End RaymondTree.
