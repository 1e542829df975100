(* Raymond 1989, "A tree-based algorithm for distributed mutual exclusion", sections 3.2 to 3.4, with
   the piggyback strategy (6.1) and the greedy strategy (6.2).

   This file has the handlers and what follows from one token: at most one node is inside.  Nothing
   is assumed of the graph, of queues, of ASKED or of REQUESTs, and messages may be lost.
   RaymondInvariant.v and RaymondTree.v prove what depends on the tree.  RaymondInitialize.v is
   about section 7.  Recovery (section 8) is not modelled.

   Rust: crates/algorithms/src/raymond/mod.rs.  *)
From Coq Require Import List Arith Lia Bool.
Require Import Network Token.
Import ListNotations.

(* The strategies of sections 6.2 and 6.1. *)
Class Strategies := { greedy : bool; piggyback : bool }.

Section Raymond.
Context {N : Nodes} {S : Strategies}.

Inductive message := Request | Privilege | PrivilegeRequest.
Record state := mk { holder : node; queue : list node; ph : phase; asked : bool }.

(* Section 3.2 *)
Definition assign_privilege (me : node) (s : state) : state * outbox message :=
  if node_eq (holder s) me then
    match ph s, queue s with
    | Inside, _ => (s, [])
    | _, [] => (s, [])
    | p, next :: rest =>
        if node_eq next me then (mk next rest Inside false, [])
        else if piggyback && negb (match rest with [] => true | _ => false end)
        then (mk next rest p true, [(next, PrivilegeRequest)])
        else (mk next rest p false, [(next, Privilege)])
    end
  else (s, []).

(* Section 3.3 *)
Definition make_request (me : node) (s : state) : state * outbox message :=
  if node_eq (holder s) me then (s, [])
  else match queue s with
       | [] => (s, [])
       | _ => if asked s then (s, [])
              else (mk (holder s) (queue s) (ph s) true, [(holder s, Request)])
       end.

Definition assign_and_ask (me : node) (s : state) : state * outbox message :=
  let (s1, o1) := assign_privilege me s in
  let (s2, o2) := make_request me s1 in (s2, o1 ++ o2).

Definition enqueue (x : node) (s : state) : state :=
  mk (holder s) (queue s ++ [x]) (ph s) (asked s).
Definition enqueue_self (me : node) (s : state) : state :=
  mk (holder s) (if greedy then me :: queue s else queue s ++ [me]) Waiting (asked s).
Definition take_privilege (me : node) (s : state) : state :=
  mk me (queue s) (ph s) false.
Definition leave (s : state) : state := mk (holder s) (queue s) Idle (asked s).

(* Section 3.4 *)
Definition do_request (me : node) (s : state) : option (state * outbox message) :=
  match ph s with Idle => Some (assign_and_ask me (enqueue_self me s)) | _ => None end.
Definition do_release (me : node) (s : state) : option (state * outbox message) :=
  match ph s with Inside => Some (assign_and_ask me (leave s)) | _ => None end.
Definition do_receive (me : node) (s : state) (from : node) (m : message) : state * outbox message :=
  assign_and_ask me
    match m with
    | Request => enqueue from s
    | Privilege => take_privilege me s
    | PrivilegeRequest => take_privilege me (enqueue from s)
    end.

Definition raymond : algorithm := Algorithm state message do_request do_release do_receive ph.

(* [towards x] is the neighbour of [x] on the way to [root]. *)
Definition initial (towards : node -> node) (root : node) (held : bool) (me : node) : state :=
  mk (if node_eq me root then root else towards me) [] (first_phase root held me) false.

(* What the Rust code asks of a message before it handles it ([neighbours]: of this node). *)
Definition check_request (neighbours : list node) (s : state) (from : node) : Prop :=
  ~ (holder s = from /\ asked s = false) /\ ~ In from (queue s) /\ length (queue s) <= length neighbours.
Definition check_privilege (s : state) (from : node) : Prop :=
  holder s = from /\ asked s = true.
Definition check (neighbours : list node) (s : state) (from : node) (m : message) : Prop :=
  In from neighbours /\
  match m with
  | Request => check_request neighbours s from
  | Privilege => check_privilege s from
  | PrivilegeRequest => check_privilege s from /\ check_request neighbours s from
  end.

