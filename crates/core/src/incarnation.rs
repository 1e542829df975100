//! Numbers that tell one start of a node, or one term of a leader, from the next.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identifies one incarnation of a node: the time from its start, or from the loss of its lease, to
/// the next. The first one is random, so that no two nodes have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The same node's next incarnation.
    pub fn next(self) -> Self {
        Incarnation(self.0.wrapping_add(1))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies one term of the keepers' leader. Each election begins a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// The term that follows.
    pub fn next(self) -> Self {
        Term(self.0 + 1)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
