//! What a search explores.

use std::sync::Arc;

use soloist_algorithms::{Algorithm, Channels, Config, NodeId, Place, Shape, Start, VariantSet};

/// In [`Bounds::requests`]: as often as it likes. For algorithms whose states are finite in number.
pub const ENDLESS: u8 = u8::MAX;

/// What to search.
#[derive(Debug)]
pub struct Bounds<S> {
    /// The cluster's shape.
    pub shape: Arc<S>,
    /// How it begins.
    pub start: Start,
    /// The algorithm's variants in use.
    pub variants: VariantSet,
    /// Whether messages between two nodes keep their order.
    pub channels: Channels,
    /// How often each node may ask; [`ENDLESS`]: without bound.
    pub requests: Vec<u8>,
    /// How many crashes there may be, for algorithms that know recovery.
    pub crashes: Crashes,
    /// Whether nodes that are at rest may be forgotten: see [`Bounds::JUMPS_MAX`].
    pub forgets: bool,
    /// Whether the states keep what the order of entries and the rise of fences are judged by. Without
    /// it these are not checked, and a state is no more than its nodes and messages.
    pub keep_history: bool,
    /// Whether endless runs are looked for, too, which takes ten times the memory. Without it a search finds
    /// what must never happen, deadlock included, and messages that are only noted arrive as late as
    /// possible, so that there are fewer states.
    pub endless_runs: bool,
    /// Steps that put more messages under way are not followed. Where messages overtake each other
    /// and requests never end, there may be ever more of them.
    pub messages_max: usize,
    /// Give up beyond this many states.
    pub states_max: usize,
}

/// Crashes as free choices. A node that crashes loses its state, not its messages; what is sent to
/// it arrives; and it restarts when all that it had sent has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crashes {
    /// How many in all; at most 15.
    pub most: u8,
    /// Whether neighbours may be down together, outside what Raymond 1989, §8.8, promises.
    pub neighbours_too: bool,
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
    /// The most nodes that a search can tell apart.
    pub const NODES_MAX: usize = 64;

    /// How many clocks may jump, where nodes are forgotten. When to forget a node that is at rest is a free
    /// choice. The one that takes its place has the same clock; or, so often in a run, one that is
    /// further by 1, as if the node's other locks had advanced it. One jump is enough to change any
    /// two numbers' order, or to make or break a tie, and numbers that are further apart compare alike;
    /// more requests make more of it.
    pub const JUMPS_MAX: u8 = 1;

    /// The default shape, the token at node 0, no variant, the algorithm's own channels, no crash, nothing forgotten, ten
    /// million states; node i may ask `requests[i]` times.
    pub fn of<A: Algorithm<Shape = S>>(requests: &[u8]) -> Self {
        Bounds {
            shape: Arc::new(S::default_for(requests.len())),
            start: Start::idle(NodeId::new(0)),
            variants: VariantSet::default(),
            channels: A::INFO.channels,
            requests: requests.to_vec(),
            crashes: Crashes::default(),
            forgets: false,
            keep_history: true,
            endless_runs: true,
            messages_max: usize::MAX,
            states_max: 10_000_000,
        }
    }

    /// What each node is built from, seen from node 0.
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
