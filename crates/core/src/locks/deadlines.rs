//! Timers of a table.

use std::collections::BTreeMap;

use super::{HoldId, Ticket};
use crate::sessions::SessionId;
use soloist_api::LockName;
use soloist_api::Moment;

/// Position of a timer in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key(Moment, u64);

impl Key {
    pub(crate) fn moment(self) -> Moment {
        self.0
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A waiter times out.
    GiveUp(Ticket),
    /// The time to resend the request of a waiter whose connection broke is over.
    Abandoned(Ticket),
    /// A hold expires, unless its deadline has moved.
    Hold(HoldId),
    /// A session expires, unless its deadline has moved.
    Session(SessionId),
    /// The node has been outside the cluster for too long for those who can use another one.
    TurnAway,
    /// The node has stood back long enough, and may request the lock again.
    Ask(LockName),
}

#[derive(Clone, Default)]
pub(super) struct Deadlines {
    list: BTreeMap<Key, Due>,
    next: u64,
}

impl Deadlines {
    pub(super) fn add(&mut self, moment: Moment, due: Due) -> Key {
        let key = Key(moment, self.next);
        self.next += 1;
        self.list.insert(key, due);
        key
    }

    pub(super) fn remove(&mut self, key: Option<Key>) {
        if let Some(key) = key {
            self.list.remove(&key);
        }
    }

    pub(super) fn first(&self) -> Option<Moment> {
        self.list.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes and returns the earliest timer that is due by now.
    pub(super) fn pop(&mut self, now: Moment) -> Option<Due> {
        let first = self.list.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
