//! Bounds on what may happen to a small cluster.

use serde::Serialize;

use super::state::{Action, LEASE, STEP};

/// What may still happen. Bounds the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Budget {
    /// Steps of time.
    pub steps: u8,
    /// Requests of clients.
    pub requests: u8,
    /// Crashes of nodes.
    pub crashes: u8,
    /// Nodes that are cut off from the keepers.
    pub cuts: u8,
    /// Cuts that end.
    pub heals: u8,
    /// Nodes whose timers stop.
    pub stalls: u8,
    /// Renewals, or answers to them, that arrive late.
    pub slow: u8,
    /// Elections of a new leader.
    pub elections: u8,
    /// A member reports that a message was lost, so another epoch begins for all.
    pub suspicions: u8,
    /// The first node reports that it cannot reach the second, so the second is evicted.
    pub complaints: u8,
    /// A node is told to stop: it drains, and leaves.
    pub stops: u8,
}

impl Budget {
    /// Removes this action from what may still happen.
    pub(super) fn spend(&mut self, action: Action) {
        let left = match action {
            Action::Request(_) => &mut self.requests,
            Action::Step => &mut self.steps,
            Action::Crash(_) => &mut self.crashes,
            Action::Cut(_) => &mut self.cuts,
            Action::Heal(_) => &mut self.heals,
            Action::Stall(_) => &mut self.stalls,
            Action::Slow(..) => &mut self.slow,
            Action::Suspect(_) => &mut self.suspicions,
            Action::Miss(..) => &mut self.complaints,
            Action::Stop(_) => &mut self.stops,
            // An election is counted where it takes place.
            Action::Elect(_) | Action::Release(_) | Action::Arrive(_) => return,
        };
        *left -= 1;
    }

    /// Whether no healthy member is evicted. Given enough time, a member is evicted if it does not
    /// learn of a change, or stays with a deposed leader.
    pub fn is_gentle(&self) -> bool {
        let is_quick = STEP * (u32::from(self.steps) + 1) < LEASE.length;
        self.elections + self.suspicions + self.stops == 0 || is_quick
    }
}
