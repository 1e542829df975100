(* Chaudhuri, Karaata 1998, "An O(n^1/3) algorithm for distributed mutual exclusion", as printed and
   as repaired.  Mutual exclusion from one token, on any shape.

   A node can be inside while no head has a green token.  What is conserved is the privilege itself:
   it is a green token, or a PERMIT in flight, or a node that is inside, or a RELEASE in flight; or a
   PERMIT between heads.  A yellow token says where the privilege was sent, and counts only at a head
   that granted itself.

   Two checks of the Rust code are modelled: a RELEASE is taken only from the node that was granted,
   and a token only by a red head.

   Rust: crates/algorithms/src/chaudhuri_karaata/.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

Section ChaudhuriKaraata.
Context {N : Nodes}.
Variable as_published : bool.
Variable sides : node -> list node.                     (* the heads beside a head *)
Variable head_towards : node -> node -> option node.    (* [None] for a node of the same plane *)
Variable towards_head : node -> option node.            (* [None] for a head *)
Variable towards_member : node -> node -> option node.  (* the next hop to a node of the plane *)

Inductive token := Red (towards : node) (asked : bool) | Green | Yellow (granted : node).
Inductive message := Request (x : node) | Permit (x : node) | Interchange (x : node) | Release (x : node).
Record head := mkh { tok : token; queue : list node }.
Record state := mk { ph : phase; hd : option head }.

(* ------------------------------------------------------------------ heads *)
Definition spread (me : node) (h : head) (origin : node) : outbox message :=
  match head_towards me origin with
  | Some came_from =>
      map (fun s => (s, Request origin)) (filter (fun s => if node_eq s came_from then false else true) (sides me))
  | None => match tok h with Red _ _ => map (fun s => (s, Request me)) (sides me) | _ => [] end
  end.
Definition ask_once (me : node) (h : head) : head * outbox message :=
  match tok h with
  | Red towards false => (mkh (Red towards true) (queue h), [(towards, Request me)])
  | _ => (h, [])
  end.
Definition grant_next (me : node) (h : head) : head * outbox message :=
  match queue h with
  | [] => (h, [])
  | next :: rest =>
      match head_towards me next with
      | None => (mkh (Yellow next) rest,
                 match towards_member me next with Some hop => [(hop, Permit next)] | None => [] end)
      | Some towards =>
          let h1 := mkh (Red towards false) rest in
          let (h2, o) := if as_published then (h1, []) else
                         match rest with [] => (h1, []) | _ => ask_once me h1 end in
          (h2, (towards, Interchange next) :: o)
      end
  end.
Definition turn_green (me : node) (h : head) : head * outbox message := grant_next me (mkh Green (queue h)).
Definition head_request (me : node) (h : head) (origin : node) : head * outbox message :=
  let h1 := mkh (tok h) (queue h ++ [origin]) in
  let (h2, o2) := if as_published then (h1, spread me h1 origin) else ask_once me h1 in
  match tok h2 with
  | Green => let (h3, o3) := grant_next me h2 in (h3, o2 ++ o3)
  | _ => (h2, o2)
  end.
Fixpoint delete (x : node) (l : list node) : list node :=
  match l with [] => [] | y :: l' => if node_eq y x then l' else y :: delete x l' end.
Definition head_interchange (me : node) (h : head) (to : node) : head * outbox message :=
  if node_eq to me then turn_green me h
  else match head_towards me to with
       | Some next => (mkh (tok h) (delete to (queue h)), [(next, Interchange to)])
       | None => (h, [])
       end.

(* ------------------------------------------------------------------ nodes *)
Definition pass_up (me : node) (m : message) : outbox message :=
  match towards_head me with Some next => [(next, m)] | None => [] end.
Definition is_granted (me : node) (h : head) : bool :=
  match tok h with Yellow x => if node_eq x me then true else false | _ => false end.
Definition enter_if_granted (me : node) (p : phase) (h : head) : state :=
  match p with
  | Waiting => if is_granted me h then mk Inside (Some h) else mk p (Some h)
  | _ => mk p (Some h)
  end.

Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Idle => match hd s with
            | Some h => let (h1, o) := head_request me h me in Some (enter_if_granted me Waiting h1, o)
            | None => Some (mk Waiting None, pass_up me (Request me))
            end
  | _ => None
  end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with
  | Inside => match hd s with
              | Some h => let (h1, o) := turn_green me h in Some (mk Idle (Some h1), o)
              | None => Some (mk Idle None, pass_up me (Release me))
              end
  | _ => None
  end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  match hd s with
  | Some h =>
      let at_head := fun r : head * outbox message => (enter_if_granted me (ph s) (fst r), snd r) in
      match m with
      | Request origin => at_head (head_request me h origin)
      | Interchange to => match tok h with Red _ _ => at_head (head_interchange me h to) | _ => (s, []) end
      | Release member =>
          match tok h with
          | Yellow x => if node_eq x member then if node_eq x me then (s, []) else at_head (turn_green me h)
                        else (s, [])
          | _ => (s, [])
          end
      | Permit _ => (s, [])
      end
  | None =>
      match m with
      | Request _ | Release _ => (s, pass_up me m)
      | Permit member =>
          if node_eq member me then (mk Inside None, [])
          else (s, match towards_member me member with Some next => [(next, m)] | None => [] end)
      | Interchange _ => (s, [])
      end
  end.

Definition chaudhuri_karaata : algorithm := Algorithm state message do_request do_release do_receive ph.

(* [towards x]: the neighbouring head towards the start of the token, [None] in its plane. *)
Definition initial (towards : node -> option node) (is_head : node -> bool) (root : node) (held : bool)
    (me : node) : state :=
  mk (first_phase root held me)
     (if is_head me
      then Some (mkh (match towards me with
                      | Some w => Red w false
                      | None => if held then Yellow root else Green
                      end) [])
      else None).

(* ------------------------------------------------------------------ the privilege *)
Definition hhas (n : node) (h : head) : nat :=
  match tok h with Green => 1 | Yellow x => if node_eq x n then 1 else 0 | Red _ _ => 0 end.
Definition has (n : node) (s : state) : nat :=
  match hd s with
  | Some h => hhas n h
  | None => match ph s with Inside => 1 | _ => 0 end
  end.
Definition carries (m : message) : nat := match m with Request _ => 0 | _ => 1 end.
Notation sent1 := (sent1 chaudhuri_karaata carries).

Definition J (n : node) (s : state) : Prop :=
  match hd s with Some h => ph s = Inside -> is_granted n h = true | None => True end.

(* A head's way to itself has no hop: its PERMIT to itself is no message. *)
Hypothesis no_hop_to_itself : forall n, towards_member n n = None.

Lemma sent_nil : sent1 [] = 0. Proof. reflexivity. Qed.
Lemma sent_app o1 o2 : sent1 (o1 ++ o2) = sent1 o1 + sent1 o2.
Proof. unfold Token.sent1. now rewrite map_app, list_sum_app. Qed.
Lemma sent_cons d m o : sent1 ((d, m) :: o) = carries m + sent1 o.
Proof. reflexivity. Qed.
Lemma sent_requests x l : sent1 (map (fun s => (s, Request x)) l) = 0.
Proof. induction l; auto. Qed.

Lemma ask_once_token me h h' o : ask_once me h = (h', o) -> hhas me h' = hhas me h /\ sent1 o = 0.
Proof.
  unfold ask_once, hhas. destruct (tok h) as [w [|]| |x] eqn:E; intros [= <- <-]; simpl; rewrite ?E; auto.
Qed.

Lemma grant_next_token me h h' o :
  tok h = Green -> grant_next me h = (h', o) -> hhas me h' + sent1 o <= 1.
Proof.
  unfold grant_next. intros Eg. destruct (queue h) as [|next rest].
  { intros [= <- <-]. unfold hhas. rewrite Eg. auto. }
  destruct (head_towards me next) as [w|].
  - assert (A : forall h2 o2, (if as_published then (mkh (Red w false) rest, []) else
        match rest with [] => (mkh (Red w false) rest, []) | _ => ask_once me (mkh (Red w false) rest) end) = (h2, o2) ->
        hhas me h2 = 0 /\ sent1 o2 = 0).
    { intros h2 o2. destruct as_published; [intros [= <- <-]; auto|]. destruct rest; [intros [= <- <-]; auto|].
      intros E. now apply ask_once_token in E. }
    destruct (if as_published then _ else _) as [h2 o2] eqn:E. destruct (A h2 o2 eq_refl) as [A1 A2].
    intros [= <- <-]. rewrite sent_cons, A1, A2. auto.
  - unfold hhas. intros [= <- <-]. simpl. destruct (node_eq next me) as [->|]; [now rewrite no_hop_to_itself|].
    destruct (towards_member me next); auto.
Qed.

Lemma turn_green_token me h h' o : turn_green me h = (h', o) -> hhas me h' + sent1 o <= 1.
Proof. unfold turn_green. now apply grant_next_token. Qed.

Lemma head_request_token me h x h' o : head_request me h x = (h', o) ->
  hhas me h' + sent1 o <= hhas me h /\ (is_granted me h = true -> is_granted me h' = true).
