//! The trait that every algorithm implements, and its inputs and outputs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fields::{Fields, PHASE};
use crate::{Channels, Info, NodeId, Outbox, RequestId, Shape, VariantSet, Violation};

/// One node's state machine of a mutual exclusion algorithm, for one lock: events go in, effects
/// come out.
///
/// Every implementation follows these rules:
/// - Deterministic and pure: no clock, no I/O, no randomness. The same events give the same
///   effects. State is `Clone + Eq + Hash`, so that a checker can explore it.
/// - Any cluster size from 1 up.
/// - Impossible input is refused with a [`Violation`], and then *nothing* has changed: neither the
///   state nor the outbox. Input from the network never causes a panic.
/// - A node never sends to itself. It handles a message to itself immediately.
/// - No allocation per event in the steady state: buffers are kept and reused.
///
/// ```
/// use soloist_algorithms::ricart_agrawala::RicartAgrawala;
/// use soloist_algorithms::{Algorithm, Config, Outbox, Phase};
///
/// let mut node = RicartAgrawala::new(&Config::first(2));
/// let mut out = Outbox::new();
/// node.request(&mut out).unwrap();
/// assert_eq!(node.phase(), Phase::Waiting);
/// assert_eq!(out.sends().count(), 1); // one REQUEST to the only peer
/// ```
pub trait Algorithm: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// Messages between nodes.
    type Message: Message;
    /// The topology of the cluster.
    type Shape: Shape;

    /// Name, paper, assumptions and variants.
    const INFO: Info;

    /// The largest cluster whose nodes all fit in one machine's memory, for simulations.
    const NODES_MAX: usize = crate::shape::NODES_MAX;

    /// Whether nodes count requests without bound, for example as timestamps. Such an algorithm has
    /// infinitely many states if nodes never stop requesting.
    const COUNTS_REQUESTS: bool = false;

    /// The node's state before any event.
    fn new(config: &Config<Self::Shape>) -> Self;

    /// Called once on every node, before any other event. A token that circulates even when idle
    /// sets out here, and initial announcements are sent. Most algorithms do nothing.
    fn start(&mut self, _out: &mut Outbox<Self::Message>) {}

    /// Requests the critical section. Refused while the node waits or is inside.
    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation>;

    /// Handles a message from a peer.
    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation>;

    /// Leaves the critical section. Refused unless the node is inside.
    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation>;

    /// Tells a node before it leaves whether it will request again, for rules that depend on it.
    /// The caller must make such a node request again eventually.
    fn expect_request(&mut self, _again: bool) {}

    /// Whether other nodes wait for this idle node's next request.
    fn owes_request(&self) -> bool {
        false
    }

    /// Whether this node is idle, waiting or inside.
    fn phase(&self) -> Phase;

    /// Names each value of this node's state, as the paper does. Every state has the same fields in
    /// the same order; one that it does not have now is [`Value::Absent`](crate::Value::Absent).
    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase().into());
    }

    /// Whether this node has the token of a token algorithm. False while the token is in flight.
    fn has_token(&self) -> bool {
        false
    }

    /// The state of a node that restarts after a crash in which it lost its state, or `None` if the
    /// algorithm has no recovery. [`start`](Algorithm::start) is called when every message that the
    /// node sent before the crash has arrived. `incarnation` is different for each restart of the
    /// node.
    fn recovering(_config: &Config<Self::Shape>, _incarnation: u64) -> Option<Self> {
        None
    }

    /// Called when every message that was sent to this recovering node before its peers answered
    /// has arrived. Only needed for recovery over channels that do not preserve order.
    fn settled(&mut self, _out: &mut Outbox<Self::Message>) {}

    /// Whether this node crashed and has not yet rebuilt its state.
    fn is_recovering(&self) -> bool {
        false
    }

    /// The identity of this node's latest request, or `None` if entries do not follow the order of
    /// identities.
    fn request_id(&self) -> Option<RequestId> {
        None
    }

    /// The nodes that this node may send to or receive from, wherever the lock's home is, in order.
    /// By default all other nodes.
    fn peers(place: &Place<Self::Shape>) -> Vec<NodeId> {
        place.peers().collect()
    }

    /// The highest request number that this node knows of, or 0 if requests have no numbers.
    fn clock(&self) -> u64 {
        0
    }

    /// Advances the clock to at least this value, never back. Only called on a new node: it may
    /// replace one that was forgotten, and the clock is the only state that must survive.
    fn set_clock(&mut self, _clock: u64) {}

    /// Whether this node is quiescent. Its state may then be forgotten: dropped, and
    /// [recreated](Config::recreate) with this clock or a later one when the lock is used again,
    /// without misleading any peer.
    ///
    /// The default returns true if the recreated node would be identical: this state equals that of
    /// a new node with the same clock, for a lock in which no node is inside, and
    /// [`start`](Algorithm::start) sends nothing. Some algorithms whose requests have numbers
    /// return true in more states, and explain why that is sound.
    fn is_at_rest(&self, config: &Config<Self::Shape>) -> bool {
        if self.phase() != Phase::Idle {
            return false;
        }
        let mut out = Outbox::new();
        let mut fresh = Self::new(&config.idle());
        fresh.set_clock(self.clock());
        fresh.start(&mut out);
        out.is_empty() && fresh == *self
    }

    /// Whether every node is [quiescent](Algorithm::is_at_rest) once no message is in flight and no
    /// node waits or is inside. If so, each node may forget its state on its own. Otherwise, and by
    /// default, states that depend on each other are forgotten together.
    fn rests_alone(_variants: VariantSet, _start: Start) -> bool {
        false
    }

    /// How many tokens this node has received from `peer`, if it counts them. The count may only be
    /// compared with other nodes' counts for the same peer, so a search replaces such counts by
    /// their differences.
    fn counter(&self, _peer: NodeId) -> Option<u64> {
        None
    }

    /// Replaces the [counter](Algorithm::counter) for `peer`, if there is one. Only a search calls
    /// it.
    fn set_counter(&mut self, _peer: NodeId, _count: u64) {}

    /// Whether a cluster with these variants, over these channels, is guaranteed to recover from
    /// crashes.
    fn recovers(_variants: VariantSet, _channels: Channels) -> bool {
        false
    }

    /// Whether that guarantee also holds if these two nodes are down at the same time.
    fn may_be_down_together(_shape: &Self::Shape, _one: NodeId, _other: NodeId) -> bool {
        false
    }

    /// Checks the paper's local invariants. The error names the one that is broken.
    fn invariant(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Checks the paper's invariants of the whole cluster. The error names the one that is broken.
    fn cluster_invariant(_cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        Ok(())
    }
}

