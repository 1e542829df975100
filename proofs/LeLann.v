(* Le Lann 1977, the token on a ring: the circulating form, and the resting form of this project.
   Mutual exclusion from one token.  It needs nothing of the ring: [right] may be any function.
   One check of the Rust code is modelled: a node that has the token refuses another.

   Rust: crates/algorithms/src/le_lann.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section LeLann.
Context {N : Nodes}.
Variable right : node -> node.
Variable resting_place : option node.         (* [None]: the token always circulates *)

Inductive message := Request | Token | RestingToken (again : bool).
Record state := mk { ph : phase; token : bool; alerted : bool; again : bool }.

Definition is (a b : node) : bool := if node_eq a b then true else false.
Definition rests_at (me : node) : bool :=
  match resting_place with Some r => is r me | None => false end.

Definition alert (me : node) (s : state) : state * outbox message :=
  if alerted s then (s, []) else (mk (ph s) (token s) true (again s), [(right me, Request)]).

(* Passes the token on, unless it rests here or there is no other node. *)
Definition go_on (me : node) (s : state) : state * outbox message :=
  if (rests_at me && negb (again s)) || is (right me) me then (s, [])
  else (mk (ph s) false false false,
        [(right me, match resting_place with
                    | None => Token
                    | Some _ => RestingToken (again s && negb (rests_at me))
                    end)]).

Definition on_token (me : node) (s : state) (more : bool) : state * outbox message :=
  match ph s with
  | Waiting => (mk Inside true (alerted s) (again s || more), [])
  | p => go_on me (mk p true (alerted s) (again s || more))
  end.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      if token s then Some (mk Inside true (alerted s) (again s), [])
      else let s1 := mk Waiting false (alerted s) (again s) in
           match resting_place with
           | None => Some (s1, [])
           | Some _ => if rests_at me then Some (s1, []) else Some (alert me s1)
           end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => Some (go_on me (mk Idle (token s) (alerted s) (again s)))
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request =>
      if alerted s || token s || rests_at me then
        let s1 := mk (ph s) (token s) (alerted s) true in
        match token s, ph s with
        | true, Idle => go_on me s1
        | _, _ => (s1, [])
        end
      else alert me s
  | Token => if token s then (s, []) else on_token me s false
  | RestingToken more => if token s then (s, []) else on_token me s more
  end.

Definition le_lann : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition created (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) (is me root) false false.
(* At the start, an idle node sends a circulating token off. *)
Definition started (me : node) (s : state) : state * outbox message :=
  match token s, ph s with true, Idle => go_on me s | _, _ => (s, []) end.
Definition first (root : node) (held : bool) : state * outbox message :=
  started root (created root held root).
Definition initial (root : node) (held : bool) : node -> state :=
  set (created root held) root (fst (first root held)).

Definition has (_ : node) (s : state) : nat := if token s then 1 else 0.
Definition carries (m : message) : nat := match m with Request => 0 | _ => 1 end.
Definition J (n : node) (s : state) : Prop := ph s = Inside -> token s = true.

Lemma go_on_token me p t a b s' o :
  p <> Inside -> go_on me (mk p t a b) = (s', o) -> t = true ->
  ph s' = p /\ has me s' + sent1 le_lann carries o <= 1.
Proof.
  unfold go_on, has, sent1. intros Np E ->. simpl in *.
  destruct (_ || _) in E; injection E as <- <-; simpl; auto. destruct resting_place; auto.
Qed.

Lemma le_lann_call n s i s' o : J n s -> call le_lann n s i s' o ->
  J n s' /\ has n s' + sent1 le_lann carries o <= has n s + received1 le_lann carries i.
Proof.
  destruct s as [p t a b]. unfold J. intros Hj C.
  assert (G : forall q x y, q <> Inside -> go_on n (mk q true x y) = (s', o) ->
              (ph s' = Inside -> token s' = true) /\ has n s' + sent1 le_lann carries o <= 1).
  { intros q x y Nq E. destruct (go_on_token n q true x y s' o Nq E eq_refl) as [Ep L].
    split; auto. congruence. }
  destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
  - unfold do_receive, on_token, alert in C. simpl in C.
    destruct m; simpl in C; destruct p, t; simpl in *;
      repeat match type of C with context [if ?x then _ else _] => destruct x; simpl in C end;
      try (apply G in C; [|congruence]; destruct C; split; auto; unfold has in *; simpl in *; lia);
      try (injection C as <- <-; unfold has, sent1; simpl; split; auto; congruence);
      specialize (Hj eq_refl); discriminate.
  - unfold do_request, alert in C. simpl in C. destruct p; try discriminate.
    destruct t; [|destruct resting_place; [destruct (rests_at n); [|destruct a]|]];
      injection C as <- <-; unfold has, sent1; simpl; split; auto; congruence.
  - unfold do_release in C. simpl in C. destruct p; try discriminate. injection C as C.
    simpl in Hj. rewrite Hj in C by auto. apply G in C; [|congruence]. destruct C. split; auto.
    unfold has in *. simpl in *. rewrite Hj by auto. lia.
Qed.

Theorem le_lann_mutual_exclusion c root held g :
  reachable le_lann c (begins_sending (A:=le_lann) (initial root held) root (snd (first root held))) g ->
  mutual_exclusion g.
Proof.
  assert (Root : has root (initial root held root) + sent1 le_lann carries (snd (first root held)) <= 1
                 /\ J root (initial root held root)).
  { unfold initial. rewrite set_same. unfold first, started, created, is, first_phase. simpl.
    destruct (node_eq root root); [|congruence]. destruct held; simpl; [split; auto; unfold J; auto|].
    destruct (go_on root _) as [s' o] eqn:E. simpl.
    destruct (go_on_token root Idle true false false s' o ltac:(congruence) E eq_refl) as [Ep L].
    split; auto. unfold J. congruence. }
  assert (Out : forall x, x <> root -> has x (initial root held x) = 0 /\ J x (initial root held x)).
  { intros x Nx. unfold initial. rewrite set_other by auto. unfold has, J, created, is, first_phase. simpl.
    destruct (node_eq x root); [congruence|]. split; [auto | discriminate]. }
  apply (single_token_sending le_lann c has carries J).
  - apply le_lann_call.
  - intros n s H E. unfold has. now rewrite (H E).
  - intros x Nx. now apply Out.
  - apply Root.
  - intros x. destruct (node_eq x root) as [->|Nx]; [apply Root | now apply Out].
Qed.
End LeLann.
