//! Locks that are not used on this node, in the order in which they are checked. `forget.rs`
//! decides whether they are forgotten.

use std::collections::VecDeque;
use std::time::Duration;

use soloist_api::LockName;
use soloist_api::Moment;

/// Locks that may be idle, with the moment of their next check, the earliest first.
#[derive(Clone)]
pub(super) struct IdleLocks {
    list: VecDeque<(Moment, LockName)>,
    after: Duration,
}

impl IdleLocks {
    /// Locks are forgotten after this long without use.
    pub(super) fn new(after: Duration) -> Self {
        IdleLocks {
            list: VecDeque::new(),
            after,
        }
    }

    pub(super) fn after(&self) -> Duration {
        self.after
    }

    pub(super) fn add(&mut self, now: Moment, name: LockName) {
        self.list.push_back((now + self.after, name));
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    pub(super) fn first(&self) -> Option<Moment> {
        self.list.front().map(|(moment, _)| *moment)
    }

    /// Returns memory that is no longer needed.
    pub(super) fn shrink(&mut self) {
        if self.list.len() < self.list.capacity() / 8 {
            self.list.shrink_to(self.list.len() * 2);
        }
    }

    /// The next lock that is due for a check.
    pub(super) fn pop(&mut self, now: Moment) -> Option<LockName> {
        let (moment, _) = self.list.front()?;
        let is_due = *moment <= now;
        is_due.then(|| self.list.pop_front())?.map(|(_, name)| name)
    }
}