/// [`Algorithm::NODES_MAX`] of algorithms in which every node keeps state about every other and
/// sends requests to all of them: N² of state, and as many messages in flight.
pub(crate) const NODES_MAX_OF_BROADCAST: usize = 1 << 13;

/// A message between nodes. The `Display` form is for transcripts: the kind in upper case, followed
/// by the content.
pub trait Message:
    Clone
    + Eq
    + Ord
    + Hash
    + fmt::Debug
    + fmt::Display
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The paper's names for the kinds of messages, in upper case.
    const KINDS: &'static [&'static str];

    /// Index of this message's kind in [`KINDS`](Message::KINDS).
    fn kind(&self) -> usize;

    /// The paper's name for this message.
    fn name(&self) -> &'static str {
        Self::KINDS[self.kind()]
    }

    /// This message as text, with these names of nodes. Its `Display` form has their numbers.
    fn named(&self, _name: &dyn Fn(NodeId) -> String) -> String {
        self.to_string()
    }

    /// Whether this message carries the token of a token algorithm.
    fn is_token(&self) -> bool {
        false
    }

    /// Whether this moves a circulating token without a request for it. If it is also sent while no
    /// node waits or is inside, it counts as idle traffic, not as the cost of an entry.
    fn is_roaming(&self) -> bool {
        false
    }

    /// Whether this gives a restarted node the state it lost: see [`Algorithm::recovering`].
    fn is_advice(&self) -> bool {
        false
    }

    /// At least one message of every kind, in the order of kinds. The golden tests pin their
    /// encoding.
    fn examples() -> Vec<Self>;
}

/// The whole cluster at one moment, as only a checker sees it.
pub trait Snapshot<A: Algorithm> {
    /// Number of nodes.
    fn len(&self) -> usize;

    /// Whether there are no nodes. Never true.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state of one node.
    fn node(&self, node: NodeId) -> &A;

    /// Calls `visit` with the sender, receiver and content of each message in flight.
    fn for_each_envelope(&self, visit: &mut dyn FnMut(NodeId, NodeId, &A::Message));
}

/// Where a node is in its cycle of request and release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Phase {
    /// Neither waiting nor inside.
    #[default]
    Idle,
    /// Has requested the critical section and is not yet inside.
    Waiting,
    /// In the critical section.
    Inside,
}

