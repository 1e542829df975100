//! Holds that have ended, so that their holders can be told why.

use std::collections::VecDeque;

use super::{HoldError, HoldId};
use crate::lookup_map::LookupMap;
use soloist_api::{EndReason, Moment};

/// Maximum number of holds to remember.
const MAX: usize = 1 << 14;

#[derive(Clone, Default)]
pub(super) struct EndedHolds {
    ends: LookupMap<HoldId, (EndReason, Moment)>,
    /// The ids, the oldest first.
    order: VecDeque<HoldId>,
}

impl EndedHolds {
    pub(super) fn note(&mut self, hold: HoldId, end: EndReason, at: Moment) {
        if self.order.len() == MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
        self.ends.insert(hold, (end, at));
        self.order.push_back(hold);
    }

    /// The error for a hold that does not exist.
    pub(super) fn error(&self, hold: HoldId) -> HoldError {
        match self.ends.get(&hold) {
            Some(&(end, _)) => HoldError::Ended(end),
            None => HoldError::Unknown,
        }
    }

    /// When a hold ended, or `None` if that is not known.
    pub(super) fn at(&self, hold: HoldId) -> Option<Moment> {
        self.ends.get(&hold).map(|&(_, at)| at)
    }
}
