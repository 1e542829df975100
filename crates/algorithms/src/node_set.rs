//! A set of nodes.

use std::fmt;

use crate::NodeId;

/// A set of a cluster's nodes: a bit a node, and their count. Never allocates after it is made.
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
    /// The empty set, for a cluster of `nodes`.
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

    /// Puts a node in; says whether it was absent.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        let absent = self.words[index] & bit == 0;
        self.words[index] |= bit;
        self.count += u32::from(absent);
        absent
    }

    /// Takes a node out; says whether it was present.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        let present = self.words[index] & bit != 0;
        self.words[index] &= !bit;
        self.count -= u32::from(present);
        present
    }

    /// Whether the node is in it.
    pub fn contains(&self, node: NodeId) -> bool {
        let (index, bit) = Self::position(node);
        self.words[index] & bit != 0
    }

    /// How many nodes are in it.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether no node is in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes all nodes out.
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
