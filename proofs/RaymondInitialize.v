(* Raymond 1989, section 7: nodes learn from INITIALIZE messages where the privilege is.  Mutual
   exclusion on any graph, from a start at which only one node knows its HOLDER.

   A node that does not know its HOLDER yet queues requests, its own included.  One check of the Rust
   code is modelled: a node that knows its HOLDER, or that seems to send to itself, is not initialized.

   Rust: crates/algorithms/src/raymond/mod.rs, variant `initialize`.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token Raymond.
Import ListNotations.

Section RaymondInitialize.
Context {N : Nodes} {S : Strategies}.
Variable neighbours : node -> list node.

Inductive imessage := Initialize | Plain (m : message).
(* [core] is the state of Raymond.v; its HOLDER means nothing while [known] is false. *)
Record istate := mki { known : bool; core : state }.

Definition plain (o : outbox message) : outbox imessage := map (fun p => (fst p, Plain (snd p))) o.
Definition proceed (me : node) (s : istate) : istate * outbox imessage :=
  if known s then let (c, o) := assign_and_ask me (core s) in (mki true c, plain o) else (s, []).
Definition tell (me : node) (except : option node) : outbox imessage :=
  map (fun x => (x, Initialize))
    (filter (fun x => match except with Some y => if node_eq x y then false else true | None => true end)
       (neighbours me)).

Definition ido_request (me : node) (s : istate) : option (istate * outbox imessage) :=
  match ph (core s) with
  | Idle => Some (proceed me (mki (known s) (enqueue_self me (core s))))
  | _ => None
  end.
Definition ido_release (me : node) (s : istate) : option (istate * outbox imessage) :=
  match ph (core s) with
  | Inside => Some (proceed me (mki (known s) (leave (core s))))
  | _ => None
  end.
Definition ido_receive (me : node) (s : istate) (from : node) (m : imessage) : istate * outbox imessage :=
  match m with
  | Initialize =>
      if known s then (s, [])
      else if node_eq from me then (s, [])
      else
        let c := core s in
        let (s1, o) := proceed me (mki true (mk from (queue c) (ph c) (asked c))) in
        (s1, tell me (Some from) ++ o)
  | Plain Request => proceed me (mki (known s) (enqueue from (core s)))
  | Plain Privilege => proceed me (mki true (take_privilege me (core s)))
  | Plain PrivilegeRequest => proceed me (mki true (take_privilege me (enqueue from (core s))))
  end.

Definition raymond_initialize : algorithm :=
  Algorithm istate imessage ido_request ido_release ido_receive (fun s => ph (core s)).

Definition initial (root : node) (held : bool) (me : node) : istate :=
  mki (if node_eq me root then true else false) (mk root [] (first_phase root held me) false).
Definition first (root : node) : outbox imessage := tell root None.

Definition ihas (n : node) (s : istate) : nat := if known s then has tt n (core s) else 0.
Definition icarries (m : imessage) : nat := match m with Initialize | Plain Request => 0 | _ => 1 end.
Definition IJ (n : node) (s : istate) : Prop := ph (core s) = Inside -> known s = true /\ holder (core s) = n.
Notation isent := (sent1 raymond_initialize icarries).

Lemma isent_plain n o : isent (plain o) = sent raymond unit carries tt n o.
Proof.
  unfold sent1, sent, plain. rewrite map_map. apply f_equal, map_ext. intros [x m]. destruct m; reflexivity.
Qed.
Lemma isent_tell n e : isent (tell n e) = 0.
Proof. unfold sent1, tell. rewrite map_map. induction (filter _ _); auto. Qed.

Lemma proceed_sound n s s' o : IJ n s -> proceed n s = (s', o) -> IJ n s' /\ ihas n s' + isent o <= ihas n s.
Proof.
  unfold proceed. intros Hj. destruct (known s) eqn:Ek; [|intros [= <- <-]; unfold sent1; simpl; split; auto; lia].
  destruct (assign_and_ask n (core s)) as [c o'] eqn:E. intros [= <- <-].
  apply assign_and_ask_token in E as [H1 H2]; [|intros Hi; now apply Hj].
  split; [intros Hi; simpl in *; auto|]. unfold ihas. rewrite Ek. simpl known. cbn iota. simpl core.
  rewrite (isent_plain n). exact H2.
Qed.

Lemma initialize_call n s i s' o : IJ n s -> call raymond_initialize n s i s' o ->
  IJ n s' /\ ihas n s' + isent o <= ihas n s + received1 raymond_initialize icarries i.
Proof.
  intros Hj C. destruct i as [[from m]|]; cbn [call] in C; [|destruct C as [C|C]].
  - change (ido_receive n s from m = (s', o)) in C. unfold ido_receive in C.
    destruct m as [|m].
    + destruct (known s) eqn:Ek; [injection C as <- <-; unfold sent1; simpl; split; auto; lia|].
      destruct (node_eq from n) as [|Nf]; [injection C as <- <-; unfold sent1; simpl; split; auto; lia|].
      destruct (proceed n _) as [s1 o1] eqn:E. injection C as <- <-.
      apply proceed_sound in E as [H1 H2].
      * split; auto. assert (X : isent (tell n (Some from) ++ o1) = isent (tell n (Some from)) + isent o1)
          by (unfold sent1; now rewrite map_app, list_sum_app).
        rewrite X, isent_tell. unfold ihas in H2 at 2. simpl in H2. unfold has in H2 at 1. simpl in H2.
        destruct (node_eq from n); [congruence|]. cbn [received1]. lia.
      * intros Hi. simpl in Hi. destruct (Hj Hi). congruence.
    + assert (D : forall s1 k, IJ n s1 -> ihas n s1 <= ihas n s + k -> proceed n s1 = (s', o) ->
        IJ n s' /\ ihas n s' + isent o <= ihas n s + k).
      { intros s1 k J1 L E. apply proceed_sound in E as [H1 H2]; auto. split; auto. lia. }
      destruct m; eapply D in C; eauto; try (intros Hi; simpl; auto; fail);
        unfold ihas, has; simpl; destruct (known s), (node_eq n n), (node_eq (holder (core s)) n); simpl; lia.
  - change (ido_request n s = Some (s', o)) in C. unfold ido_request in C.
    destruct (ph (core s)); try discriminate. injection C as C. apply proceed_sound in C as [H1 H2]; [|discriminate].
    split; auto. unfold ihas, has in *. simpl in *. lia.
  - change (ido_release n s = Some (s', o)) in C. unfold ido_release in C.
    destruct (ph (core s)); try discriminate. injection C as C. apply proceed_sound in C as [H1 H2]; [|discriminate].
    split; auto. unfold ihas, has in *. simpl in *. lia.
Qed.

Theorem raymond_initialize_mutual_exclusion c root held g :
  reachable raymond_initialize c
    (begins_sending (A:=raymond_initialize) (initial root held) root (first root)) g ->
  mutual_exclusion g.
Proof.
  apply (single_token_sending raymond_initialize c ihas icarries IJ).
  - apply initialize_call.
  - intros n s H E. destruct (H E) as [H1 H2]. unfold ihas, has. rewrite H1, H2. destruct (node_eq n n); congruence || auto.
  - intros x Nx. unfold ihas, initial. simpl. now destruct (node_eq x root).
  - unfold first. rewrite isent_tell. unfold ihas, has, initial. simpl. destruct (node_eq root root); simpl; lia.
  - intros x. unfold IJ, initial, first_phase. simpl. destruct (node_eq x root); [auto | discriminate].
Qed.
End RaymondInitialize.
