//! Bounds on what may happen to a small cluster.

use crate::state::{LEASE, STEP};

/// What may still happen. Bounds the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    pub steps: u8,
    pub requests: u8,
    pub crashes: u8,
    pub cuts: u8,
    pub heals: u8,
    pub sleeps: u8,
    pub slow: u8,
    pub elections: u8,
    /// A member reports that a message was lost, so another epoch begins for all.
    pub suspicions: u8,
    /// The first node reports that it cannot reach the second, so the second is evicted.
    pub complaints: u8,
    /// A node is told to stop: it drains, and leaves.
    pub stops: u8,
}

impl Budget {
    /// Whether no healthy member is evicted. Given enough time, a member is evicted if it does not
    /// learn of a change, or stays with a deposed leader.
    pub fn is_gentle(&self) -> bool {
        let is_quick = STEP * (u32::from(self.steps) + 1) < LEASE.length;
        self.elections + self.suspicions + self.stops == 0 || is_quick
    }
}
