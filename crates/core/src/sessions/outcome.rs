//! What a session's client is told.

use std::time::Duration;

use soloist_api::session::{
    Closed, Code, Done, Failure, Granted, Held, Lost, NodeMessage, Pong, Promise, Secret, Stopping,
    Welcome,
};
use soloist_api::{EndReason, Fence, LockName, Moment, ttl};

use super::{ConnectionId, RequestState, Session, SessionId};
use crate::epochs::lease::Lease;

/// What the client asked, to notice a number that is used for something else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Asked {
    Acquire(LockName),
    Cancel(u64),
    Release(u64),
}

/// An outcome that the client must not miss.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A request was granted.
    Granted {
        /// The request.
        n: u64,
        /// The hold's fence.
        fence: Fence,
    },
    /// A hold has ended or will end without having been released.
    Lost {
        /// The request that led to it.
        hold: u64,
        /// The reason.
        reason: EndReason,
    },
    /// A release or a cancellation was handled.
    Done {
        /// The number of that message.
        n: u64,
    },
    /// A request was denied.
    Failed(Box<Failure>),
}

impl std::hash::Hash for Outcome {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        match self {
            Outcome::Granted { n, fence } => (0, n, fence).hash(hasher),
            Outcome::Lost { hold, reason } => (1, hold, reason).hash(hasher),
            Outcome::Done { n } => (2, n).hash(hasher),
            Outcome::Failed(failure) => (3, failure.n, failure.code).hash(hasher),
        }
    }
}

impl Outcome {
    /// The number of the message that it answers, or `None` if it answers none.
    pub(crate) fn n(&self) -> Option<u64> {
        match self {
            Outcome::Granted { n, .. } | Outcome::Done { n } => Some(*n),
            Outcome::Failed(failure) => Some(failure.n),
            Outcome::Lost { .. } => None,
        }
    }
}

/// An outcome that the client has not seen.
#[derive(Clone, Hash)]
pub(crate) struct Kept {
    pub seq: u64,
    pub asked: Asked,
    pub outcome: Outcome,
}

/// A message for a client: an effect of the lock table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionPush {
    /// The session.
    pub session: SessionId,
    /// The connection to send it over. It may be gone by now.
    pub connection: ConnectionId,
    /// The message.
    pub push: Push,
}

/// A message for a client, without its promise: a [`Teller`] adds that when it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Push {
    /// `welcome`.
    Welcome,
    /// An outcome that is kept until the client has seen it, and its number.
    Outcome(u64, Outcome),
    /// The same, but it may be written together with the next message.
    LaterOutcome(u64, Outcome),
    /// `done`, for a message that needs no memory.
    Done(u64),
    /// `error`: the message was refused and had no effect.
    Refused(Box<Failure>),
    /// `pong`.
    Pong(u64),
    /// `stopping`.
    Stopping,
    /// `closed`. The caller closes the connection after it.
    Closed(Box<Closed>),
}

impl Push {
    /// Whether it may be written together with the next message.
    pub fn may_wait(&self) -> bool {
        matches!(self, Push::LaterOutcome(..))
    }

    pub(crate) fn closed(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Push::Closed(Box::new(Closed { code, detail }))
    }
}

/// Makes the messages for clients from pushes: knows the node's lease, which bounds all promises.
#[derive(Debug)]
pub struct Teller<'n> {
    /// The node's name.
    pub node: &'n str,
    /// The current epoch, or 0.
    pub epoch: u64,
    /// Until when the node is certainly a member, if it is.
    pub valid_until: Option<Moment>,
    /// The cluster's leases, with the margin for clock drift.
    pub lease: Lease,
}

impl Teller<'_> {
    /// The message for a push. `session` is `None` if it has ended.
    pub(crate) fn message(
        &self,
        id: SessionId,
        session: Option<&Session>,
        push: Push,
    ) -> NodeMessage {
        let promise = self.promise(session);
        match push {
            Push::Welcome => match session {
                Some(session) => NodeMessage::Welcome(self.welcome(id, session)),
                None => NodeMessage::Closed(Closed {
                    code: Code::Expired,
                    detail: "the session has ended".to_owned(),
                }),
            },
            Push::Outcome(seq, outcome) | Push::LaterOutcome(seq, outcome) => {
                self.outcome(session, seq, outcome)
            }
            Push::Done(n) => NodeMessage::Done(Done { n, seq: None }),
            Push::Refused(failure) => NodeMessage::Error(*failure),
            Push::Pong(n) => NodeMessage::Pong(Pong { n, promise }),
            Push::Stopping => NodeMessage::Stopping(Stopping { promise }),
            Push::Closed(closed) => NodeMessage::Closed(*closed),
        }
    }

    fn outcome(&self, session: Option<&Session>, seq: u64, outcome: Outcome) -> NodeMessage {
        let promise = self.promise(session);
        let over = Promise {
            valid_for_ms: 0,
            ..promise
        };
        let is_held = |n| session.is_some_and(|session| session.hold(n).is_some());
        match outcome {
            Outcome::Granted { n, fence } => NodeMessage::Granted(Granted {
                n,
                seq,
                fence,
                // A grant that is repeated may have ended since. `lost` follows.
                promise: if is_held(n) { promise } else { over },
            }),
            Outcome::Lost { hold, reason } => NodeMessage::Lost(Lost {
                hold,
                seq,
                reason,
                promise: if is_held(hold) { promise } else { over },
            }),
            Outcome::Done { n } => NodeMessage::Done(Done { n, seq: Some(seq) }),
            Outcome::Failed(failure) => NodeMessage::Error(Failure {
                seq: Some(seq),
                ..*failure
            }),
        }
    }

    /// How long the session's holds are certain, as the client counts it.
    fn promise(&self, session: Option<&Session>) -> Promise {
        let Some(session) = session else {
            return Promise {
                after: 0,
                valid_for_ms: 0,
            };
        };
        let (after, heard) = session.heard();
        let until = [Some(session.life.deadline()), self.valid_until];
        let until = until.into_iter().flatten().min().unwrap_or(heard);
        Promise {
            after,
            valid_for_ms: milliseconds(self.lease.told(until.since(heard))),
        }
    }

    fn welcome(&self, id: SessionId, session: &Session) -> Welcome {
        let shortest = self.lease.told(session.life.ttl().min(self.lease.length));
        let holds = session.requests.iter();
        let holds = holds.filter_map(|(n, request)| match request.state {
            RequestState::Holds { fence, .. } => Some(Held {
                hold: *n,
                lock: request.lock.to_string(),
                fence,
            }),
            RequestState::Waits { .. } => None,
        });
        Welcome {
            session: id.to_string(),
            secret: Secret(session.secret.to_string()),
            node: self.node.to_owned(),
            epoch: self.epoch,
            ping_every_ms: milliseconds(ttl::renew_after(shortest)).max(1),
            expires_in_ms: milliseconds(session.life.ttl()),
            promise: self.promise(Some(session)),
            handled: session.handled(),
            last_seq: session.seq(),
            holds: holds.collect(),
            waiting: session.waiting().into_iter().map(|(n, _)| n).collect(),
        }
    }
}

/// Whole milliseconds, rounded down.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
