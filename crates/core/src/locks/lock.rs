//! One lock as one node sees it: its part of the algorithm, the node's own waiters, and the hold.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::{Machine, Phase};

use super::deadlines::Key;
use super::forget::Offer;
use super::{Client, RequestId, Ticket};
use soloist_api::Fence;
use soloist_api::Moment;

/// Somebody on this node who wants the lock.
#[derive(Clone)]
pub(super) struct Waiter {
    pub ticket: Ticket,
    pub owner: Arc<str>,
    pub since: Moment,
    /// How long a hold lives without renewal.
    pub ttl: Option<Duration>,
    /// When they give up.
    pub deadline: Option<Key>,
    pub client: Client,
    pub request: Option<RequestId>,
    /// Its connection broke: it leaves then, unless its request is sent again.
    pub abandoned: Option<Key>,
}

/// Somebody on this node who has the lock.
#[derive(Clone)]
pub(super) struct Hold {
    pub owner: Arc<str>,
    pub fence: Fence,
    pub since: Moment,
    pub ttl: Option<Duration>,
    pub deadline: Option<Key>,
    pub client: Client,
    pub request: Option<RequestId>,
    /// Whether its client has renewed it, and so has read the grant.
    pub is_confirmed: bool,
}

#[derive(Clone)]
pub(super) struct Lock {
    /// This node's part of the algorithm; nothing, while the table is frozen.
    pub machine: Option<Box<dyn Machine>>,
    /// The algorithm's name, for counting.
    pub algorithm: &'static str,
    /// The highest fence that is known.
    pub fence: Fence,
    pub waiters: VecDeque<Waiter>,
    pub hold: Option<Hold>,
    /// How many of its own waiters the node may serve before it leaves.
    pub turns_left: u32,
    pub turns_max: u32,
    /// When the last hold on this node ended, if the lock has not left it since.
    pub last_end: Option<Moment>,
    /// When anything last happened to it here.
    pub touched: Moment,
    /// Whether it is in the list of those that may be idle.
    pub is_listed: bool,
    /// What was sent less what was received, by weight: see `forget.rs`.
    pub balance: u64,
    /// It is idle, and its home decides whether it is forgotten. Until then nothing happens to it here.
    pub offer: Option<Box<Offer>>,
    /// The node has had its turns, and its epoch has just begun: until then, or until it hears of others, it does not ask.
    pub stands_back: Option<Key>,
}

impl Lock {
    /// Whether somebody on this node holds it or waits for it.
    pub fn is_wanted(&self) -> bool {
        self.hold.is_some() || !self.waiters.is_empty()
    }

    /// Whether nobody on this node holds it or waits for it.
    pub fn is_unused(&self) -> bool {
        !self.is_wanted()
    }

    /// Whether it was idle when an epoch ended, and has no part in the next one yet: it is as if it were not there.
    pub fn is_left_over(&self) -> bool {
        self.is_unused() && self.machine.is_none()
    }

    /// Whether it is unused and its part of the algorithm neither waits nor is inside.
    pub fn is_idle(&self) -> bool {
        let machine = self.machine.as_ref();
        self.is_unused() && machine.is_some_and(|machine| machine.phase() == Phase::Idle)
    }
}

/// All that decides what it does next: not since when anything is.
impl Hash for Lock {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.machine.hash(hasher);
        let waiters = self.waiters.iter();
        let waiters: Vec<_> = waiters
            .map(|waiter| {
                let whose = (&waiter.client, waiter.request);
                (waiter.ttl, waiter.deadline, whose, waiter.abandoned)
            })
            .collect();
        let hold = self.hold.as_ref();
        let hold = hold.map(|hold| {
            let whose = (&hold.client, hold.request, hold.is_confirmed);
            (hold.fence, hold.ttl, hold.deadline, whose)
        });
        let stands_back = self.stands_back.is_some();
        (waiters, hold, self.fence, self.turns_left).hash(hasher);
        (self.balance, &self.offer).hash(hasher);
        stands_back.hash(hasher);
    }
}
