//! The trait that every algorithm implements, and what goes in and out of it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Channels, Info, NodeId, Outbox, RequestId, Shape, VariantSet, Violation};

/// One node's part of a mutual exclusion algorithm, for one lock: events go in, effects come out.
///
/// Rules every implementation keeps:
/// - Deterministic and pure: no clock, no I/O, no randomness. The same events give the same
///   effects. State is `Clone + Eq + Hash`, so that a checker can explore it.
/// - Any cluster size from 1 up.
/// - Impossible input is refused with a [`Violation`] and then *nothing* has changed: not the
///   state, not the outbox. Nothing that came from the network causes a panic.
/// - A node never sends to itself; what it has to tell itself it does at once.
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
pub trait Algorithm: Clone + Eq + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// What nodes say to each other.
    type Message: Message;
    /// How the nodes are arranged.
    type Shape: Shape;

    /// Name, paper, assumptions and variants.
    const INFO: Info;

    /// The largest cluster whose nodes all fit one machine's memory, for simulations.
    const NODES_MAX: usize = crate::shape::NODES_MAX;

    /// The node's state before anything happened.
    fn new(config: &Config<Self::Shape>) -> Self;

    /// Called once on every node, before any other event: a token that never rests sets out,
    /// an announcement is made. Most algorithms do nothing.
    fn start(&mut self, _out: &mut Outbox<Self::Message>) {}

    /// This node wants the critical section. Refused while it waits or is inside.
    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation>;

    /// A peer's message arrived.
    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation>;

    /// This node left its critical section. Refused unless it is inside.
    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation>;

    /// Whether this node is idle, waits or is inside.
    fn phase(&self) -> Phase;

    /// Whether the one token of a token algorithm is here (not under way).
    fn has_token(&self) -> bool {
        false
    }

    /// The state of a node that crashed, lost everything and comes back; `None` if the algorithm
    /// knows no recovery. Its [`start`](Algorithm::start) is called when every message that it sent
    /// before the crash has arrived. `incarnation` differs each time this node comes back.
    fn recovering(_config: &Config<Self::Shape>, _incarnation: u64) -> Option<Self> {
        None
    }

    /// Whatever was sent to this recovering node before its peers answered has arrived. Only for
    /// recovery over channels that do not keep order.
    fn settled(&mut self, _out: &mut Outbox<Self::Message>) {}

    /// Whether this node crashed and has not rebuilt its state yet.
    fn is_recovering(&self) -> bool {
        false
    }

    /// The identity of this node's latest request, if all entries follow the order of identities.
    fn request_id(&self) -> Option<RequestId> {
        None
    }

    /// The nodes that this one may send to or hear from, wherever a lock's home is; in order. By default
    /// all others.
    fn peers(place: &Place<Self::Shape>) -> Vec<NodeId> {
        place.peers().collect()
    }

    /// The highest number that this node knows any request to have, where requests have numbers.
    fn clock(&self) -> u64 {
        0
    }

    /// Advances the clock to this number at least, never back. Only for a node that is new: it may
    /// be one that was forgotten, and all that it must know of its former life is its clock.
    fn set_clock(&mut self, _clock: u64) {}

    /// Whether this node's part may be forgotten: dropped, and made [anew](Config::anew) with this
    /// clock or a later one when the lock is used again. No peer can be misled by that.
    ///
    /// By default so if there is no difference: the state is that of a new node with this clock of a lock in which
    /// nobody is inside, and to [`start`](Algorithm::start) such a node sends nothing. Where requests have
    /// numbers an algorithm says more, and why it is sound.
    fn is_at_rest(&self, config: &Config<Self::Shape>) -> bool {
        if self.phase() != Phase::Idle {
            return false;
        }
        let mut out = Outbox::new();
        let mut anew = Self::new(&config.idle());
        anew.set_clock(self.clock());
        anew.start(&mut out);
        out.is_empty() && anew == *self
    }

    /// Whether all parts are [at rest](Algorithm::is_at_rest) once nothing is under way and nobody waits or is
    /// inside, so that each node can forget its part by itself. Otherwise, and by default, the parts that have to do
    /// with each other are forgotten together.
    fn rests_alone(_variants: VariantSet, _start: Start) -> bool {
        false
    }

    /// Whether a cluster with these variants, over such channels, is promised to get over crashes.
    fn recovers(_variants: VariantSet, _channels: Channels) -> bool {
        false
    }

    /// Whether that promise also holds if these two nodes are down at the same time.
    fn may_be_down_together(_shape: &Self::Shape, _one: NodeId, _other: NodeId) -> bool {
        false
    }

    /// The paper's local invariants, for checks: says what is broken.
    fn invariant(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// The paper's invariants of the whole cluster, for checks: says what is broken.
    fn cluster_invariant(_cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        Ok(())
    }
}

