(* Neamatollahi, Sedaghat, Naghibzadeh 2017, "A simple token-based algorithm for the mutual exclusion
   problem in distributed systems", as printed and as repaired.  Mutual exclusion from one token, on
   any shape.  NeamatollahiResting.v is about the resting form.

   In a torus that is only one node wide, the token can come back to the node that sends it.  The
   Rust code handles it there at once.  Such calls nest, and [depth] bounds the nesting: a token
   beyond it is lost.  The theorem is true for any depth.

   Rust: crates/algorithms/src/neamatollahi/mod.rs.  *)
From Coq Require Import List Arith ZArith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section Neamatollahi.
Context {N : Nodes}.
Variables as_published alone : bool.
Variable right : node -> node.
Variables rows columns : nat.
Variable row_length : node -> nat.
Variable position : node -> nat.                  (* the column of a node *)
Variable in_row : node -> nat -> node.            (* the node of the same row in a column *)
Variable in_row_below : node -> nat -> node.

Record tok := Tok { row_counter : nat; col_counter : Z; chg_col : bool; column : nat }.
Inductive message := Request (x : node) | Token (t : tok).
Inductive way := Down | Right | NextColumn | Stay.
Record state := mk { ph : phase; alert : option node; late : option node; token : option tok }.

Definition is (a b : node) : bool := if node_eq a b then true else false.
Definition waiting_is_empty (s : state) : bool :=
  match ph s, alert s with Idle, None => true | _, _ => false end.
Definition send_right (me : node) (m : message) : outbox message :=
  if is (right me) me then [] else [(right me, m)].

(* Lines 18-23. *)
Definition on_request (me : node) (s : state) (origin : node) : state * outbox message :=
  if is origin me then (s, [])
  else if waiting_is_empty s then (mk (ph s) (Some origin) (late s) (token s), send_right me (Request origin))
  else match ph s with
       | Inside => if as_published then (s, []) else (mk Inside (alert s) (Some origin) (token s), [])
       | _ => (s, [])
       end.

(* Lines 11-15 and 50-54. *)
Definition after_row_step (me : node) (t : tok) : way :=
  let full := (Z.of_nat (row_length me) + if as_published then 0 else 1)%Z in
  if (full <=? col_counter t)%Z then Down else Right.
Definition full_column : nat := rows + if as_published then 0 else 1.
Definition serve (s : state) (other : way) : state * way :=
  match ph s with
  | Waiting => (s, Stay)
  | _ => (mk (ph s) None (late s) (token s), other)
  end.

