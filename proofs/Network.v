(* The model that all proofs share: nodes, handlers, messages in flight, and the steps of a cluster.

   An algorithm is what crates/algorithms calls one: a pure state machine for each node, with a
   handler for each event.  A handler is a function, and everything that may happen in a cluster is
   a sequence of handler calls.  The number of nodes is arbitrary; it may even be infinite.

   A handler that receives a message is total: it has none of the checks by which the Rust code
   refuses a message that no correct peer sends, unless the file of the algorithm says so.  What is
   proved without a check is true with it.  *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.

Class Nodes := { node : Type; node_eq : forall a b : node, {a = b} + {a <> b} }.

Inductive phase := Idle | Waiting | Inside.

(* What a channel between two nodes may do.  Messages are never duplicated. *)
Inductive channels :=
| Fifo          (* delivers everything, in the order in which it was sent *)
| AnyOrder      (* delivers everything, in any order *)
| Lossy.        (* delivers in any order, and may lose messages *)

Section Network.
Context {N : Nodes}.

Definition outbox (msg : Type) := list (node * msg).      (* receiver, content *)

(* The handlers of one node.  [request] and [release] return [None] where the Rust code refuses. *)
Record algorithm := Algorithm {
  local : Type;
  msg : Type;
  request : node -> local -> option (local * outbox msg);
  release : node -> local -> option (local * outbox msg);
  receive : node -> local -> node -> msg -> local * outbox msg;
  phase_of : local -> phase }.

Definition set {X} (f : node -> X) (n : node) (v : X) : node -> X :=
  fun x => if node_eq x n then v else f x.

Lemma set_same {X} (f : node -> X) n v : set f n v n = v.
Proof. unfold set. destruct (node_eq n n); congruence. Qed.
Lemma set_other {X} (f : node -> X) n v x : x <> n -> set f n v x = f x.
Proof. unfold set. destruct (node_eq x n); congruence. Qed.

Variable A : algorithm.
Variable c : channels.

Definition packet := (node * node * msg A)%type.          (* from, to, content *)
Definition sender (p : packet) : node := fst (fst p).
Definition receiver (p : packet) : node := snd (fst p).

(* The newest packet is the first of [net]. *)
Record global := Global { st : node -> local A; net : list packet }.

Definition post (n : node) (o : outbox (msg A)) : list packet :=
  map (fun p => (n, fst p, snd p)) o.

(* Whether a packet may be delivered before those that were sent earlier. *)
Definition may_overtake (from to : node) (older : list packet) : Prop :=
  c = Fifo -> forall m, ~ In (from, to, m) older.

Inductive step : global -> global -> Prop :=
| step_request g n s o :
    request A n (st g n) = Some (s, o) ->
    step g (Global (set (st g) n s) (post n o ++ net g))
| step_release g n s o :
    release A n (st g n) = Some (s, o) ->
    step g (Global (set (st g) n s) (post n o ++ net g))
| step_deliver g l1 l2 from n m s o :
    net g = l1 ++ (from, n, m) :: l2 ->
    may_overtake from n l2 ->
    receive A n (st g n) from m = (s, o) ->
    step g (Global (set (st g) n s) (post n o ++ l1 ++ l2))
| step_lose g l1 l2 p :
    c = Lossy ->
    net g = l1 ++ p :: l2 ->
    step g (Global (st g) (l1 ++ l2)).

Inductive reachable (init : global -> Prop) : global -> Prop :=
| reach_init g : init g -> reachable init g
| reach_step g g' : reachable init g -> step g g' -> reachable init g'.

(* The start of a cluster: the states of all nodes, and nothing in flight. *)
Definition begins (f : node -> local A) (g : global) : Prop := st g = f /\ net g = [].
(* The same, when [root] has sent something at once. *)
Definition begins_sending (f : node -> local A) (root : node) (o : outbox (msg A)) (g : global) : Prop :=
  st g = f /\ net g = post root o.

(* The property that everything is about. *)
Definition mutual_exclusion (g : global) : Prop :=
  forall x y, phase_of A (st g x) = Inside -> phase_of A (st g y) = Inside -> x = y.

(* An invariant: true at the start, and kept by each step. *)
Lemma invariant_holds (init I : global -> Prop) :
  (forall g, init g -> I g) ->
  (forall g g', I g -> step g g' -> I g') ->
  forall g, reachable init g -> I g.
Proof. intros Hi Hs g H. induction H; eauto. Qed.

Lemma reachable_from (init init' : global -> Prop) g :
  (forall g, init g -> init' g) -> reachable init g -> reachable init' g.
Proof. intros H R. induction R; [apply reach_init; auto | eapply reach_step; eauto]. Qed.

Lemma in_net_without {X} l1 (p q : X) l2 : In q (l1 ++ l2) -> In q (l1 ++ p :: l2).
Proof. intros H. apply in_app_or in H as [H|H]; apply in_or_app; simpl; auto. Qed.
Lemma in_net_with {X} l1 (p q : X) l2 : In q (l1 ++ p :: l2) -> q = p \/ In q (l1 ++ l2).
Proof. rewrite !in_app_iff. simpl. intuition. Qed.
Lemma in_post n o (p : packet) : In p (post n o) -> sender p = n /\ In (receiver p, snd p) o.
Proof.
  unfold post. intros H. apply in_map_iff in H as ([w m] & <- & H). split; auto.
Qed.
End Network.

(* The phase in which a node starts: [held] says whether [root] is inside from the start. *)
Definition first_phase {N : Nodes} (root : node) (held : bool) (me : node) : phase :=
  if node_eq me root then if held then Inside else Idle else Idle.

Arguments Global {N A}.
Arguments st {N A}.
Arguments net {N A}.
Arguments post {N A}.
Arguments sender {N A}.
Arguments receiver {N A}.
Arguments mutual_exclusion {N A}.
Arguments begins {N A}.
Arguments begins_sending {N A}.
