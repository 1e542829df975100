//! How much may happen to a small cluster.

use crate::state::{LEASE, STEP};

/// What may still happen, so that there is an end.
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
    /// A member says that a message was lost: another epoch begins for all.
    pub suspicions: u8,
    /// The first says that it does not reach the second: the second is done without.
    pub complaints: u8,
    /// A node is told to stop: it drains, and leaves.
    pub stops: u8,
}

impl Budget {
    /// Whether nobody is done without, unless something is wrong with it. With time, one is that does not hear of a change,
    /// or stays with a leader that is none any more.
    pub fn is_gentle(&self) -> bool {
        let is_quick = STEP * (u32::from(self.steps) + 1) < LEASE.length;
        self.elections + self.suspicions + self.stops == 0 || is_quick
    }
}
