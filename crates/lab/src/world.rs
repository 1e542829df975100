//! The nodes of a cluster, as stepped by the simulator, the checker and the scenarios.

use std::fmt;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Config, NodeId, Outbox, Phase, Place, RequestId, Shape, Start, VariantSet, Violation,
};

/// All nodes of a cluster, and how many of them are inside the critical section. The caller keeps
/// the messages in flight: the simulator orders them by time, the checker keeps a set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World<A> {
    nodes: Vec<A>,
    inside: u32,
}

/// An event at one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<M> {
    /// The node requests the critical section.
    Request(NodeId),
    /// A message arrives.
    Deliver {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The content.
        message: M,
    },
    /// The node leaves its critical section.
    Release(NodeId),
}

impl<M> Event<M> {
    /// The node at which the event happens.
    pub fn node(&self) -> NodeId {
        match self {
            Event::Request(node) | Event::Release(node) | Event::Deliver { to: node, .. } => *node,
        }
    }
}

/// Applies an event to its node.
pub fn step<A: Algorithm>(
    node: &mut A,
    event: Event<A::Message>,
    out: &mut Outbox<A::Message>,
) -> Result<(), Violation> {
    match event {
        Event::Request(_) => node.request(out),
        Event::Deliver { from, message, .. } => node.receive(from, message, out),
        Event::Release(_) => node.release(out),
    }
}

/// Returns the node that replaces a forgotten one: a new node whose clock is `jump` ahead of the
/// old one's.
///
/// # Panics
/// If starting the new node sends a message: then the old one was not quiescent.
pub fn recreated<A: Algorithm>(forgotten: &A, config: &Config<A::Shape>, jump: u64) -> A {
    let mut node: A = config.recreate(forgotten.clock() + jump);
    let mut out = Outbox::new();
    node.start(&mut out);
    assert!(out.is_empty(), "a quiescent node starts without sending");
    node
}

/// Returns whether nodes of such a cluster can be forgotten only all together, while no message is
/// in flight and no node waits or is inside.
pub fn forgets_together<A: Algorithm>(config: &Config<A::Shape>) -> bool {
    let is_silent = |node| {
        let mut out = Outbox::new();
        A::new(&config.idle().at(node)).start(&mut out);
        out.is_empty()
    };
    !A::rests_alone(config.variants, config.start)
        && NodeId::all(config.place.nodes()).all(is_silent)
}

/// Judges mutual exclusion when a node has entered: no other node is inside, and the node was not
/// inside already, which `twice` says.
pub(crate) fn two_inside(
    newcomer: NodeId,
    mut phases: impl Iterator<Item = (NodeId, Phase)>,
    twice: bool,
) -> Result<(), Fault> {
    let other = phases.find(|&(node, phase)| node != newcomer && phase == Phase::Inside);
    match other {
        Some((other, _)) => Err(Fault::TwoInside { newcomer, other }),
        None if twice => Err(Fault::TwoInside {
            newcomer,
            other: newcomer,
        }),
        None => Ok(()),
    }
}

/// A violation of what must hold in a cluster of correct nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// Mutual exclusion is violated.
    TwoInside {
        /// The node that just entered.
        newcomer: NodeId,
        /// A node that was already inside.
        other: NodeId,
    },
    /// A node refused an event, such as a message from a correct peer.
    Refused {
        /// The node.
        node: NodeId,
        /// What it refused.
        violation: Violation,
    },
    /// Messages continue forever although no request needs them.
    Endless,
    /// A node's own invariant is violated.
    Invariant {
        /// The node.
        node: NodeId,
        /// The violated invariant.
        broken: &'static str,
    },
    /// An invariant of the whole cluster is violated.
    ClusterInvariant(&'static str),
    /// A token algorithm lost its token, or has several.
    Tokens(usize),
    /// Entries do not follow the order of their request ids.
    Order {
        /// The request that was just granted.
        entered: RequestId,
        /// The request that was granted before it.
        last: RequestId,
    },
    /// A node entered without knowledge of the last entry, so its fencing token does not increase.
    Fence(NodeId),
    /// A node waits, but no message is in flight and no node is inside.
    Deadlock(NodeId),
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&|node| node.to_string()))
    }
}