(* The privilege: a node with HOLDER = self, or a PRIVILEGE in flight.  USING only with it. *)
Definition has (_ : unit) (n : node) (s : state) : nat := if node_eq (holder s) n then 1 else 0.
Definition carries (_ : unit) (_ _ : node) (m : message) : nat := match m with Request => 0 | _ => 1 end.
Definition J (n : node) (s : state) : Prop := ph s = Inside -> holder s = n.

Lemma assign_and_ask_token n s s' o :
  J n s -> assign_and_ask n s = (s', o) ->
  J n s' /\ has tt n s' + sent raymond unit carries tt n o <= has tt n s.
Proof.
  unfold J, has, assign_and_ask, assign_privilege, make_request. intros Hj.
  destruct (node_eq (holder s) n) as [Hh|Hh].
  - destruct (ph s) eqn:Ep; destruct (queue s) as [|next rest] eqn:Eq;
      try (destruct (node_eq (holder s) n); [|congruence]; intros [= <- <-];
           rewrite ?Ep; destruct (node_eq (holder s) n); unfold sent; simpl; split; auto; congruence).
    all: destruct (node_eq next n) as [->|Nn];
      [ simpl; destruct (node_eq n n); [|congruence]; intros [= <- <-]; simpl;
        destruct (node_eq n n); unfold sent; simpl; auto |].
    all: destruct (piggyback && _); simpl; destruct (node_eq next n); try congruence;
      destruct rest; intros [= <- <-]; simpl; destruct (node_eq next n); try congruence;
      unfold sent; simpl; split; try discriminate; auto.
  - destruct (node_eq (holder s) n); [congruence|].
    destruct (queue s); [|destruct (asked s)]; intros [= <- <-]; simpl;
      destruct (node_eq (holder s) n); try congruence; unfold sent; simpl; auto.
Qed.

Lemma raymond_call n s i s' o :
  J n s -> call raymond n s i s' o ->
  J n s' /\ has tt n s' + sent raymond unit carries tt n o
            <= has tt n s + received raymond unit carries tt n i.
Proof.
  intros Hj C.
  assert (Z : forall t, J n t -> (assign_and_ask n t = (s', o) ->
     J n s' /\ has tt n s' + sent raymond unit carries tt n o <= has tt n t))
    by (intros t Ht E; now apply assign_and_ask_token).
  destruct i as [[from m]|]; simpl in C; [|destruct C as [C|C]].
  - destruct m; (apply Z in C as [H L]; [split; auto; clear Z | intros Hi; simpl in *; auto]);
      unfold has in *; simpl in *; destruct (node_eq n n), (node_eq (holder s) n); lia || congruence.
  - unfold do_request in C. destruct (ph s) eqn:Ep; try discriminate. injection C as C.
    apply Z in C as [H L]; [|intros X; discriminate]. split; auto. unfold has in *. simpl in *. lia.
  - unfold do_release in C. destruct (ph s) eqn:Ep; try discriminate. injection C as C.
    apply Z in C as [H L]; [|intros X; discriminate]. split; auto. unfold has in *. simpl in *. lia.
Qed.

(* The privilege starts at one place: nobody else has HOLDER = self, and nobody else is inside. *)
Definition one_start (root : node) (g : global raymond) : Prop :=
  net g = [] /\ forall x, (holder (st g x) = x -> x = root) /\ (ph (st g x) = Inside -> holder (st g x) = x).

Lemma one_start_token root g : one_start root g -> token_start raymond unit has carries J g.
Proof.
  intros (En & H). apply one_at_root with (root := fun _ => root); auto.
  - intros k x Nx. unfold has. destruct (node_eq (holder (st g x)) x) as [E|]; auto.
    now apply H in E.
  - intros k. unfold has. destruct (node_eq _ _); lia.
  - intros x. destruct (H x); auto.
Qed.

Theorem raymond_mutual_exclusion c root g :
  reachable raymond c (one_start root) g -> mutual_exclusion g.
Proof.
  intros R. apply (token_mutual_exclusion raymond c unit has carries J).
  - intros n s i s' o Hj C. now apply (raymond_call n s i s' o).
  - intros [] n s i s' o Hj C. now apply (raymond_call n s i s' o).
  - intros x sx y sy _ Jx Jy Hx Hy. exists tt. unfold has. rewrite (Jx Hx), (Jy Hy).
    destruct (node_eq x x), (node_eq y y); auto; congruence.
  - now apply reachable_from with (one_start root); [apply one_start_token|].
Qed.
End Raymond.