impl Phase {
    /// The phase as a word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        }
    }

    /// Refuses a request unless idle (a node has at most one outstanding request).
    pub fn may_request(self) -> Result<(), Violation> {
        match self {
            Phase::Idle => Ok(()),
            Phase::Waiting | Phase::Inside => Err(Violation::NotIdle(self)),
        }
    }

    /// Whether a node in this phase takes precedence over another node's request. Inside: always.
    /// Waiting: if its own request is earlier.
    pub fn goes_before(self, ours: RequestId, theirs: RequestId) -> bool {
        match self {
            Phase::Inside => true,
            Phase::Waiting => ours < theirs,
            Phase::Idle => false,
        }
    }

    /// Refuses a release unless inside.
    pub fn may_release(self) -> Result<(), Violation> {
        match self {
            Phase::Inside => Ok(()),
            Phase::Idle | Phase::Waiting => Err(Violation::NotInside(self)),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The initial state of a cluster. All nodes of a cluster are built from the same start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Start {
    /// Where the token (or the arbiter, or the coordinator) of a new lock is.
    pub home: NodeId,
    /// The node that is inside from the start, or `None`. A token starts there instead of at home.
    pub inside: Option<NodeId>,
}

impl Start {
    /// No node inside, the token at `home`.
    pub const fn idle(home: NodeId) -> Self {
        Start { home, inside: None }
    }

    /// `node` is inside from the start, and is the home.
    pub const fn inside(node: NodeId) -> Self {
        Start {
            home: node,
            inside: Some(node),
        }
    }

    /// Where a token starts.
    pub fn token(self) -> NodeId {
        self.inside.unwrap_or(self.home)
    }

    /// The phase in which `me` starts.
    pub fn phase(self, me: NodeId) -> Phase {
        if self.inside == Some(me) {
            Phase::Inside
        } else {
            Phase::Idle
        }
    }
}

/// A node's identity and its cluster.
///
/// Compares and hashes by the node alone. All nodes of a cluster share one shape, and a checker
/// must not traverse it for each state.
pub struct Place<S> {
    /// This node.
    pub me: NodeId,
    /// The cluster's shape, shared by all its nodes.
    pub shape: Arc<S>,
}

impl<S: Shape> Place<S> {
    /// Number of nodes in the cluster.
    pub fn nodes(&self) -> usize {
        self.shape.nodes()
    }

    /// All other nodes, in order.
    pub fn peers(&self) -> impl Iterator<Item = NodeId> + use<S> {
        let me = self.me;
        NodeId::all(self.nodes()).filter(move |&node| node != me)
    }

    /// Refuses a node number that is not in this cluster, and this node itself.
    pub fn is_peer(&self, node: NodeId) -> Result<(), Violation> {
        if node.index() >= self.nodes() {
            let nodes = self.nodes();
            return Err(Violation::NoSuchNode { node, nodes });
        }
        if node == self.me {
            return Err(Violation::FromSelf(node));
        }
        Ok(())
    }
}

impl<S> Clone for Place<S> {
    fn clone(&self) -> Self {
        Place {
            me: self.me,
            shape: Arc::clone(&self.shape),
        }
    }
}

impl<S> PartialEq for Place<S> {
    fn eq(&self, other: &Self) -> bool {
        self.me == other.me
    }
}

impl<S> Eq for Place<S> {}

impl<S> Hash for Place<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.me.hash(state);
    }
}

impl<S> fmt::Debug for Place<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.me.fmt(f)
    }
}

/// The parameters from which a node is built.
#[derive(Debug)]
pub struct Config<S> {
    /// The node's identity and its cluster.
    pub place: Place<S>,
    /// The initial state of the cluster.
    pub start: Start,
    /// The variants in use. All nodes must agree on them.
    pub variants: VariantSet,
}

impl<S> Clone for Config<S> {
    fn clone(&self) -> Self {
        Config {
            place: self.place.clone(),
            ..*self
        }
    }
}

impl<S: Shape> Config<S> {
    /// Node 0 of a cluster with the default shape, the token at node 0 and no variants.
    pub fn first(nodes: usize) -> Self {
        let shape = S::default_for(nodes);
        Config {
            place: Place {
                me: NodeId::new(0),
                shape: Arc::new(shape),
            },
            start: Start::idle(NodeId::new(0)),
            variants: VariantSet::default(),
        }
    }

    /// The same node, for a lock with the same home in which no node starts inside.
    pub fn idle(&self) -> Self {
        Config {
            start: Start::idle(self.start.home),
            ..self.clone()
        }
    }

    /// Recreates a node whose state was [quiescent](Algorithm::is_at_rest) and was forgotten.
    pub fn recreate<A: Algorithm<Shape = S>>(&self, clock: u64) -> A {
        let mut node = A::new(&self.idle());
        node.set_clock(clock);
        node
    }

    /// The same cluster, seen from node `me`.
    pub fn at(&self, me: NodeId) -> Self {
        Config {
            place: Place {
                me,
                shape: Arc::clone(&self.place.shape),
            },
            ..*self
        }
    }
}
