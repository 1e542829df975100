(* The resting form of Neamatollahi's algorithm, which is this project's own: the token rests at home
   while no node wants it.  Mutual exclusion from one token, on any shape.

   In a torus that is only one node wide or high, the token can come back to the node that sends it.
   The Rust code handles it there at once.  Such calls nest, and [depth] bounds the nesting: a token
   beyond it is lost.  The theorem is true for any depth.

   Rust: crates/algorithms/src/neamatollahi/resting.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section NeamatollahiResting.
Context {N : Nodes}.
Variable one_row : bool.
Variable right : node -> node.
Variables is_home is_gate : node -> bool.
Variable gate_below : node -> node.

Record tok := Tok { in_row : bool; row_again : bool; again : bool }.
Inductive message := Request (x : node) | Token (t : tok) | Call.
Record state := mk {
  ph : phase; alerted : bool; blocked : bool; token_in_row : bool; called : bool; token : option tok }.

Definition is (a b : node) : bool := if node_eq a b then true else false.
Definition send_right (me : node) (m : message) : outbox message :=
  if is (right me) me then [] else [(right me, m)].
Definition with_token (s : state) (p : phase) (t : option tok) : state :=
  mk p (alerted s) (blocked s) (token_in_row s) (called s) t.

Section Steps.
Variable me : node.
Variable at_gate : state -> tok -> state * outbox message.

Definition down_the_column (s : state) (t : tok) : state * outbox message :=
  if one_row then at_gate s t else (s, [(gate_below me, Token t)]).
Definition end_round (s : state) (t : tok) : state * outbox message :=
  let a := alerted s || row_again t in
  down_the_column (mk (ph s) a (blocked s) false (called s) (token s)) (Tok false false (again t || a)).
Definition look_into_row (s : state) (t : tok) : state * outbox message :=
  let s1 := mk (ph s) false (blocked s) (token_in_row s) (called s) (token s) in
  if alerted s then
    let t1 := Tok true (row_again t) (again t) in
    let s2 := mk (ph s) false (blocked s) true (called s) (token s) in
    match ph s with
    | Waiting => (with_token s2 Inside (Some t1), [])
    | _ => if is (right me) me then end_round s2 t1 else (s2, [(right me, Token t1)])
    end
  else down_the_column s1 t.
Definition set_out (s : state) (t : tok) : state * outbox message :=
  look_into_row (mk (ph s) (alerted s) (blocked s) (token_in_row s) false (token s)) (Tok (in_row t) (row_again t) false).

(* Sends a resting token out, if it is here and not used. *)
Definition wake (s : state) : state * outbox message :=
  match ph s, token s with
  | Idle, Some t => set_out (with_token s Idle None) t
  | _, _ => (s, [])
  end.
Definition alert_gate (s : state) : state * outbox message :=
  let s1 := mk (ph s) true (blocked s) (token_in_row s) (called s) (token s) in
  if alerted s || token_in_row s then (s1, [])
  else if is_home me then wake s1 else (s1, [(gate_below me, Call)]).
Definition on_call (s : state) : state * outbox message :=
  if is_home me then wake (mk (ph s) (alerted s) (blocked s) (token_in_row s) true (token s))
  else (s, [(gate_below me, Call)]).
Definition on_token (s : state) (t : tok) : state * outbox message :=
  if in_row t then
    if token_in_row s then end_round s t
    else
      let t1 := Tok true (row_again t || blocked s) (again t) in
      let s1 := mk (ph s) false false (token_in_row s) (called s) (token s) in
      match ph s with
      | Waiting => (with_token s1 Inside (Some t1), [])
      | _ => (s1, send_right me (Token t1))
      end
  else at_gate s t.
End Steps.

Fixpoint at_gate (depth : nat) (me : node) (s : state) (t : tok) : state * outbox message :=
  match depth with
  | 0 => (s, [])
  | S d =>
      if is_home me then
        if again t || called s || alerted s then set_out me (at_gate d me) s t
        else (with_token s (ph s) (Some (Tok false false false)), [])
      else look_into_row me (at_gate d me) s t
  end.

Variable depth : nat.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle =>
      let s1 := with_token s Waiting (token s) in
      match token s with
      | Some t => Some (with_token s Inside (Some t), [])
      | None =>
          if is_gate me then Some (alert_gate me (at_gate depth me) s1)
          else if alerted s then Some (s1, [])
          else Some (mk Waiting true (blocked s) (token_in_row s) (called s) (token s), send_right me (Request me))
      end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside =>
      let s1 := with_token s Idle None in
      match token s with
      | None => Some (s1, [])
      | Some t =>
          Some (if in_row t then
                  if is (right me) me then end_round me (at_gate depth me) s1 t
                  else (s1, [(right me, Token t)])
                else at_gate depth me s1 t)
      end
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match m with
  | Request origin =>
      if is_gate me then alert_gate me (at_gate depth me) s
      else if alerted s then (mk (ph s) true true (token_in_row s) (called s) (token s), [])
      else (mk (ph s) true (blocked s) (token_in_row s) (called s) (token s), send_right me (Request origin))
  | Call => on_call me (at_gate depth me) s
  | Token t => on_token me (at_gate depth me) s t
  end.

Definition neamatollahi_resting : algorithm := Algorithm state message do_request do_release do_receive ph.

Definition initial (root : node) (held : bool) (me : node) : state :=
  mk (first_phase root held me) false false false false
     (if is me root then Some (Tok false false false) else None).

Definition has (_ : node) (s : state) : nat := match token s with Some _ => 1 | None => 0 end.
Definition carries (m : message) : nat := match m with Token _ => 1 | _ => 0 end.
Notation sent1 := (sent1 neamatollahi_resting carries).
Definition J (n : node) (s : state) : Prop := ph s = Inside -> token s <> None.

(* A step with [k] tokens in hand. *)
Definition sound (me : node) (s : state) (k : nat) (r : state * outbox message) : Prop :=
  J me (fst r) /\ has me (fst r) + sent1 (snd r) <= has me s + k.

Lemma sound_from me s s1 k r : has me s1 = has me s -> sound me s1 k r -> sound me s k r.
Proof. unfold sound. intros ->. auto. Qed.

Section Sound.
Variable me : node.
Variable gate : state -> tok -> state * outbox message.
Hypothesis gate_sound : forall s t, J me s -> sound me s 1 (gate s t).

Ltac plain := unfold sound, J, has, Token.sent1; simpl; split; [auto; congruence | lia].

Lemma down_sound s t : J me s -> sound me s 1 (down_the_column me gate s t).
Proof. intros Hj. unfold down_the_column. destruct one_row; auto. unfold sound, Token.sent1. simpl. split; auto. Qed.

Lemma end_round_sound s t : J me s -> sound me s 1 (end_round me gate s t).
Proof.
  intros Hj. unfold end_round.
  apply sound_from with (mk (ph s) (alerted s || row_again t) (blocked s) false (called s) (token s)); auto.
  now apply down_sound.
Qed.

Lemma look_sound s t : J me s -> sound me s 1 (look_into_row me gate s t).
Proof.
  intros Hj. unfold look_into_row. destruct (alerted s).
  - set (s2 := mk (ph s) false (blocked s) true (called s) (token s)).
    assert (E : sound me s 1 (if is (right me) me then end_round me gate s2 (Tok true (row_again t) (again t))
                              else (s2, [(right me, Token (Tok true (row_again t) (again t)))]))).
    { destruct (is (right me) me).
      - apply sound_from with s2; auto. now apply end_round_sound.
      - unfold sound, J, has, Token.sent1 in *. simpl. split; auto. }
    destruct (ph s); auto. plain.
  - apply sound_from with (mk (ph s) false (blocked s) (token_in_row s) (called s) (token s)); auto.
    now apply down_sound.
Qed.

Lemma set_out_sound s t : J me s -> sound me s 1 (set_out me gate s t).
Proof.
  intros Hj. unfold set_out.
  apply sound_from with (mk (ph s) (alerted s) (blocked s) (token_in_row s) false (token s)); auto.
  now apply look_sound.
Qed.

Lemma wake_sound s : J me s -> sound me s 0 (wake me gate s).
Proof.
  intros Hj. unfold wake.
  assert (Z : sound me s 0 (s, [])) by (unfold sound, Token.sent1; simpl; split; auto; lia).
  destruct (ph s) eqn:Ep; auto. destruct (token s) as [t|] eqn:Et; auto.
  destruct (set_out_sound (with_token s Idle None) t) as [H1 H2]; [discriminate|].
  split; auto. unfold has at 2. unfold has at 2 in H2. simpl in H2. rewrite Et. lia.
Qed.

Lemma alert_gate_sound s : J me s -> sound me s 0 (alert_gate me gate s).
Proof.
  intros Hj. unfold alert_gate. set (s1 := mk (ph s) true (blocked s) (token_in_row s) (called s) (token s)).
  assert (J1 : J me s1) by exact Hj.
  destruct (_ || _); [unfold sound, has, Token.sent1; simpl; split; auto; lia|].
  destruct (is_home me); [|unfold sound, has, Token.sent1; simpl; split; auto; lia].
  apply sound_from with s1; auto. now apply wake_sound.
Qed.

Lemma on_call_sound s : J me s -> sound me s 0 (on_call me gate s).
Proof.
  intros Hj. unfold on_call. destruct (is_home me); [|unfold sound, has, Token.sent1; simpl; split; auto; lia].
  apply sound_from with (mk (ph s) (alerted s) (blocked s) (token_in_row s) true (token s)); auto.
  now apply wake_sound.
Qed.

Lemma send_right_sent x : sent1 (send_right me x) <= carries x.
Proof. unfold send_right. destruct (is (right me) me); unfold Token.sent1; simpl; lia. Qed.

Lemma on_token_sound s t : J me s -> sound me s 1 (on_token me gate s t).
Proof.
  intros Hj. unfold on_token. destruct (in_row t); auto. destruct (token_in_row s) eqn:Et; [now apply end_round_sound|].
  set (t1 := Tok _ _ _). pose proof (send_right_sent (Token t1)) as L. simpl in L.
  destruct (ph s) eqn:Ep; unfold sound; simpl; rewrite ?Ep in *; split; try discriminate;
    try (unfold J; simpl; rewrite ?Ep; auto; fail); unfold has, Token.sent1 in *; simpl in *; lia.
Qed.
End Sound.

Lemma at_gate_sound d me : forall s t, J me s -> sound me s 1 (at_gate d me s t).
Proof.
  induction d as [|d IH]; intros s t Hj; simpl; [unfold sound, Token.sent1; simpl; split; auto; lia|].
  destruct (is_home me); [|now apply look_sound].
  destruct (_ || _); [now apply set_out_sound|].
  unfold sound, J, has, Token.sent1. simpl. split; [discriminate | lia].
Qed.

Lemma neamatollahi_resting_call n s i s' o : J n s -> call neamatollahi_resting n s i s' o ->
  J n s' /\ has n s' + sent1 o <= has n s + received1 neamatollahi_resting carries i.
Proof.
  intros Hj C. pose proof (at_gate_sound depth n) as G.
  assert (D : forall k r, sound n s k r -> r = (s', o) -> J n s' /\ has n s' + sent1 o <= has n s + k)
    by (intros k r [H1 H2] ->; auto).
  destruct i as [[from m]|]; cbn [call] in C; [|destruct C as [C|C]].
  - change (do_receive n s from m = (s', o)) in C. destruct m as [x|t|]; simpl in C.
    + destruct (is_gate n); [now apply (D 0 _ (alert_gate_sound n _ G s Hj))|].
      destruct (alerted s); injection C as <- <-; unfold J, has; simpl; (split; [exact Hj|]).
      * unfold Token.sent1. simpl. lia.
      * pose proof (send_right_sent n (Request x)) as L. simpl in L. lia.
    + now apply (D 1 _ (on_token_sound n _ G s t Hj)).
    + now apply (D 0 _ (on_call_sound n _ G s Hj)).
  - change (do_request n s = Some (s', o)) in C. unfold do_request in C. destruct (ph s); try discriminate.
    destruct (token s) as [t|] eqn:Et.
    + injection C as <- <-. unfold J, has, Token.sent1. simpl. rewrite Et. split; [discriminate | lia].
    + destruct (is_gate n); [|destruct (alerted s)]; injection C as C.
      * refine (D 0 _ (sound_from n s _ 0 _ _ (alert_gate_sound n _ G _ _)) C);
          [unfold has; simpl; now rewrite Et | discriminate].
      * subst. unfold J, has, Token.sent1. simpl. split; [discriminate | lia].
      * subst. unfold J, has. simpl. split; [discriminate|].
        pose proof (send_right_sent n (Request n)) as L. simpl in L. lia.
  - change (do_release n s = Some (s', o)) in C. unfold do_release in C. destruct (ph s) eqn:Ep; try discriminate.
    assert (Hs : has n s = 1) by (specialize (Hj Ep); unfold has; destruct (token s); congruence).
    rewrite Hs. destruct (token s) as [t|];
      [|injection C as <- <-; split; [discriminate | unfold has, Token.sent1; simpl; lia]].
    injection C as C.
    assert (J1 : J n (with_token s Idle None)) by discriminate.
    match type of C with ?r = _ => assert (X : sound n (with_token s Idle None) 1 r) end.
    { clear C. destruct (in_row t); [|now apply G].
      destruct (is (right n) n); [now apply end_round_sound|].
      unfold sound, J, has, Token.sent1. simpl. split; [discriminate | lia]. }
    rewrite C in X. destruct X as [H1 H2]. split; auto.
Qed.

Theorem neamatollahi_resting_mutual_exclusion c root held g :
  reachable neamatollahi_resting c (begins (A:=neamatollahi_resting) (initial root held)) g -> mutual_exclusion g.
Proof.
  apply (single_token_from neamatollahi_resting c has carries J) with root.
  - apply neamatollahi_resting_call.
  - intros n s H E. unfold has. specialize (H E). destruct (token s); [auto | congruence].
  - intros x Nx. unfold has, initial, is. simpl. now destruct (node_eq x root).
  - unfold has, initial, is. simpl. destruct (node_eq root root); auto.
  - intros x. unfold J, initial, is, first_phase. simpl. destruct (node_eq x root); congruence.
Qed.
End NeamatollahiResting.
