//! Errors of acquiring, holding and releasing a lock.

use std::error::Error;
use std::time::Duration;

use crate::{EndReason, LockName, Moment};

/// Why a lock was not acquired. No lock is held when this is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The lock was not granted in time: others hold it or were ahead in the queue.
    #[error("{detail}")]
    NotGranted {
        /// The lock.
        lock: LockName,
        /// The holder, if it is known, as text for people.
        detail: String,
    },
    /// The lock was not granted in time, and it is not known whether anybody holds it: the node is
    /// cut off from the cluster, or other nodes do not answer it.
    #[error("{detail}")]
    Unknown {
        /// The lock.
        lock: LockName,
        /// What is not known and why, for people.
        detail: String,
    },
    /// The lock was granted, and lost before the request was answered.
    #[error("lock {lock:?} was granted, but lost before the request was answered: {}", .loss.reason)]
    Lost {
        /// The lock.
        lock: LockName,
        /// Why and since when it is lost.
        loss: Loss,
    },
    /// The node is stopping, does not answer, or answers in a way that no node does. A later
    /// attempt, or another node, may succeed.
    #[error(transparent)]
    Unavailable(Box<dyn Error + Send + Sync>),
    /// The node refused the request: the owner or the time to live is invalid, a quota is used up,
    /// or the client may not use the node.
    #[error(transparent)]
    Refused(Box<dyn Error + Send + Sync>),
}

/// The lock was lost before it was released. From `since` on, another client may hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the lock was lost before it was released: {reason}")]
pub struct Loss {
    /// The reason.
    pub reason: EndReason,
    /// When it was lost, to the best of the holder's knowledge. It may be long ago, since a machine
    /// that was suspended notices late that a lease has expired. It is in the future if the node is
    /// stopping: until then, the lock is held.
    pub since: Moment,
}

/// Why a release failed. The lock is not held any more, or expires soon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock was lost before the release, so the work may have overlapped with another holder's.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// The node did not confirm the release. The hold is no longer renewed.
    #[error("the release was not confirmed: {source}; the hold expires within {expires_within:?}")]
    NotConfirmed {
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
        /// When the hold expires at the latest.
        expires_within: Duration,
    },
}

/// Why work was not done under a lock from beginning to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WithLockError {
    /// The lock was not acquired, and the work did not begin.
    #[error(transparent)]
    NotAcquired(#[from] AcquireError),
    /// The lock was lost before the work returned. The work was dropped where it was waiting, or
    /// its result was: it may be half done, and may have overlapped with another holder's.
    #[error(transparent)]
    Lost(#[from] Loss),
}