Section Go.
Variable arrive : state -> tok -> state * outbox message.
Definition go (me : node) (s : state) (t : tok) (w : way) : state * outbox message :=
  let pass := fun (to : node) (t' : tok) =>
    if is to me then
      if alone then (mk (ph s) (alert s) (late s) (Some t'), []) else arrive s t'
    else (s, [(to, Token t')]) in
  match w with
  | Stay => (mk Inside (alert s) (late s) (Some t), [])
  | Right => pass (right me) t
  | NextColumn =>
      let c := (column t + 1) mod columns in
      pass (in_row me c) (Tok (row_counter t) (col_counter t) (chg_col t) c)
  | Down =>
      let c := if as_published then position me else column t in
      pass (in_row_below me c) (Tok (row_counter t) 0%Z (chg_col t) c)
  end.
End Go.

(* Lines 24-68. *)
Fixpoint arrive (depth : nat) (me : node) (s : state) (t : tok) : state * outbox message :=
  match depth with
  | 0 => (s, [])
  | S d =>
      let go := go (arrive d me) me in
      if (0 <? col_counter t)%Z then
        let t1 := Tok (row_counter t) (col_counter t + 1)%Z (chg_col t) (column t) in
        let (s1, w) := serve s (after_row_step me t1) in go s1 t1 w
      else
        let r := if (col_counter t =? 0)%Z then S (row_counter t) else row_counter t in
        if (col_counter t =? 0)%Z && (full_column <=? r) then go s (Tok r (-1)%Z true (column t)) NextColumn
        else
          let r1 := if chg_col t then 1 else r in
          if waiting_is_empty s then go s (Tok r1 0%Z false (column t)) Down
          else let (s1, w) := serve s Right in go s1 (Tok r1 1%Z false (column t)) w
  end.

Variable depth : nat.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      match token s with
      | Some t => Some (mk Inside (alert s) (late s) (Some t), [])
      | None => Some (mk Waiting (alert s) (late s) None,
                      match alert s with None => send_right me (Request me) | Some _ => [] end)
      end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside =>
      match token s with
      | None => Some (mk Idle None (late s) None, [])
      | Some t =>
          let (s1, o1) := go (arrive depth me) me (mk Idle None (late s) None) t (after_row_step me t) in
          match late s1 with
          | None => Some (s1, o1)
          | Some origin =>
              let (s2, o2) := on_request me (mk (ph s1) (alert s1) None (token s1)) origin in Some (s2, o1 ++ o2)
          end
      end
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request origin => on_request me s origin
  | Token t => arrive depth me s t
  end.

Definition neamatollahi : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition created (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) None None
     (if is me root then Some (Tok 1 (if held then 1 else 0)%Z false (position me)) else None).
(* At the start, an idle node sends the token down its column. *)
Definition first (root : node) (held : bool) : state * outbox message :=
  let s := created root held root in
  match ph s, token s with
  | Idle, Some t => go (arrive depth root) root (mk Idle None None None) t Down
  | _, _ => (s, [])
  end.
Definition initial (root : node) (held : bool) : node -> state :=
  set (created root held) root (fst (first root held)).

Definition has (_ : node) (s : state) : nat := match token s with Some _ => 1 | None => 0 end.
Definition carries (m : message) : nat := match m with Token _ => 1 | _ => 0 end.
Notation sent1 := (sent1 neamatollahi carries).
Definition J (n : node) (s : state) : Prop := ph s = Inside -> token s <> None.

(* A step with the token in hand. *)
Definition sound (me : node) (s : state) (r : state * outbox message) : Prop :=
  J me (fst r) /\ has me (fst r) + sent1 (snd r) <= has me s + 1.

Lemma go_sound next me s t w :
  (forall s t, J me s -> sound me s (next s t)) -> J me s -> sound me s (go next me s t w).
Proof.
  intros Hn Hj. assert (P : forall to t', sound me s (if is to me then
      if alone then (mk (ph s) (alert s) (late s) (Some t'), []) else next s t' else (s, [(to, Token t')]))).
  { intros to t'. destruct (is to me); [destruct alone; auto|]; unfold sound, J, has, Token.sent1; simpl.
    - split; [discriminate | lia].
    - split; auto. }
  unfold go. destruct w; auto. unfold sound, J, has, Token.sent1. simpl. split; [discriminate | lia].
Qed.

Lemma serve_sound me s w s1 w1 : J me s -> serve s w = (s1, w1) -> J me s1 /\ has me s1 = has me s.
Proof. unfold serve, J, has. intros Hj. destruct (ph s) eqn:E; intros [= <- <-]; simpl; rewrite ?E; auto. Qed.

Lemma arrive_sound d me : forall s t, J me s -> sound me s (arrive d me s t).
Proof.
  induction d as [|d IH]; intros s t Hj; cbn [arrive]; [unfold sound, Token.sent1; simpl; split; auto; lia|].
  cbv zeta.
  assert (G : forall s1 t1 w, J me s1 -> has me s1 = has me s -> sound me s (go (arrive d me) me s1 t1 w)).
  { intros s1 t1 w J1 E. destruct (go_sound (arrive d me) me s1 t1 w IH J1) as [H1 H2]. split; auto. lia. }
  destruct (0 <? col_counter t)%Z.
  - match goal with |- context [serve s ?x] => destruct (serve s x) as [s1 w] eqn:E end.
    apply (serve_sound me) in E as [J1 E]; auto.
  - destruct (_ && _); auto. destruct (waiting_is_empty s); auto.
    match goal with |- context [serve s ?x] => destruct (serve s x) as [s1 w] eqn:E end.
    apply (serve_sound me) in E as [J1 E]; auto.
Qed.

Lemma on_request_sound me s x s' o : J me s -> on_request me s x = (s', o) ->
  J me s' /\ has me s' + sent1 o <= has me s.
Proof.
  unfold on_request, J, has, send_right, Token.sent1. intros Hj.
  destruct (is x me); [intros [= <- <-]; simpl; split; auto; lia|].
  destruct (waiting_is_empty s); [intros [= <- <-]; simpl; destruct (is (right me) me); simpl; split; auto; lia|].
  destruct (ph s) eqn:E; [| |destruct as_published]; intros [= <- <-]; simpl; rewrite ?E; split; auto; lia.
Qed.

Lemma neamatollahi_call n s i s' o : J n s -> call neamatollahi n s i s' o ->
  J n s' /\ has n s' + sent1 o <= has n s + received1 neamatollahi carries i.
Proof.
  intros Hj C. destruct i as [[from m]|]; cbn [call] in C; [|destruct C as [C|C]].
  - change (do_receive n s from m = (s', o)) in C. destruct m as [x|t]; simpl in C.
    + apply on_request_sound in C as [H1 H2]; auto. split; auto. simpl. lia.
    + destruct (arrive_sound depth n s t Hj) as [H1 H2]. rewrite C in H1, H2. auto.
  - change (do_request n s = Some (s', o)) in C. unfold do_request in C. destruct (ph s); try discriminate.
    unfold J, has, Token.sent1. destruct (token s) eqn:Et; injection C as <- <-; simpl.
    + split; [discriminate | lia].
    + split; [discriminate|]. destruct (alert s); auto. unfold send_right. destruct (is (right n) n); auto.
  - change (do_release n s = Some (s', o)) in C. unfold do_release in C. destruct (ph s) eqn:Ep; try discriminate.
    assert (Hs : has n s = 1) by (specialize (Hj Ep); unfold has; destruct (token s); congruence).
    rewrite Hs. destruct (token s) as [t|]; [|injection C as <- <-; split; [discriminate | unfold has, Token.sent1; simpl; lia]].
    destruct (go_sound (arrive depth n) n (mk Idle None (late s) None) t (after_row_step n t)) as [H1 H2];
      [apply arrive_sound | discriminate |].
    destruct (go _ _ _ _ _) as [s1 o1]. cbn [fst snd] in H1, H2. change (has n (mk Idle None (late s) None)) with 0 in H2.
    destruct (late s1) as [x|]; [|injection C as <- <-; split; auto].
    destruct (on_request n _ x) as [s2 o2] eqn:E. injection C as <- <-.
    apply on_request_sound in E as [H3 H4]; auto. split; auto.
    change (has n (mk (ph s1) (alert s1) None (token s1))) with (has n s1) in H4.
    assert (E2 : sent1 (o1 ++ o2) = sent1 o1 + sent1 o2)
      by (unfold Token.sent1; now rewrite map_app, list_sum_app).
    rewrite E2. cbn [received1]. clear - H2 H4. revert H2 H4.
    generalize (has n s2) (has n s1) (sent1 o1) (sent1 o2). intros. lia.
Qed.

Theorem neamatollahi_mutual_exclusion c root held g :
  reachable neamatollahi c (begins_sending (A:=neamatollahi) (initial root held) root (snd (first root held))) g ->
  mutual_exclusion g.
Proof.
  assert (Root : J root (fst (first root held)) /\ has root (fst (first root held)) + sent1 (snd (first root held)) <= 1).
  { unfold first, created, is, first_phase. simpl. destruct (node_eq root root); [|congruence].
    destruct held; simpl.
    - unfold J, has, Token.sent1. simpl. split; [discriminate | lia].
    - destruct (go_sound (arrive depth root) root (mk Idle None None None) (Tok 1 0%Z false (position root)) Down)
        as [H1 H2]; [apply arrive_sound | discriminate |]. split; auto. }
  assert (Out : forall x, x <> root -> has x (initial root held x) = 0 /\ J x (initial root held x)).
  { intros x Nx. unfold initial. rewrite set_other by auto. unfold has, J, created, is, first_phase. simpl.
    destruct (node_eq x root); [congruence|]. split; [auto | discriminate]. }
  apply (single_token_sending neamatollahi c has carries J).
  - apply neamatollahi_call.
  - intros n s H E. unfold has. specialize (H E). destruct (token s); [auto | congruence].
  - intros x Nx. now apply Out.
  - unfold initial. rewrite set_same. apply Root.
  - intros x. destruct (node_eq x root) as [->|Nx]; [unfold initial; rewrite set_same; apply Root | now apply Out].
Qed.
End Neamatollahi.
