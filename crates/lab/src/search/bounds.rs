//! The bounds of a search.

use std::sync::Arc;

use soloist_algorithms::{Algorithm, Channels, Config, NodeId, Place, Shape, Start, VariantSet};

use super::packed::{CRASH_BITS, NODE_BITS};

/// In [`Bounds::requests`] and [`Crashes::most`]: no limit. For algorithms with finitely many
/// states.
pub const ENDLESS: u8 = u8::MAX;

/// The cluster to search, and the limits of the search.
#[derive(Debug)]
pub struct Bounds<S> {
    /// The cluster's shape.
    pub shape: Arc<S>,
    /// The initial state.
    pub start: Start,
    /// The algorithm's variants in use.
    pub variants: VariantSet,
    /// How often each node may request; [`ENDLESS`] for no limit.
    pub requests: Vec<u8>,
    /// What may happen, what is checked, and how far the search goes.
    pub limits: Limits,
}

/// What may happen in a search, what is checked, and how far the search goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Whether messages between two nodes arrive in the order sent.
    pub channels: Channels,
    /// How many crashes there may be, for algorithms that support recovery.
    pub crashes: Crashes,
    /// Whether quiescent nodes (see [`Algorithm::is_at_rest`]) may be forgotten: see
    /// [`Limits::JUMPS_MAX`].
    pub forgets: bool,
    /// Whether each node that leaves is told whether it will request again (see
    /// [`Algorithm::expect_request`]). A node for whose request others wait must then request.
    pub known_requests: bool,
    /// Whether states include the history needed to check the order of entries and that fences
    /// increase. Without it these are not checked, and a state consists of nodes and messages only.
    pub keep_history: bool,
    /// Whether to search for endless runs as well, which takes ten times the memory. Without it the
    /// search finds only safety violations and deadlocks, and applies partial-order reduction where
    /// that is sound, so that there are fewer states.
    pub endless_runs: bool,
    /// Steps that put more messages in flight than this are not followed. If messages may overtake
    /// each other and requests have no limit, their number may grow without bound.
    pub messages_max: usize,
    /// The search stops beyond this many states.
    pub states_max: usize,
}

impl Limits {
    /// Maximum number of nodes that a search supports.
    pub const NODES_MAX: usize = 1 << NODE_BITS;

    /// Maximum number of requests per node, unless they are [`ENDLESS`].
    pub const REQUESTS_MAX: u8 = ENDLESS - 1;

    /// Maximum number of crashes in a run.
    pub const CRASHES_MAX: u8 = (1 << CRASH_BITS) - 1;

    /// How many clock jumps a run may have, if nodes are forgotten. When to forget a quiescent node
    /// is a free choice. The node that replaces it has the same clock or, this many times per run,
    /// a clock advanced by 1, as if the node's other locks had advanced it. One jump is enough to
    /// change the order of any two numbers, or to make or break a tie, and numbers that are further
    /// apart compare alike. More requests have the effect of more jumps.
    pub const JUMPS_MAX: u8 = 1;

    /// These channels, no crashes, no forgetting, all checks, and ten million states.
    pub fn new(channels: Channels) -> Self {
        Limits {
            channels,
            crashes: Crashes::default(),
            forgets: false,
            known_requests: false,
            keep_history: true,
            endless_runs: true,
            messages_max: usize::MAX,
            states_max: 10_000_000,
        }
    }
}

/// Crashes as free choices. A crashed node loses its state. Messages from it still arrive, and so
/// do messages to it, unless they may be lost. It restarts when all messages that it had sent have
/// arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crashes {
    /// Maximum in total; at most [`Limits::CRASHES_MAX`], or [`ENDLESS`] for no limit. A node then
    /// crashes again only when it has recovered, and it is not checked whether a node that may
    /// crash waits forever, or whether messages ever stop.
    pub most: u8,
    /// Whether neighbours may be down at the same time, which Raymond 1989, §8.8, does not cover.
    pub neighbours_too: bool,
    /// The nodes that may crash, one bit per node; `None` for all.
    pub nodes: Option<u64>,
    /// Whether a message may be lost that arrives between a crash and the restart.
    pub loses_messages: bool,
    /// Whether a crashed node restarts only when no message *to* it is in flight either: Raymond
    /// 1989, §8.7, the first way.
    pub long_wait: bool,
    /// Widest gap between successive counters of tokens that a search tells apart (see
    /// [`Algorithm::counter`]). Wider ones are replaced by this one.
    pub gap_max: u8,
}

impl Default for Crashes {
    /// No crashes. With some, of any node, never of neighbours together, and without losses.
    fn default() -> Self {
        Crashes {
            most: 0,
            neighbours_too: false,
            nodes: None,
            loses_messages: false,
            long_wait: false,
            gap_max: 2,
        }
    }
}

impl Crashes {
    /// Whether there is no limit.
    pub(super) fn are_endless(&self) -> bool {
        self.most == ENDLESS
    }

    /// Whether this node may crash.
    pub(super) fn may_hit(&self, node: NodeId) -> bool {
        self.most > 0
            && self
                .nodes
                .is_none_or(|nodes| nodes >> node.index() & 1 == 1)
    }
}

impl<S> Clone for Bounds<S> {
    fn clone(&self) -> Self {
        Bounds {
            shape: Arc::clone(&self.shape),
            requests: self.requests.clone(),
            ..*self
        }
    }
}

impl<S: Shape> Bounds<S> {
    /// The default shape, the token at node 0, no variant, the algorithm's own channels, and the
    /// other limits of [`Limits::new`]. Node i may request `requests[i]` times.
    pub fn of<A: Algorithm<Shape = S>>(requests: &[u8]) -> Self {
        Bounds {
            shape: Arc::new(S::default_for(requests.len())),
            start: Start::idle(NodeId::new(0)),
            variants: VariantSet::default(),
            requests: requests.to_vec(),
            limits: Limits::new(A::INFO.channels),
        }
    }

    /// The configuration of node 0, from which those of the other nodes are derived.
    pub(super) fn config(&self) -> Config<S> {
        Config {
            place: Place {
                me: NodeId::new(0),
                shape: Arc::clone(&self.shape),
            },
            start: self.start,
            variants: self.variants,
        }
    }
}
