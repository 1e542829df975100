(* The hypotheses of RaymondTree.v can be met, and a node gets inside: two nodes, true and false.  *)
From Coq Require Import List Bool.
Require Import Network Raymond RaymondInvariant RaymondTree.
Import ListNotations.

#[local] Instance two_nodes : Nodes := {| node := bool; node_eq := bool_dec |}.
#[local] Instance plain : Strategies := {| greedy := false; piggyback := false |}.

Definition two (x : bool) : list bool := [negb x].

Lemma two_tree : tree two.
Proof.
  assert (U : forall u v l, path two u v l -> NoDup l -> l = if bool_dec u v then [u] else [u; v]).
  { intros u v l H. induction H as [u | u w v l B H IH]; intros Nd.
    - destruct (bool_dec u u); congruence.
    - inversion Nd; subst. specialize (IH H3). destruct B as [<-|[]]. subst l.
      destruct u, v; simpl in *; auto; exfalso; apply H2; simpl; auto. }
  intros u v. split.
  - destruct (bool_dec u v) as [->|N].
    + exists [v]. split; [constructor | repeat constructor; simpl; tauto].
    + exists [u; v]. split.
      * apply path_edge with v; [|constructor]. left. destruct u, v; simpl; congruence.
      * repeat constructor; simpl; intuition congruence.
  - intros l l' H1 N1 H2 N2. rewrite (U _ _ _ H1 N1), (U _ _ _ H2 N2). reflexivity.
Qed.

Definition g0 : global raymond := Global (A:=raymond) (fun _ => mk true [] Idle false) [].

Lemma g0_start : start two true g0.
Proof.
  split; [reflexivity|]. intros x. simpl. repeat split; auto.
  destruct x; [left; auto|]. right. exists [true]. repeat split; [left; reflexivity | constructor |].
  repeat constructor; simpl; intuition congruence.
Qed.

(* The other node requests, the privilege comes, it is inside. *)
Example inside_reached : exists g, reachable raymond AnyOrder (start two true) g /\ ph (st g false) = Inside.
Proof.
  eexists. split.
  - eapply reach_step; [eapply reach_step; [eapply reach_step; [apply reach_init, g0_start|]|]|].
    + eapply (@step_request two_nodes raymond _ _ false). reflexivity.
    + eapply (@step_deliver two_nodes raymond _ _ [] [] false true Request); [reflexivity | discriminate | reflexivity].
    + eapply (@step_deliver two_nodes raymond _ _ [] [] true false Privilege); [reflexivity | discriminate | reflexivity].
  - reflexivity.
Qed.
