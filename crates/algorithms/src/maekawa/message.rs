//! Messages of Maekawa's algorithm.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Message;

/// Messages between nodes. Each carries the sequence number of the request that it is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum MaekawaMessage {
    /// From a requester to each member of its set: asks the member to lock itself for the request.
    Request(u64),
    /// From a member: it is locked for the receiver's request. The requester enters when all
    /// members have sent this.
    Locked(u64),
    /// From a member: another request takes precedence here. From now on the receiver gives back
    /// every lock that it is asked for.
    Failed(u64),
    /// From a member to the owner of its lock: a request that precedes the owner's has arrived;
    /// will the owner succeed? The owner answers with RELINQUISH if not, with RELEASE if it does,
    /// and not at all while this is undecided.
    Inquire(u64),
    /// From the owner of a member's lock: gives it back. The member locks itself for the request
    /// that takes precedence, and keeps the sender's request in its queue.
    Relinquish(u64),
    /// From a node that has left, to each member: its request is finished.
    Release(u64),
}

use MaekawaMessage::{Failed, Inquire, Locked, Release, Relinquish, Request};

impl MaekawaMessage {
    fn number(self) -> u64 {
        match self {
            Request(number) | Locked(number) | Failed(number) | Inquire(number)
            | Relinquish(number) | Release(number) => number,
        }
    }

    /// Whether this goes from a requester to a member of its set, not in the other direction.
    pub(super) fn is_to_member(self) -> bool {
        matches!(self, Request(_) | Relinquish(_) | Release(_))
    }
}

impl Message for MaekawaMessage {
    const KINDS: &'static [&'static str] = &[
        "REQUEST",
        "LOCKED",
        "FAILED",
        "INQUIRE",
        "RELINQUISH",
        "RELEASE",
    ];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Locked(_) => 1,
            Failed(_) => 2,
            Inquire(_) => 3,
            Relinquish(_) => 4,
            Release(_) => 5,
        }
    }

    fn examples() -> Vec<Self> {
        vec![
            Request(1),
            Locked(2),
            Failed(300),
            Inquire(1),
            Relinquish(u64::MAX),
            Release(0),
        ]
    }
}

impl fmt::Display for MaekawaMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.number())
    }
}
