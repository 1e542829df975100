//! A set of nodes.

use std::fmt;

use crate::NodeId;

/// A set of a cluster's nodes: one bit per node, and a count. Never allocates after construction.
///
/// ```
/// # use soloist_algorithms::{NodeId, NodeSet};
/// let mut set = NodeSet::new(100);
/// assert!(set.insert(NodeId::new(64)));
/// assert!(!set.insert(NodeId::new(64)));
/// assert_eq!(set.to_string(), "{64}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeSet {
    words: Box<[u64]>,
    count: u32,
}

impl NodeSet {
    /// An empty set, for a cluster of `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        NodeSet {
            words: vec![0; nodes.div_ceil(64)].into(),
            count: 0,
        }
    }

    /// The nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.checked_sub(1)?;
                Some(NodeId::from_index(index * 64 + bit))
            })
        })
    }

    /// Adds a node. Returns whether it was absent.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        let absent = self.words[index] & bit == 0;
        self.words[index] |= bit;
        self.count += u32::from(absent);
        absent
    }

    /// Removes a node. Returns whether it was present.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        let present = self.words[index] & bit != 0;
        self.words[index] &= !bit;
        self.count -= u32::from(present);
        present
    }

    /// Whether the set contains the node.
    pub fn contains(&self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        self.words[index] & bit != 0
    }

    /// Number of nodes in the set.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all nodes.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    fn position(node: NodeId) -> (usize, u64) {
        (node.index() / 64, 1 << (node.index() % 64))
    }
}

impl Extend<NodeId> for NodeSet {
    fn extend<I: IntoIterator<Item = NodeId>>(&mut self, nodes: I) {
        for node in nodes {
            self.insert(node);
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
