//! Holds that have ended, so that their holders can be told why.

use std::collections::{HashMap, VecDeque};

use super::{End, HoldError, HoldId};
use soloist_api::Moment;

/// Maximum number of holds to remember.
const MAX: usize = 1 << 14;

#[derive(Clone, Default)]
pub(super) struct EndedHolds {
    ends: HashMap<HoldId, (End, Moment)>,
    /// The ids, the oldest first.
    order: VecDeque<HoldId>,
}

impl EndedHolds {
    pub fn note(&mut self, hold: HoldId, end: End, at: Moment) {
        if self.order.len() == MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
        self.ends.insert(hold, (end, at));
        self.order.push_back(hold);
    }

    /// The error for a hold that does not exist.
    pub fn error(&self, hold: HoldId) -> HoldError {
        match self.ends.get(&hold) {
            Some(&(end, _)) => HoldError::Ended(end),
            None => HoldError::Unknown,
        }
    }

    /// When a hold ended, or `None` if that is not known.
    pub fn at(&self, hold: HoldId) -> Option<Moment> {
        self.ends.get(&hold).map(|&(_, at)| at)
    }
}
