//! What a table refuses, and why. Nothing has changed then.

use std::time::Duration;

use soloist_algorithms::Violation;

use super::wire::WireError;
use super::{End, QuotaError, RequestId};
use soloist_api::LockName;

/// Why somebody may not even wait.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError {
    /// A time to live that cannot be.
    #[error("a time to live of {given:?}: it must be longer than 0 and at most {max:?}")]
    Ttl {
        /// What was asked for.
        given: Duration,
        /// The longest.
        max: Duration,
    },
    /// It would go beyond a quota.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// The request's id is that of a request for another lock.
    #[error("request {id} is for lock {lock:?}: choose a new random id for each request")]
    OtherLock {
        /// The id.
        id: RequestId,
        /// The lock of the first request with this id.
        lock: LockName,
    },
    /// Too many locks.
    #[error(
        "this node has to do with {0} locks, the most allowed: release some, or try again when idle \
         ones are forgotten"
    )]
    LocksFull(usize),
    /// The node stops.
    #[error("this node stops and takes no new requests: ask another one")]
    Stopping,
}

/// Why a hold cannot be renewed or released.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoldError {
    /// It ended before.
    #[error("this hold has ended: {0}")]
    Ended(End),
    /// There is none of that name, or it ended long ago.
    #[error("this node knows no such hold")]
    Unknown,
    /// A time to live that cannot be.
    #[error(transparent)]
    Ttl(AskError),
}

/// Why a peer's bytes were refused. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Not a lock's message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message that no correct peer sends now.
    #[error("lock {lock:?}: {violation}")]
    Violation {
        /// The lock.
        lock: LockName,
        /// What is wrong.
        violation: Violation,
    },
    /// A word on an idle lock that no correct peer says now.
    #[error("idle lock {lock:?}: {reason}")]
    Idle {
        /// The lock.
        lock: LockName,
        /// What is wrong.
        reason: &'static str,
    },
    /// Too much came for locks that this node has offered to their homes.
    #[error("lock {lock:?}: {most} bytes are held back for idle locks, and no more are allowed")]
    Held {
        /// The lock.
        lock: LockName,
        /// The limit.
        most: usize,
    },
    /// Too many locks.
    #[error(transparent)]
    Full(AskError),
}