impl Fault {
    /// The fault as text, with these names of nodes.
    pub fn text(&self, name: &dyn Fn(NodeId) -> String) -> String {
        let request = |r: &RequestId| r.named(name);
        match self {
            Fault::TwoInside { newcomer, other } => {
                let (newcomer, other) = (name(*newcomer), name(*other));
                format!("two nodes inside: {newcomer} entered while {other} was inside")
            }
            Fault::Refused { node, violation } => format!("node {}: {violation}", name(*node)),
            Fault::Endless => "messages never stop, although no node waits or is inside".to_owned(),
            Fault::Invariant { node, broken } => format!("node {}: {broken}", name(*node)),
            Fault::ClusterInvariant(broken) => (*broken).to_owned(),
            Fault::Tokens(tokens) => format!("{tokens} tokens"),
            Fault::Order { entered, last } => {
                let (entered, last) = (request(entered), request(last));
                format!("out of order: {entered} entered after {last}")
            }
            Fault::Fence(node) => format!(
                "the fence does not increase: {} entered without knowledge of the last entry",
                name(*node)
            ),
            Fault::Deadlock(node) => format!(
                "no message is in flight, no node is inside, and node {} waits",
                name(*node)
            ),
        }
    }

    /// Returns whether this is a deadlock.
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Fault::Deadlock(_))
    }

    /// Returns whether mutual exclusion is violated, the worst fault.
    pub fn is_two_inside(&self) -> bool {
        matches!(self, Fault::TwoInside { .. })
    }

    /// Returns whether a worse fault, two nodes inside, may still follow this one.
    pub fn is_minor(&self) -> bool {
        matches!(
            self,
            Fault::Deadlock(_) | Fault::Order { .. } | Fault::Fence(_)
        )
    }
}

impl<A: Algorithm> World<A> {
    /// A cluster before its first event. Call [`start`](World::start) for each node next.
    pub fn new(shape: &Arc<A::Shape>, start: Start, variants: VariantSet) -> Self {
        let nodes = NodeId::all(shape.nodes()).map(|me| {
            let shape = Arc::clone(shape);
            A::new(&Config {
                place: Place { me, shape },
                start,
                variants,
            })
        });
        World {
            nodes: nodes.collect(),
            inside: u32::from(start.inside.is_some()),
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no nodes. There is always at least one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of nodes inside.
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// The state of one node.
    pub fn node(&self, node: NodeId) -> &A {
        &self.nodes[node.index()]
    }

    /// All nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &A)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeId::from_index(index), node))
    }

    /// Starts a node: see [`Algorithm::start`].
    pub fn start(&mut self, node: NodeId, out: &mut Outbox<A::Message>) -> Result<(), Fault> {
        self.nodes[node.index()].start(out);
        self.note_entry(node, out)
    }

    /// Tells a recovering node that it has settled: see [`Algorithm::settled`].
    pub fn settled(&mut self, node: NodeId, out: &mut Outbox<A::Message>) -> Result<(), Fault> {
        self.nodes[node.index()].settled(out);
        self.note_entry(node, out)
    }

    /// Replaces a crashed node by `recovering`. If the node was inside, it no longer is.
    pub fn crash(&mut self, node: NodeId, recovering: A) {
        let state = &mut self.nodes[node.index()];
        if state.phase() == Phase::Inside {
            self.inside -= 1;
        }
        *state = recovering;
    }

    /// Forgets a quiescent node (see [`Algorithm::is_at_rest`]) and replaces it by [a new
    /// one](recreated).
    pub fn forget(&mut self, node: NodeId, config: &Config<A::Shape>, jump: u64) {
        let state = &mut self.nodes[node.index()];
        *state = recreated(state, config, jump);
    }

    /// Applies an event and puts its effects into `out`, which must be empty.
    pub fn apply(
        &mut self,
        event: Event<A::Message>,
        out: &mut Outbox<A::Message>,
    ) -> Result<(), Fault> {
        debug_assert!(
            out.is_empty(),
            "the effects of the last event were not taken"
        );
        let node = event.node();
        let leaves = matches!(event, Event::Release(_));
        step(&mut self.nodes[node.index()], event, out)
            .map_err(|violation| Fault::Refused { node, violation })?;
        self.inside -= u32::from(leaves);
        self.note_entry(node, out)
    }

    /// Counts a node that entered, and checks that no other node is inside. If the count says that
    /// two are, but no other node is, the node entered twice.
    fn note_entry(&mut self, newcomer: NodeId, out: &Outbox<A::Message>) -> Result<(), Fault> {
        if !out.entered() {
            return Ok(());
        }
        self.inside += 1;
        if self.inside == 1 {
            return Ok(());
        }
        let phases = self.iter().map(|(node, state)| (node, state.phase()));
        two_inside(newcomer, phases, true)
    }

    /// Checks every node's own invariant.
    pub fn check_invariants(&self) -> Result<(), Fault> {
        for (node, state) in self.iter() {
            if let Err(broken) = state.invariant() {
                return Err(Fault::Invariant { node, broken });
            }
        }
        Ok(())
    }
}
