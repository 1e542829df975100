(* Tokens: mutual exclusion from a condition on single handler calls.

   Let there be any number of tokens, one for each [kind].  Say for each state of a node how many
   tokens of a kind it has, and for each message how many it carries.  If no handler call makes a
   token out of nothing,

     tokens after the call + tokens sent  <=  tokens before the call + tokens received,

   then there is never more than one token of a kind (theorem [one_token]).  If, besides, any two
   nodes that are inside have a token of the same kind each, then at most one node is inside
   (theorem [token_mutual_exclusion]).  The condition is local: it speaks of one call at one node,
   and of what that node knows of itself ([J]).  It needs no topology and no order of messages, and
   messages may even be lost.

   A token algorithm has one kind.  Maekawa's algorithm has one kind per member of a set, namely
   that member's lock.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network.
Import ListNotations.

Section Token.
Context {N : Nodes}.
Variable A : algorithm.
Variable c : channels.
Variable kind : Type.
Variable has : kind -> node -> local A -> nat.
Variable carries : kind -> node -> node -> msg A -> nat.         (* kind, from, to, content *)
Variable J : node -> local A -> Prop.

(* One call of a handler: [i] is the message that is received, if any. *)
Definition call (n : node) (s : local A) (i : option (node * msg A)) (s' : local A)
    (o : outbox (msg A)) : Prop :=
  match i with
  | None => request A n s = Some (s', o) \/ release A n s = Some (s', o)
  | Some (from, m) => receive A n s from m = (s', o)
  end.

Definition received (k : kind) (n : node) (i : option (node * msg A)) : nat :=
  match i with Some (from, m) => carries k from n m | None => 0 end.
Definition sent (k : kind) (n : node) (o : outbox (msg A)) : nat :=
  list_sum (map (fun p => carries k n (fst p) (snd p)) o).

Definition keeps : Prop := forall n s i s' o, J n s -> call n s i s' o -> J n s'.
Definition conserves : Prop := forall k n s i s' o, J n s -> call n s i s' o ->
  has k n s' + sent k n o <= has k n s + received k n i.
Definition meets : Prop := forall x sx y sy, x <> y -> J x sx -> J y sy ->
  phase_of A sx = Inside -> phase_of A sy = Inside -> exists k, 1 <= has k x sx /\ 1 <= has k y sy.

Definition flying (k : kind) (l : list (packet A)) : nat :=
  list_sum (map (fun p => carries k (sender p) (receiver p) (snd p)) l).
Definition held (k : kind) (f : node -> local A) (l : list node) : nat :=
  list_sum (map (fun x => has k x (f x)) l).

Definition one (k : kind) (g : global A) : Prop :=
  forall l, NoDup l -> held k (st g) l + flying k (net g) <= 1.
Definition token_start (g : global A) : Prop := (forall k, one k g) /\ (forall x, J x (st g x)).

Lemma flying_app k l1 l2 : flying k (l1 ++ l2) = flying k l1 + flying k l2.
Proof. unfold flying. now rewrite map_app, list_sum_app. Qed.
Lemma flying_post k n o : flying k (post n o) = sent k n o.
Proof. unfold flying, post, sent. now rewrite map_map. Qed.
Lemma held_cons k f x l : held k f (x :: l) = has k x (f x) + held k f l.
Proof. reflexivity. Qed.
Lemma held_out k f n s l : ~ In n l -> held k (set f n s) l = held k f l.
Proof.
  induction l as [|x l IH]; auto. intros H. rewrite !held_cons. simpl in H.
  rewrite IH, set_other by tauto. auto.
Qed.
Lemma held_in k f n s l :
  NoDup l -> In n l -> held k (set f n s) l + has k n (f n) = held k f l + has k n s.
Proof.
  induction l as [|x l IH]; simpl; [tauto|]. intros Nd H. rewrite !held_cons. inversion Nd; subst.
  destruct (node_eq x n) as [->|Nx].
  - rewrite held_out, set_same by auto. lia.
  - destruct H as [H|H]; [congruence|]. rewrite set_other by auto. specialize (IH H3 H). lia.
Qed.

(* A call at [n] that took [t] tokens out of the network and sent [u]. *)
Lemma one_after k f n s' l rest t u :
  (forall l, NoDup l -> held k f l + (rest + t) <= 1) ->
  has k n s' + u <= has k n (f n) + t ->
  NoDup l -> held k (set f n s') l + (u + rest) <= 1.
Proof.
  intros I C Nd. destruct (in_dec node_eq n l) as [H|H].
  - pose proof (held_in k f n s' l Nd H). specialize (I l Nd). lia.
  - rewrite held_out by auto. assert (Nd' : NoDup (n :: l)) by (constructor; auto).
    specialize (I _ Nd'). rewrite held_cons in I. lia.
Qed.

Hypothesis J_kept : keeps.
Hypothesis conserved : conserves.

Lemma token_step g g' : token_start g -> step A c g g' -> token_start g'.
Proof.
  intros [I U] S.
  assert (Upd : forall n s i o, call n (st g n) i s o -> forall x, J x (set (st g) n s x)).
  { intros n s i o C x. unfold set. destruct (node_eq x n) as [->|]; eauto. }
  destruct S as [g n s o E | g n s o E | g l1 l2 from n m s o En Ov E | g l1 l2 p Ec En]; split; simpl; auto.
  1,3: intros k l Nd; simpl; rewrite flying_app, flying_post; apply (one_after k (st g) n s l _ 0); auto;
    [ intros l' Nd'; pose proof (I k l' Nd'); lia
    | apply (conserved k n (st g n) None); auto; simpl; auto ].
  1: apply (Upd n s None o); simpl; auto.
  1: apply (Upd n s None o); simpl; auto.
  - intros k l Nd. simpl. rewrite flying_app, flying_post.
    apply (one_after k (st g) n s l _ (carries k from n m)); auto.
    + intros l' Nd'. pose proof (I k l' Nd') as X. rewrite En, flying_app in X.
      change (flying k ((from, n, m) :: l2)) with (carries k from n m + flying k l2) in X.
      rewrite flying_app. lia.
    + apply (conserved k n (st g n) (Some (from, m))); auto.
  - apply (Upd n s (Some (from, m)) o). auto.
  - intros k l Nd. simpl. pose proof (I k l Nd) as X. rewrite En, flying_app in X.
    change (flying k (p :: l2)) with (carries k (sender p) (receiver p) (snd p) + flying k l2) in X.
    rewrite flying_app. lia.
Qed.

Theorem one_token g : reachable A c token_start g -> token_start g.
Proof. apply invariant_holds; [auto | intros; eapply token_step; eauto]. Qed.

Hypothesis two_meet : meets.

Theorem token_mutual_exclusion g : reachable A c token_start g -> mutual_exclusion g.
Proof.
  intros H x y Hx Hy. destruct (one_token g H) as [I U].
  destruct (node_eq x y) as [|Nxy]; auto. exfalso.
  destruct (two_meet x (st g x) y (st g y)) as (k & Kx & Ky); auto.
  assert (Nd : NoDup [x; y]) by (repeat constructor; simpl; intuition congruence).
  pose proof (I k _ Nd) as X. unfold held in X. simpl in X. lia.
Qed.
End Token.

(* A cluster in which only [root] has the token, and nothing is in flight. *)
Lemma one_at_root {N : Nodes} (A : algorithm) kind has carries (J : node -> local A -> Prop) (g : global A) (root : kind -> node) :
  net g = [] ->
  (forall k x, x <> root k -> has k x (st g x) = 0) ->
  (forall k, has k (root k) (st g (root k)) <= 1) ->
  (forall x, J x (st g x)) ->
  token_start A kind has carries J g.
Proof.
  intros En Out Root U. split; auto. intros k l Nd. rewrite En. unfold flying. simpl.
  rewrite Nat.add_0_r. induction l as [|x l IH]; [unfold held; simpl; lia|].
  rewrite held_cons. inversion Nd; subst. specialize (IH H2).
  destruct (node_eq x (root k)) as [->|Nx]; [|now rewrite Out].
  assert (Z : held A kind has k (st g) l = 0); [|specialize (Root k); lia].
  clear IH Nd H2. induction l as [|y l IH]; auto. rewrite held_cons, IH by (simpl in H1; tauto).
  rewrite Out; auto. intros ->. apply H1. now left.
Qed.

(* The case of a single token. *)
Section SingleToken.
Context {N : Nodes}.
Variable A : algorithm.
Variable c : channels.
Variable has : node -> local A -> nat.
Variable carries : msg A -> nat.
Variable J : node -> local A -> Prop.

Definition sent1 (o : outbox (msg A)) : nat := list_sum (map (fun p => carries (snd p)) o).
Definition received1 (i : option (node * msg A)) : nat :=
  match i with Some (_, m) => carries m | None => 0 end.

Hypothesis calls : forall n s i s' o, J n s -> call A n s i s' o ->
  J n s' /\ has n s' + sent1 o <= has n s + received1 i.
Hypothesis inside_has : forall n s, J n s -> phase_of A s = Inside -> 1 <= has n s.

Let K (_ : unit) := has.
Let L (_ : unit) (_ _ : node) := carries.
Definition single_start : global A -> Prop := token_start A unit (fun _ => has) (fun _ _ _ => carries) J.

Lemma single_call : keeps A J /\ conserves A unit K L J.
Proof.
  split.
  - intros n s i s' o Hj C. now apply (calls n s i s' o).
  - intros k n s i s' o Hj C. destruct (calls n s i s' o Hj C) as [_ X]. destruct i as [[from m]|]; exact X.
Qed.

Theorem single_token_mutual_exclusion g : reachable A c single_start g -> mutual_exclusion g.
Proof.
  destruct single_call as [C1 C2]. apply (token_mutual_exclusion A c unit K L J C1 C2).
  intros x sx y sy _ Jx Jy Hx Hy. exists tt. unfold K. auto.
Qed.

(* From a start at which only [root] has the token, or has sent it. *)
Theorem single_token_sending root f o :
  (forall x, x <> root -> has x (f x) = 0) -> has root (f root) + sent1 o <= 1 -> (forall x, J x (f x)) ->
  forall g, reachable A c (begins_sending f root o) g -> mutual_exclusion g.
Proof.
  intros Out Root U g R. apply single_token_mutual_exclusion.
  apply reachable_from with (begins_sending f root o); auto. clear g R. intros g [Es En].
  assert (Z : forall l, ~ In root l -> held A unit K tt f l = 0).
  { induction l as [|x l IH]; auto. intros H. rewrite held_cons. unfold K at 1.
    rewrite Out, IH; auto; intros E; apply H; simpl; auto. }
  assert (F : flying A unit L tt (post root o) = sent1 o)
    by (unfold flying, sent1, post; now rewrite map_map).
  split; rewrite ?Es; auto. intros [] l Nd. rewrite Es, En. fold K. fold L.
  change (held A unit K tt f l + flying A unit L tt (post root o) <= 1). rewrite F.
  assert (X : held A unit K tt f l <= has root (f root)); [|lia].
  induction l as [|x l IH]; [apply Nat.le_0_l|]. inversion Nd; subst. rewrite held_cons. unfold K at 1.
  destruct (node_eq x root) as [->|Nx]; [rewrite Z by auto; lia|]. rewrite Out by auto. auto.
Qed.

Theorem single_token_from root f :
  (forall x, x <> root -> has x (f x) = 0) -> has root (f root) <= 1 -> (forall x, J x (f x)) ->
  forall g, reachable A c (begins f) g -> mutual_exclusion g.
Proof.
  intros Out Root U g. apply (single_token_sending root f []); auto. unfold sent1. simpl. lia.
Qed.
End SingleToken.

(* Goes through all cases of a handler. *)
Ltac cases :=
  repeat match goal with
  | H : context [match ?x with _ => _ end] |- _ => destruct x eqn:?; simpl in *
  | |- context [match ?x with _ => _ end] => destruct x eqn:?; simpl in *
  | H : _ \/ _ |- _ => destruct H
  | H : _ /\ _ |- _ => destruct H
  | H : Some _ = Some _ |- _ => injection H as ?; subst
  | H : None = Some _ |- _ => discriminate
  | H : (_, _) = (_, _) |- _ => injection H as ?; subst
  end; simpl in *.
