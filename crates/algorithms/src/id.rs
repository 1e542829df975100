//! Identities of nodes and of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of a cluster. Numbers are dense: a cluster of N nodes has nodes 0 to N-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(u32);

impl NodeId {
    /// The node with this number.
    pub const fn new(number: u32) -> Self {
        NodeId(number)
    }

    /// The node at this index in a list of all nodes.
    ///
    /// # Panics
    /// If the index does not fit in 32 bits. A cluster that large is refused when its shape is
    /// built.
    pub fn from_index(index: usize) -> Self {
        NodeId(u32::try_from(index).expect("node numbers fit 32 bits"))
    }

    /// This node's index in a list of all nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All nodes of a cluster with `nodes` nodes, in order.
    ///
    /// ```
    /// # use soloist_algorithms::NodeId;
    /// assert_eq!(NodeId::all(3).last(), Some(NodeId::new(2)));
    /// ```
    pub fn all(nodes: usize) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator {
        (0..u32::try_from(nodes).expect("node numbers fit 32 bits")).map(NodeId)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of a request, where requests are totally ordered: by sequence number, ties by node.
/// The smaller identity takes precedence. The order is derived from the order of the fields, never
/// written by hand.
///
/// ```
/// # use soloist_algorithms::{NodeId, RequestId};
/// let early = RequestId::new(1, NodeId::new(7));
/// assert!(early < RequestId::new(2, NodeId::new(0)));
/// assert!(RequestId::new(1, NodeId::new(3)) < early);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The sequence number (Lamport's timestamp).
    pub sequence: u64,
    /// The requesting node.
    pub node: NodeId,
}

impl RequestId {
    /// The request of `node` with this sequence number.
    pub const fn new(sequence: u64, node: NodeId) -> Self {
        RequestId { sequence, node }
    }

    /// The identity as text, with these names of nodes.
    pub fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        format!("({},{})", self.sequence, name(self.node))
    }

    /// Whether a request can have this sequence number. The first is 1, and no cluster lives long
    /// enough to count to 2^62, so adding one to a number from the network never overflows.
    pub const fn is_sequence(sequence: u64) -> bool {
        0 < sequence && sequence < 1 << 62
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.sequence, self.node)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
