//! One session: numbers, requests, unseen outcomes, and the deadline.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{EndReason, Fence, LockName, Moment};

use super::outcome::{Asked, Kept, Outcome};
use super::{ConnectionId, SessionSecret};
use crate::locks::{Client, HoldId, Lifetime, Ticket};

/// A session of a client.
#[derive(Clone)]
pub(crate) struct Session {
    pub secret: SessionSecret,
    pub client: Client,
    pub owner: Arc<str>,
    /// The connection that the client uses, or `None` while it is broken.
    pub connection: Option<ConnectionId>,
    /// The highest number that was handled.
    handled: u64,
    /// The message that promises name, and when it was handled.
    heard: (u64, Moment),
    /// One for all holds.
    pub life: Lifetime,
    /// Requests that wait, and holds, by number.
    pub requests: BTreeMap<u64, Request>,
    /// Outcomes that the client has not seen, in order. Their numbers follow each other.
    unseen: VecDeque<Kept>,
    /// The number of the outcome in `unseen` that answers a message, by the message's number.
    answers: BTreeMap<u64, u64>,
    /// The number of the last outcome.
    seq: u64,
}

/// A request that waits or was granted.
#[derive(Clone, Hash)]
pub(crate) struct Request {
    pub lock: LockName,
    pub state: RequestState,
}

#[derive(Clone, Hash)]
pub(crate) enum RequestState {
    Waits {
        ticket: Ticket,
        /// Whether it may not queue behind others.
        is_try: bool,
    },
    Holds {
        hold: HoldId,
        fence: Fence,
        /// The number of the outcome that told it.
        seq: u64,
        /// Whether the client was told that it will end.
        is_ending: bool,
    },
}

/// Covers all state that decides what happens next, but not random ids.
impl Hash for Session {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.connection, self.handled, self.heard).hash(hasher);
        (&self.life, self.seq, &self.unseen).hash(hasher);
        for (n, request) in &self.requests {
            (n, &request.lock).hash(hasher);
            match request.state {
                RequestState::Waits { is_try, .. } => is_try.hash(hasher),
                RequestState::Holds {
                    fence,
                    seq,
                    is_ending,
                    ..
                } => (fence, seq, is_ending).hash(hasher),
            }
        }
    }
}

impl Session {
    pub(crate) fn new(
        now: Moment,
        secret: SessionSecret,
        client: Client,
        owner: Arc<str>,
        ttl: Duration,
        connection: ConnectionId,
    ) -> Self {
        Session {
            secret,
            client,
            owner,
            connection: Some(connection),
            handled: 0,
            heard: (0, now),
            life: Lifetime::new(now, ttl),
            requests: BTreeMap::new(),
            unseen: VecDeque::new(),
            answers: BTreeMap::new(),
            seq: 0,
        }
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// The number of the last outcome.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn heard(&self) -> (u64, Moment) {
        self.heard
    }

    /// Records that the client resumed the session.
    pub(crate) fn resume(&mut self, now: Moment, connection: ConnectionId, extends: bool) {
        self.connection = Some(connection);
        self.renew(0, now, extends);
    }

    /// Records a message with a number that is higher than all before.
    pub(crate) fn handle(&mut self, n: u64, now: Moment, extends: bool) {
        self.handled = n;
        self.renew(n, now, extends);
    }

    fn renew(&mut self, n: u64, now: Moment, extends: bool) {
        self.heard = (n, now);
        if extends {
            self.life.renew(now);
        }
    }

    /// Forgets the outcomes that the client has seen. Returns whether there were that many.
    pub(super) fn see(&mut self, seen: u64) -> bool {
        while let Some(kept) = self.unseen.front().filter(|kept| kept.seq <= seen) {
            if let Some(n) = kept.outcome.n() {
                self.answers.remove(&n);
            }
            self.unseen.pop_front();
        }
        seen <= self.seq
    }

    /// Keeps an outcome until the client has seen it, and returns its number.
    pub(super) fn keep(&mut self, asked: Asked, outcome: Outcome) -> u64 {
        self.seq += 1;
        let seq = self.seq;
        if let Some(n) = outcome.n() {
            self.answers.insert(n, seq);
        }
        self.unseen.push_back(Kept {
            seq,
            asked,
            outcome,
        });
        seq
    }

    /// The outcomes to repeat after a resume.
    pub(crate) fn unseen(&self) -> impl ExactSizeIterator<Item = &Kept> {
        self.unseen.iter()
    }

    /// What is known of a number that was handled before: what was asked, and its outcome if that
    /// is kept.
    pub(crate) fn known(&self, n: u64) -> Option<(Asked, Option<&Kept>)> {
        if let Some(seq) = self.answers.get(&n) {
            let first = self.unseen.front().map_or(0, |kept| kept.seq);
            let kept = &self.unseen[(seq - first) as usize];
            return Some((kept.asked.clone(), Some(kept)));
        }
        let request = self.requests.get(&n)?;
        Some((Asked::Acquire(request.lock.clone()), None))
    }

    /// Why a hold ended without being released, if that is kept.
    pub(crate) fn loss(&self, n: u64) -> Option<EndReason> {
        self.unseen.iter().find_map(|kept| match kept.outcome {
            Outcome::Lost { hold, reason } if hold == n => Some(reason),
            _ => None,
        })
    }

    /// The tickets of all requests that wait, with their numbers.
    pub(crate) fn waiting(&self) -> Vec<(u64, Ticket)> {
        let requests = self.requests.iter();
        let waits = requests.filter_map(|(n, request)| match request.state {
            RequestState::Waits { ticket, .. } => Some((*n, ticket)),
            RequestState::Holds { .. } => None,
        });
        waits.collect()
    }

    /// The holds whose grants have a higher number than `seen`, with their numbers: all of them if
    /// it is 0.
    pub(crate) fn unseen_holds(&self, seen: u64) -> Vec<(u64, HoldId)> {
        let requests = self.requests.iter();
        let holds = requests.filter_map(|(n, request)| match request.state {
            RequestState::Holds { hold, seq, .. } if seq > seen => Some((*n, hold)),
            RequestState::Holds { .. } | RequestState::Waits { .. } => None,
        });
        holds.collect()
    }

    /// The hold of this number, if it is one.
    pub(crate) fn hold(&self, n: u64) -> Option<HoldId> {
        match self.requests.get(&n)?.state {
            RequestState::Holds { hold, .. } => Some(hold),
            RequestState::Waits { .. } => None,
        }
    }
}