Proof.
  unfold head_request. set (h1 := mkh (tok h) (queue h ++ [x])).
  assert (A : forall h2 o2, (if as_published then (h1, spread me h1 x) else ask_once me h1) = (h2, o2) ->
    hhas me h2 = hhas me h /\ sent1 o2 = 0 /\ (tok h2 = Green -> hhas me h = 1) /\
    (is_granted me h = true -> is_granted me h2 = true) /\ (tok h2 = Green -> is_granted me h = false)).
  { intros h2 o2. destruct as_published.
    - intros [= <- <-]. unfold hhas, is_granted. simpl. repeat split; auto.
      + unfold spread. destruct (head_towards me x); [apply sent_requests|].
        simpl. destruct (tok h); auto using sent_requests.
      + intros ->. auto.
      + intros ->. auto.
    - intros E. pose proof (ask_once_token _ _ _ _ E) as [A1 A2]. rewrite A1. repeat split; auto;
        unfold ask_once, h1, hhas, is_granted in *; simpl in *;
        destruct (tok h) as [w [|]| |y] eqn:Et; injection E as <- <-; simpl in *; rewrite ?Et in *; auto; congruence. }
  destruct (if as_published then _ else _) as [h2 o2] eqn:E. destruct (A h2 o2 eq_refl) as (A1 & A2 & A3 & A4 & A5).
  destruct (tok h2) eqn:Et; try (intros [= <- <-]; split; auto; lia).
  destruct (grant_next me h2) as [h3 o3] eqn:Eg. intros [= <- <-].
  apply grant_next_token in Eg; auto. rewrite sent_app. split; [rewrite A3 by auto; lia|].
  rewrite A5 by auto. discriminate.
