//! One lock as one node sees it: its state machine of the algorithm, the node's own waiters, and
//! the hold.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::{Machine, Phase};

use super::deadlines::Key;
use super::forget::Offer;
use super::lifetime::Lifetime;
use super::{Client, RequestId, Ticket};
use crate::sessions::SessionRequest;
use soloist_api::Fence;
use soloist_api::Moment;

/// A client on this node that waits for the lock.
#[derive(Clone)]
pub(super) struct Waiter {
    pub ticket: Ticket,
    pub owner: Arc<str>,
    pub since: Moment,
    /// How long its hold lasts without renewal.
    pub ttl: Option<Duration>,
    /// When it times out.
    pub deadline: Option<Key>,
    pub client: Client,
    pub request: Option<RequestId>,
    pub session: Option<SessionRequest>,
    /// Set when its connection broke: it leaves at this time, unless its request is sent again.
    pub abandoned: Option<Key>,
}

/// A client on this node that holds the lock.
#[derive(Clone)]
pub(super) struct Hold {
    pub owner: Arc<str>,
    pub fence: Fence,
    pub since: Moment,
    /// Its own time to live. `None` if it expires with its session, or lasts until it is released.
    pub life: Option<Lifetime>,
    pub client: Client,
    pub request: Option<RequestId>,
    /// The session that it expires with.
    pub session: Option<SessionRequest>,
    /// Whether its client has renewed it, and so has read the grant.
    pub is_confirmed: bool,
}

#[derive(Clone)]
pub(super) struct Lock {
    /// This node's state machine of the algorithm. `None` while the table is frozen, or until the
    /// lock begins the epoch.
    pub machine: Option<Box<dyn Machine>>,
    /// The algorithm's name, for counters.
    pub algorithm: &'static str,
    /// The highest known fence.
    pub fence: Fence,
    pub waiters: VecDeque<Waiter>,
    pub hold: Option<Hold>,
    /// Number of its own waiters that the node may still serve before it releases.
    pub turns_left: u32,
    pub turns_max: u32,
    /// When the last hold on this node ended, if the lock has not left the node since.
    pub last_end: Option<Moment>,
    /// When the last event concerned it here.
    pub touched: Moment,
    /// Whether it is in the list of locks that may be idle.
    pub is_listed: bool,
    /// Weight of the messages sent minus that of the messages received: see `forget.rs`.
    pub balance: u64,
    /// Set while it is idle and its home decides whether it is forgotten. Until then it is
    /// suspended here.
    pub offer: Option<Box<Offer>>,
    /// Set at the beginning of an epoch if the node has used up its turns. It does not request the
    /// lock until this time, or until a message from another node arrives.
    pub stands_back: Option<Key>,
}

impl Lock {
    /// Whether a client on this node holds it or waits for it.
    pub(super) fn is_wanted(&self) -> bool {
        self.hold.is_some() || !self.waiters.is_empty()
    }

    /// Whether no client on this node holds it or waits for it.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_wanted()
    }

    /// Whether it was idle when an epoch ended, and has no state machine in the next one yet. Such
    /// a lock counts as absent.
    pub(super) fn is_left_over(&self) -> bool {
        self.is_unused() && self.machine.is_none()
    }

    /// Whether it is unused and its state machine neither waits nor is inside.
    pub(super) fn is_idle(&self) -> bool {
        let machine = self.machine.as_ref();
        self.is_unused() && machine.is_some_and(|machine| machine.phase() == Phase::Idle)
    }
}

/// Covers all state that decides what the lock does next, but not start times.
impl Hash for Lock {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.machine.hash(hasher);
        let waiters = self.waiters.iter();
        let waiters: Vec<_> = waiters
            .map(|waiter| {
                let whose = (&waiter.client, waiter.request, waiter.session);
                (waiter.ttl, waiter.deadline, whose, waiter.abandoned)
            })
            .collect();
        let hold = self.hold.as_ref();
        let hold = hold.map(|hold| {
            let whose = (&hold.client, hold.request, hold.session, hold.is_confirmed);
            (hold.fence, &hold.life, whose)
        });
        let stands_back = self.stands_back.is_some();
        (waiters, hold, self.fence, self.turns_left).hash(hasher);
        (self.balance, &self.offer).hash(hasher);
        stands_back.hash(hasher);
    }
}
