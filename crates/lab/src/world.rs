//! A cluster's nodes: what the simulator, the checker and the scenarios all step through.

use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Config, NodeId, Outbox, Phase, Place, RequestId, Shape, Start, VariantSet, Violation,
};

/// All nodes of a cluster and how many of them are inside. Messages under way are the caller's:
/// a simulator keeps them by time, a checker as a set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World<A> {
    nodes: Vec<A>,
    inside: u32,
}

/// One thing that happens to one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<M> {
    /// The node wants in.
    Request(NodeId),
    /// A message arrives.
    Deliver {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// What arrives.
        message: M,
    },
    /// The node leaves its critical section.
    Release(NodeId),
}

impl<M> Event<M> {
    /// The node to which it happens.
    pub fn node(&self) -> NodeId {
        match self {
            Event::Request(node) | Event::Release(node) | Event::Deliver { to: node, .. } => *node,
        }
    }
}

/// Lets an event happen to the node that it is for.
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

/// What takes the place of a node at rest that is forgotten: a new one, whose clock is further than
/// the old one's by `jump`.
///
/// # Panics
/// If to start sends something: then it was not at rest.
pub fn anew<A: Algorithm>(forgotten: &A, config: &Config<A::Shape>, jump: u64) -> A {
    let mut node: A = config.anew(forgotten.clock() + jump);
    let mut out = Outbox::new();
    node.start(&mut out);
    assert!(out.is_empty(), "a node at rest starts without a word");
    node
}

/// Whether all nodes of such a cluster are forgotten together, when nothing is under way and nobody waits or is inside.
pub fn forgets_together<A: Algorithm>(config: &Config<A::Shape>) -> bool {
    let is_silent = |node| {
        let mut out = Outbox::new();
        A::new(&config.idle().at(node)).start(&mut out);
        out.is_empty()
    };
    !A::rests_alone(config.variants, config.start)
        && NodeId::all(config.place.nodes()).all(is_silent)
}

/// What must never happen in a cluster of correct nodes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Mutual exclusion is broken.
    #[error("two nodes inside: {newcomer} entered while {other} was inside")]
    TwoInside {
        /// The node that just entered.
        newcomer: NodeId,
        /// One that was inside already.
        other: NodeId,
    },
    /// A node refused what a correct peer sent.
    #[error("node {node}: {violation}")]
    Refused {
        /// The node.
        node: NodeId,
        /// What it refused.
        violation: Violation,
    },
    /// Messages go on and on that no request needs.
    #[error("messages without end, although nobody waits or is inside")]
    Endless,
    /// A node's own invariant is broken.
    #[error("node {node}: {broken}")]
    Invariant {
        /// The node.
        node: NodeId,
        /// What is broken.
        broken: &'static str,
    },
    /// An invariant of all nodes together is broken.
    #[error("{0}")]
    ClusterInvariant(&'static str),
    /// A token algorithm has lost its token, or has several.
    #[error("{0} tokens")]
    Tokens(usize),
    /// Entries do not follow the order of their requests' identities.
    #[error("out of order: {entered} entered after {last}")]
    Order {
        /// The request that was just granted.
        entered: RequestId,
        /// The one that was granted before it.
        last: RequestId,
    },
    /// A node entered that had no word of the last entry, so its fence does not rise.
    #[error("the fence does not rise: no word of the last entry came to {0}, which entered")]
    Fence(NodeId),
    /// Nothing is under way, nobody is inside, and somebody waits.
    #[error("nothing is under way, nobody is inside, and {0} waits")]
    Deadlock(NodeId),
}

impl Fault {
    /// Whether it is that nothing more can happen although somebody waits.
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Fault::Deadlock(_))
    }

    /// Whether it is the worst that can happen.
    pub fn is_two_inside(&self) -> bool {
        matches!(self, Fault::TwoInside { .. })
    }

    /// Whether something worse may come of it: two inside.
    pub fn is_minor(&self) -> bool {
        matches!(
            self,
            Fault::Deadlock(_) | Fault::Order { .. } | Fault::Fence(_)
        )
    }
}

impl<A: Algorithm> World<A> {
    /// A cluster before anything happened. Call [`start`](World::start) for each node next.
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

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes; there always are.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many nodes are inside.
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// One node's state.
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

    /// Lets a node start: see [`Algorithm::start`].
    pub fn start(&mut self, node: NodeId, out: &mut Outbox<A::Message>) -> Result<(), Fault> {
        self.nodes[node.index()].start(out);
        self.note_entry(node, out)
    }

    /// Lets a recovering node settle: see [`Algorithm::settled`].
    pub fn settled(&mut self, node: NodeId, out: &mut Outbox<A::Message>) -> Result<(), Fault> {
        self.nodes[node.index()].settled(out);
        self.note_entry(node, out)
    }

    /// A node loses its state and comes back as `recovering`; if it was inside, it no longer is.
    pub fn crash(&mut self, node: NodeId, recovering: A) {
        let state = &mut self.nodes[node.index()];
        if state.phase() == Phase::Inside {
            self.inside -= 1;
        }
        *state = recovering;
    }

    /// A node that is at rest is forgotten and made [`anew`].
    pub fn forget(&mut self, node: NodeId, config: &Config<A::Shape>, jump: u64) {
        let state = &mut self.nodes[node.index()];
        *state = anew(state, config, jump);
    }

    /// Does what an event asks for. The effects of it are in `out`, which must be empty before.
    pub fn apply(
        &mut self,
        event: Event<A::Message>,
        out: &mut Outbox<A::Message>,
    ) -> Result<(), Fault> {
        debug_assert!(out.is_empty(), "the last event's effects were not taken");
        let node = event.node();
        let leaves = matches!(event, Event::Release(_));
        step(&mut self.nodes[node.index()], event, out)
            .map_err(|violation| Fault::Refused { node, violation })?;
        self.inside -= u32::from(leaves);
        self.note_entry(node, out)
    }

    /// Counts a node that entered, and looks who else is inside.
    fn note_entry(&mut self, newcomer: NodeId, out: &Outbox<A::Message>) -> Result<(), Fault> {
        if !out.entered() {
            return Ok(());
        }
        self.inside += 1;
        if self.inside == 1 {
            return Ok(());
        }
        let mut others = self.iter().filter(|(node, _)| *node != newcomer);
        // If it is nobody else, a faulty node entered twice.
        let other = others
            .find(|(_, state)| state.phase() == Phase::Inside)
            .map_or(newcomer, |(other, _)| other);
        Err(Fault::TwoInside { newcomer, other })
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
