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
    ///
    /// Returns `None` if the message has a promise, but the same event has ended the session or
    /// moved it to another connection: the promise would name a message that was not sent over the
    /// connection of the push. Nothing is missed: that connection is closed, and the session's next
    /// one repeats the outcomes.
    pub(crate) fn message(
        &self,
        session: Option<&Session>,
        push: SessionPush,
    ) -> Option<NodeMessage> {
        let connection = Some(push.connection);
        let promised = session.filter(|session| session.connection == connection);
        let promise = |session: &Session| self.promise(session);
        let message = match push.push {
            Push::Welcome => NodeMessage::Welcome(self.welcome(push.session, promised?)),
            Push::Outcome(seq, outcome) | Push::LaterOutcome(seq, outcome) => {
                return self.outcome(promised, seq, outcome);
            }
            Push::Done(n) => NodeMessage::Done(Done { n, seq: None }),
            Push::Refused(failure) => NodeMessage::Error(*failure),
            Push::Pong(n) => NodeMessage::Pong(Pong {
                n,
                promise: promise(promised?),
            }),
            Push::Stopping => NodeMessage::Stopping(Stopping {
                promise: promise(promised?),
            }),
            Push::Closed(closed) => NodeMessage::Closed(*closed),
        };
        Some(message)
    }

    fn outcome(
        &self,
        session: Option<&Session>,
        seq: u64,
        outcome: Outcome,
    ) -> Option<NodeMessage> {
        let promise = |session: &Session, n| {
            let promise = self.promise(session);
            match session.hold(n) {
                Some(_) => promise,
                // A grant that is repeated may have ended since. `lost` follows.
                None => Promise {
                    valid_for_ms: 0,
                    ..promise
                },
            }
        };
        let message = match outcome {
            Outcome::Granted { n, fence } => NodeMessage::Granted(Granted {
                n,
                seq,
                fence,
                promise: promise(session?, n),
            }),
            Outcome::Lost { hold, reason } => NodeMessage::Lost(Lost {
                hold,
                seq,
                reason,
                promise: promise(session?, hold),
            }),
            Outcome::Done { n } => NodeMessage::Done(Done { n, seq: Some(seq) }),
            Outcome::Failed(failure) => NodeMessage::Error(Failure {
                seq: Some(seq),
                ..*failure
            }),
        };
        Some(message)
    }

    /// How long the session's holds are certain, as the client counts it.
    fn promise(&self, session: &Session) -> Promise {
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
            promise: self.promise(session),
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
