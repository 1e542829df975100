//! What the nodes of Maekawa's algorithm say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Message;

/// What nodes say to each other. Each carries the sequence number of the request it is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum MaekawaMessage {
    /// From a node that wants in, to each member of its set: lock yourself for my request.
    Request(u64),
    /// From a member: I am locked for your request. With that of all members the node enters.
    Locked(u64),
    /// From a member: another request goes first here. Who gets it gives back each lock it is
    /// asked for from now on.
    Failed(u64),
    /// From a member to the owner of its lock: a request that precedes yours came; will you succeed?
    /// Answered by RELINQUISH if not, by RELEASE if so, and by neither as long as that is not known.
    Inquire(u64),
    /// From the owner of a member's lock: I give it back. The member locks itself for
    /// the request that goes first, and keeps the sender's waiting.
    Relinquish(u64),
    /// From a node that has left, to each member: forget my request.
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

    /// Whether it goes from a requesting node to a member of its set, not back.
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
