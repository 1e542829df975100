//! Errors of a table. The state is unchanged when one is returned.

use std::time::Duration;

use soloist_algorithms::Violation;

use super::wire::WireError;
use super::{QuotaError, RequestId};
use soloist_api::session::Code;
use soloist_api::{EndReason, LockName};

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// An invalid time to live.
    #[error("invalid time to live {given:?}: use more than 0 and at most {max:?}")]
    Ttl {
        /// The requested time.
        given: Duration,
        /// The maximum.
        max: Duration,
    },
    /// The request would exceed a quota.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// The request's id is already used by a request for another lock.
    #[error(
        "request id {id} was already used for lock {lock:?}: choose a new random id for each \
         request"
    )]
    OtherLock {
        /// The id.
        id: RequestId,
        /// The lock of the first request with this id.
        lock: LockName,
    },
    /// Too many locks.
    #[error(
        "this node has {0} locks in use, which is its limit: release some, or try again when idle \
         locks have been forgotten"
    )]
    LocksFull(usize),
    /// Too many sessions.
    #[error("there are {0} sessions, the most allowed: end some, or use another node")]
    SessionsFull(usize),
    /// The node is stopping.
    #[error("this node is stopping and accepts no new requests: use another node")]
    Stopping,
}

impl RequestError {
    /// The kind of error in a session.
    pub fn session_code(&self) -> Code {
        match self {
            RequestError::Stopping => Code::Stopping,
            RequestError::Quota(_) | RequestError::LocksFull(_) | RequestError::SessionsFull(_) => {
                Code::TooMany
            }
            RequestError::Ttl { .. } | RequestError::OtherLock { .. } => Code::BadRequest,
        }
    }
}

/// Why a hold cannot be renewed or released.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoldError {
    /// It has already ended.
    #[error("this hold has ended: {0}")]
    Ended(EndReason),
    /// There is no such hold, or it ended long ago.
    #[error("unknown hold")]
    Unknown,
    /// An invalid time to live.
    #[error(transparent)]
    Ttl(RequestError),
}

/// Why a peer's bytes were refused. The state is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Not a lock message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message that no correct peer sends in this state.
    #[error("lock {lock:?}: {violation}")]
    Violation {
        /// The lock.
        lock: LockName,
        /// Description of the problem.
        violation: Violation,
    },
    /// A message about an idle lock that no correct peer sends in this state.
    #[error("idle lock {lock:?}: {reason}")]
    Idle {
        /// The lock.
        lock: LockName,
        /// Description of the problem.
        reason: &'static str,
    },
    /// Too many bytes have arrived for locks that this node has offered to their homes.
    #[error(
        "lock {lock:?}: too many messages are held back for idle locks (maximum: {most} bytes)"
    )]
    Held {
        /// The lock.
        lock: LockName,
        /// The limit.
        most: usize,
    },
    /// Too many locks.
    #[error(transparent)]
    Full(RequestError),
}