Qed.

Lemma enter_token me p h h1 o k :
  (p = Inside -> is_granted me h1 = true) -> hhas me h1 + sent1 o <= hhas me h + k ->
  J me (enter_if_granted me p h1) /\ has me (enter_if_granted me p h1) + sent1 o <= hhas me h + k.
Proof.
  intros Hp L. unfold enter_if_granted. destruct p; [|destruct (is_granted me h1) eqn:E|];
    unfold J, has; simpl; split; auto; congruence.
Qed.

Lemma chaudhuri_karaata_call n s i s' o : J n s -> call chaudhuri_karaata n s i s' o ->
  J n s' /\ has n s' + sent1 o <= has n s + received1 chaudhuri_karaata carries i.
Proof.
  destruct s as [p [h|]]; intros Hj C.
  - change (has n (mk p (Some h))) with (hhas n h). unfold J in Hj. simpl in Hj.
    destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
    + unfold do_receive in C. cbn [hd] in C. destruct m as [x|x|x|x].
      * destruct (head_request n h x) as [h1 o1] eqn:E. injection C as <- <-.
        apply head_request_token in E as [L G]. apply enter_token; auto. cbn [received1 carries]. lia.
      * injection C as <- <-. split; auto. unfold has, Token.sent1. simpl. lia.
      * destruct (tok h) eqn:Et; try (injection C as <- <-; split; [exact Hj|]; unfold has, Token.sent1; simpl; lia).
        destruct (head_interchange n h x) as [h1 o1] eqn:E. injection C as <- <-.
        apply enter_token.
        -- intros Hi. specialize (Hj Hi). unfold is_granted in Hj. rewrite Et in Hj. discriminate.
        -- unfold head_interchange in E. destruct (node_eq x n); [apply turn_green_token in E; cbn [fst snd received1 carries]; lia|].
           destruct (head_towards n x); injection E as <- <-; unfold Token.sent1, hhas; simpl; rewrite Et; lia.
      * assert (Stay : (mk p (Some h), []) = (s', o) -> J n s' /\ has n s' + sent1 o <= hhas n h + 1).
        { intros [= <- <-]. split; [exact Hj|]. unfold has, Token.sent1. simpl. lia. }
        destruct (tok h) eqn:Et; auto. destruct (node_eq granted x) as [->|]; auto.
        destruct (node_eq x n); auto. clear Stay.
        destruct (turn_green n h) as [h1 o1] eqn:E. injection C as <- <-. apply enter_token.
        -- intros Hi. specialize (Hj Hi). unfold is_granted in Hj. rewrite Et in Hj. now destruct (node_eq x n).
        -- apply turn_green_token in E. cbn [fst snd received1 carries]. lia.
    + unfold do_request in C. cbn [ph hd] in C. destruct p; try discriminate.
      destruct (head_request n h n) as [h1 o1] eqn:E. injection C as <- <-.
      apply head_request_token in E as [L G]. refine (enter_token n Waiting h h1 o1 0 _ _); [discriminate | lia].
    + unfold do_release in C. simpl in C. destruct p; try discriminate.
      destruct (turn_green n h) as [h1 o1] eqn:E. injection C as <- <-. apply turn_green_token in E.
      split; [discriminate|]. specialize (Hj eq_refl). unfold has. simpl.
      unfold is_granted in Hj. unfold hhas at 2. destruct (tok h); try discriminate.
      destruct (node_eq granted n); [lia|discriminate].
  - unfold J, has. simpl. destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
    + unfold do_receive in C. simpl in C. destruct m as [x|x|x|x];
        try (destruct (node_eq x n)); injection C as <- <-; simpl; split; auto; unfold pass_up;
        try destruct (towards_head n); try destruct (towards_member n x); unfold Token.sent1; simpl;
        destruct p; lia.
    + unfold do_request in C. simpl in C. destruct p; try discriminate. injection C as <- <-. simpl. split; auto.
      unfold pass_up. destruct (towards_head n); unfold Token.sent1; simpl; lia.
    + unfold do_release in C. simpl in C. destruct p; try discriminate. injection C as <- <-. simpl. split; auto.
      unfold pass_up. destruct (towards_head n); unfold Token.sent1; simpl; lia.
Qed.

(* One plane is nearest to the token; a node that starts inside is in it, and is granted. *)
Theorem chaudhuri_karaata_mutual_exclusion c towards is_head root held g :
  (forall x y, is_head x = true -> is_head y = true -> towards x = None -> towards y = None -> x = y) ->
  (is_head root = true -> towards root = None) ->
  reachable chaudhuri_karaata c (begins (A:=chaudhuri_karaata) (initial towards is_head root held)) g ->
  mutual_exclusion g.
Proof.
  intros One Own R. apply (single_token_mutual_exclusion chaudhuri_karaata c has carries J).
  - apply chaudhuri_karaata_call.
  - intros n [p [h|]] Hj E; unfold J, has in *; simpl in *.
    + specialize (Hj E). unfold is_granted in Hj. unfold hhas. destruct (tok h); try discriminate.
      destruct (node_eq granted n); auto. discriminate.
    + now rewrite E.
  - apply reachable_from with (begins (A:=chaudhuri_karaata) (initial towards is_head root held)); auto.
    clear g R. intros g [Es En].
    assert (Two : forall x y, x <> y -> has x (st g x) + has y (st g y) <= 1).
    { intros x y Nxy. rewrite Es. unfold has, initial, hhas, first_phase. simpl.
      specialize (One x y).
      destruct (is_head x) eqn:Hx, (is_head y) eqn:Hy; simpl.
      all: destruct held; try (destruct (towards x)); try (destruct (towards y)); simpl;
        repeat match goal with |- context [node_eq ?u ?v] => destruct (node_eq u v) end;
        try lia; exfalso; apply Nxy; auto; congruence. }
    split.
    + intros k l Nd. rewrite En. unfold flying. simpl. rewrite Nat.add_0_r.
      assert (L1 : forall x, has x (st g x) <= 1).
      { intros x. unfold has. destruct (hd (st g x)); [unfold hhas; destruct (tok h); try destruct (node_eq _ _)|
          destruct (ph (st g x))]; lia. }
      induction l as [|x l IH]; [apply Nat.le_0_l|]. rewrite held_cons. inversion Nd; subst.
      specialize (IH H2). destruct (Nat.eq_dec (has x (st g x)) 0) as [Z|Z]; [rewrite Z; auto|].
      assert (Zl : Token.held chaudhuri_karaata unit (fun _ => has) k (st g) l = 0); [|rewrite Zl; specialize (L1 x); lia].
      clear IH Nd H2. induction l as [|y l IH]; auto. rewrite held_cons, IH by (simpl in H1; tauto).
      assert (Nxy : x <> y) by (intros ->; apply H1; now left). specialize (Two x y Nxy). lia.
    + intros x. rewrite Es. unfold J, initial, first_phase, is_granted. simpl. destruct (is_head x) eqn:Hx; simpl; auto.
      destruct (node_eq x root) as [->|]; [|discriminate]. rewrite (Own Hx). destruct held; [|discriminate].
      simpl. now destruct (node_eq root root).
Qed.
End ChaudhuriKaraata.
