//! How much may happen to a small cluster.

use crate::state::{LEASE, STEP};

/// What may still happen, so that there is an end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    pub steps: u8,
    pub requests: u8,
    pub crashes: u8,
    pub cuts: u8,
    /// Renewals, and answers to them, that come at any time or never.
    pub slow: u8,
    pub elections: u8,
    /// A member says that a message was lost: another epoch begins for all.
    pub suspicions: u8,
}

impl Budget {
    /// Whether nobody can be taken for dead, so that no hold may be lost.
    pub fn is_gentle(&self) -> bool {
        // With time, one that stays with a leader that is none any more loses its lease.
        let is_quick = STEP * u32::from(self.steps) < LEASE.length;
        self.crashes + self.cuts + self.slow == 0 && (self.elections == 0 || is_quick)
    }
}
