//! Why a lock was not granted in time, as nodes and clients report it.

use crate::{AcquireError, LockInfo, LockName};

/// Why a lock was not granted in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It is held.
    Held {
        /// The holder.
        owner: String,
        /// The holder's node.
        node: String,
    },
    /// Nobody holds it now, but others were earlier.
    Earlier,
    /// It is not known whether it is held, for this reason.
    Unknown(String),
}

impl Obstacle {
    /// Derives the obstacle from what the nodes know about the lock.
    pub fn of(lock: LockInfo) -> Self {
        match (lock.holder, lock.reason) {
            (Some(holder), _) => Obstacle::Held {
                owner: holder.owner,
                node: holder.node,
            },
            (None, Some(reason)) => Obstacle::Unknown(reason),
            (None, None) => Obstacle::Earlier,
        }
    }

    /// The error of a request for this lock.
    pub fn error(self, lock: LockName) -> AcquireError {
        match self {
            Obstacle::Held { owner, node } => AcquireError::NotGranted {
                detail: held_by(&lock, &owner, &node),
                lock,
            },
            Obstacle::Earlier => AcquireError::NotGranted {
                detail: earlier(&lock),
                lock,
            },
            Obstacle::Unknown(reason) => AcquireError::Unknown {
                detail: unknown(&lock, &reason),
                lock,
            },
        }
    }
}

/// Names the holder of a lock. Users of the HTTP API and of the command line both read this.
pub fn held_by(lock: &LockName, owner: &str, node: &str) -> String {
    format!("lock {lock:?} is held by {owner} on node {node}")
}

/// Says that a lock was not granted in time although nobody holds it now.
pub fn earlier(lock: &LockName) -> String {
    format!("lock {lock:?} was not granted in time: other waiters came first")
}

/// Says that nobody knows whether a lock is held.
pub fn unknown(lock: &LockName, reason: &str) -> String {
    format!("unknown whether lock {lock:?} is held: {reason}")
}
