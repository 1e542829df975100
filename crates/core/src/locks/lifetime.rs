//! How long something lives that its client must renew: a session, or the hold of a request without
//! one.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use soloist_api::Moment;

use super::deadlines::{Deadlines, Due, Key};

/// The time to live of a session or a hold, and when it is over.
///
/// A client may rely on every promise that it was made, also if it never reads the answer to a
/// later renewal. No promise reaches beyond the deadline, so the deadline never moves back. The
/// exception is a node that drains: it takes a moment that no promise has reached.
#[derive(Clone)]
pub(crate) struct Lifetime {
    ttl: Duration,
    deadline: Moment,
    /// The timer that looks whether it is over. It fires at the deadline or before.
    timer: Option<Key>,
}

/// Covers all state that decides what happens next.
impl Hash for Lifetime {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.ttl, self.deadline).hash(hasher);
    }
}

impl Lifetime {
    pub(crate) fn new(now: Moment, ttl: Duration) -> Self {
        Lifetime {
            ttl,
            deadline: now + ttl,
            timer: None,
        }
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.deadline <= now
    }

    /// Changes the time to live of later renewals.
    pub(super) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = ttl;
    }

    /// Lives for the time to live from now on, or longer if that was promised before.
    pub(crate) fn renew(&mut self, now: Moment) {
        self.extend(now + self.ttl);
    }

    /// Lives until then, or longer if that was promised before.
    pub(super) fn extend(&mut self, until: Moment) {
        self.deadline = self.deadline.max(until);
    }

    /// Ends no later than this; no promise extends beyond it.
    pub(super) fn end_by(&mut self, until: Moment) {
        self.deadline = self.deadline.min(until);
    }

    /// Sets the timer to the deadline. Needed at first, when the timer has fired, and when the
    /// deadline has moved back.
    pub(super) fn arm(&mut self, deadlines: &mut Deadlines, due: Due) {
        self.disarm(deadlines);
        self.timer = Some(deadlines.add(self.deadline, due));
    }

    pub(super) fn disarm(&mut self, deadlines: &mut Deadlines) {
        deadlines.remove(self.timer.take());
    }
}