/// [`Algorithm::NODES_MAX`] where every node keeps something of every other, and asks them all: N²
/// of it, and as many messages under way.
pub(crate) const NODES_MAX_OF_BROADCAST: usize = 1 << 13;

/// What nodes say to each other. The `Display` form is for transcripts: the kind in upper case,
/// then what the message carries.
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
    /// The paper's names of the messages, in upper case.
    const KINDS: &'static [&'static str];

    /// Which of [`KINDS`](Message::KINDS) this is.
    fn kind(&self) -> usize;

    /// The paper's name of this message.
    fn name(&self) -> &'static str {
        Self::KINDS[self.kind()]
    }

    /// Whether the token of a token algorithm travels in this message.
    fn is_token(&self) -> bool {
        false
    }

    /// Whether this is a move of a restless token that no request calls for. If it is also sent
    /// while nobody waits or is inside, it is counted as idle, not as a cost of an entry.
    fn is_roaming(&self) -> bool {
        false
    }

    /// Whether this tells a restarted node what it lost: see [`Algorithm::recovering`].
    fn is_advice(&self) -> bool {
        false
    }

    /// At least one message of every kind, in the order of kinds: the golden bytes pin their encoding.
    fn examples() -> Vec<Self>;
}

/// A whole cluster at one moment, as only a checker sees it.
pub trait Snapshot<A: Algorithm> {
    /// How many nodes there are.
    fn len(&self) -> usize;

    /// Whether there are no nodes; there always are.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One node's state.
    fn node(&self, node: NodeId) -> &A;

    /// Calls `visit` with sender, receiver and content of each message under way.
    fn for_each_envelope(&self, visit: &mut dyn FnMut(NodeId, NodeId, &A::Message));
}

/// Where a node is in its cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Phase {
    /// Neither waits nor is inside.
    #[default]
    Idle,
    /// Has asked and is not yet inside.
    Waiting,
    /// In the critical section.
    Inside,
}

impl Phase {
    /// Refuses a request unless idle (a node has at most one outstanding request).
    pub fn may_request(self) -> Result<(), Violation> {
        match self {
            Phase::Idle => Ok(()),
            Phase::Waiting | Phase::Inside => Err(Violation::NotIdle(self)),
        }
    }

    /// Whether a node in this phase goes before another node's request: inside always, waiting if
    /// its own request is the earlier one.
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
        f.write_str(match self {
            Phase::Idle => "idle",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        })
    }
}

/// How a cluster begins. All nodes of a cluster are built from the same start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Start {
    /// Where the token (the arbiter, the coordinator) of a fresh lock is.
    pub home: NodeId,
    /// The node that is inside from the start, if any. A token starts there instead of at home.
    pub inside: Option<NodeId>,
}

impl Start {
    /// Nobody inside, the token at `home`.
    pub const fn idle(home: NodeId) -> Self {
        Start { home, inside: None }
    }

    /// `node` is inside from the start, and at home.
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

/// Who a node is, in which cluster.
///
/// Compares and hashes by the node alone: all nodes of one cluster share one shape, and a
/// checker must not walk through it for each state.
pub struct Place<S> {
    /// This node.
    pub me: NodeId,
    /// The shape of the cluster, shared by all its nodes.
    pub shape: Arc<S>,
}

impl<S: Shape> Place<S> {
    /// How many nodes the cluster has.
    pub fn nodes(&self) -> usize {
        self.shape.nodes()
    }

    /// All other nodes, in order.
    pub fn peers(&self) -> impl Iterator<Item = NodeId> + use<S> {
        let me = self.me;
        NodeId::all(self.nodes()).filter(move |&node| node != me)
    }

    /// Refuses a node number that this cluster does not have, or this node itself as a peer.
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

/// What a node is built from.
#[derive(Debug)]
pub struct Config<S> {
    /// Who it is, in which cluster.
    pub place: Place<S>,
    /// How the cluster begins.
    pub start: Start,
    /// The algorithm's variants in use; all nodes must agree on them.
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
    /// Node 0 of a cluster of the default shape, with the token there and no variant.
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

    /// The same node of a lock with the same home in which nobody is inside at first.
    pub fn idle(&self) -> Self {
        Config {
            start: Start::idle(self.start.home),
            ..self.clone()
        }
    }

    /// What takes the place of a node that was [at rest](Algorithm::is_at_rest) and was forgotten.
    pub fn anew<A: Algorithm<Shape = S>>(&self, clock: u64) -> A {
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
