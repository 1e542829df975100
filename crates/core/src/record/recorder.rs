//! What a node remembers of its locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use soloist_api::LockName;

use super::ring::Ring;
use super::seconds::Seconds;
use crate::locks::{LockEvent, Ticket};

/// Number of lock events that are kept.
pub const EVENTS_KEPT: usize = 4096;

/// Maximum number of locks whose long waits are told.
const LONG_WAITS_MAX: usize = 3;

/// Maximum number of waiters that are examined for that: clients may wait for the same lock.
const LONG_WAITS_EXAMINED: usize = 1024;

/// A lock event with its time, in milliseconds since 1970.
pub type TimedEvent = (u64, LockEvent);

/// A node's last lock events, its one-second aggregates, and its waiters by age.
///
/// Memory: about 200 bytes for each of the last [`EVENTS_KEPT`] events, besides the names of locks
/// and owners; at most 225 kB for the aggregates; about 80 bytes per waiter. That is 1.5 MB on a
/// busy node, and 4 MB if all names are as long as allowed.
#[derive(Clone, Debug)]
pub struct Recorder {
    seconds: Seconds,
    events: Ring<TimedEvent>,
    waiting: BTreeMap<Ticket, OldestWait>,
}

/// A client that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldestWait {
    /// The lock.
    pub lock: LockName,
    /// The name that the client gave.
    pub owner: Arc<str>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// The locks that clients on a node have waited for longest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LongWaits<'r> {
    /// The longest wait of each lock, the longest one first.
    pub waits: Vec<&'r OldestWait>,
    /// Whether clients may have waited as long for further locks.
    pub has_more: bool,
}

impl Recorder {
    /// Creates an empty recorder. Numbers of events start from `first`, which must be higher than
    /// all numbers before the node was restarted: the time in microseconds since 1970 is.
    pub fn new(first: u64) -> Self {
        Recorder {
            seconds: Seconds::default(),
            events: Ring::new(first, EVENTS_KEPT),
            waiting: BTreeMap::new(),
        }
    }

    /// Records an event.
    pub fn note(&mut self, at_ms: u64, event: &LockEvent) {
        self.seconds.note(at_ms / 1000, event);
        match event {
            LockEvent::Waiting {
                ticket,
                lock,
                owner,
            } => {
                let waits = OldestWait {
                    lock: lock.clone(),
                    owner: Arc::clone(owner),
                    since_ms: at_ms,
                };
                self.waiting.insert(*ticket, waits);
            }
            LockEvent::Granted { ticket, .. }
            | LockEvent::Denied { ticket, .. }
            | LockEvent::Cancelled { ticket, .. } => {
                self.waiting.remove(ticket);
            }
            LockEvent::Ended { .. } => {}
        }
        self.events.push((at_ms, event.clone()));
    }

    /// The one-second aggregates.
    pub fn seconds(&self) -> &Seconds {
        &self.seconds
    }

    /// The last events.
    pub fn events(&self) -> &Ring<TimedEvent> {
        &self.events
    }

    /// The locks that clients have waited for since this time or earlier, in milliseconds since
    /// 1970: at most three of them.
    pub fn long_waits(&self, since_ms: u64) -> LongWaits<'_> {
        let mut found = LongWaits {
            waits: Vec::new(),
            has_more: false,
        };
        // Tickets are numbered in the order of the requests.
        for (examined, waits) in self.waiting.values().enumerate() {
            if waits.since_ms > since_ms {
                break;
            }
            let mut known = found.waits.iter();
            let is_known = known.any(|known: &&OldestWait| known.lock == waits.lock);
            let is_full = !is_known && found.waits.len() == LONG_WAITS_MAX;
            if is_full || examined == LONG_WAITS_EXAMINED {
                found.has_more = true;
                break;
            }
            if !is_known {
                found.waits.push(waits);
            }
        }
        found
    }
}
