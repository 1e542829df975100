//! What the nodes of Raymond's algorithm say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Message;

/// What neighbours in the tree say to each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RaymondMessage {
    /// To the neighbour in whose direction the privilege is: give it to me, for myself or for a
    /// neighbour of mine. The receiver queues the sender, and asks on if it has not asked yet.
    Request,
    /// The privilege. The receiver gives it to the head of its queue: to itself, or further on.
    Privilege,
    /// Both at once (§6.1): the privilege, and please give it back to me.
    PrivilegeRequest,
    /// The privilege is on my side (§7). The receiver tells its other neighbours the same.
    Initialize,
    /// I lost my state and come back as this incarnation (§8): advise me. The receiver answers
    /// at once and goes on as before.
    Restart(u64),
    /// The answer to RESTART: quotes its incarnation, and tells how the sender sees the
    /// two of us (§8.1). The receiver rebuilds its state when all neighbours have answered.
    Advise(u64, Relation),
}

/// How a node Y sees its relation to a neighbour X: the states of §8.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Relation {
    /// (1) HOLDER of Y is X, and Y has not asked.
    Holder,
    /// (2) HOLDER of Y is X, and Y has asked.
    HolderAsked,
    /// (3) HOLDER of Y is not X, and X is in the REQUEST_Q of Y.
    Queued,
    /// (4) HOLDER of Y is not X, and X is not in the REQUEST_Q of Y.
    NotQueued,
    /// Not in the paper: Y does not know, as it recovers too or INITIALIZE has not reached it.
    Unknown,
}

impl Message for RaymondMessage {
    const KINDS: &'static [&'static str] = &[
        "REQUEST",
        "PRIVILEGE",
        "PRIVILEGE+REQUEST",
        "INITIALIZE",
        "RESTART",
        "ADVISE",
    ];

    fn kind(&self) -> usize {
        match self {
            RaymondMessage::Request => 0,
            RaymondMessage::Privilege => 1,
            RaymondMessage::PrivilegeRequest => 2,
            RaymondMessage::Initialize => 3,
            RaymondMessage::Restart(_) => 4,
            RaymondMessage::Advise(..) => 5,
        }
    }

    fn is_token(&self) -> bool {
        use RaymondMessage::{Privilege, PrivilegeRequest};
        matches!(self, Privilege | PrivilegeRequest)
    }

    fn is_advice(&self) -> bool {
        matches!(self, RaymondMessage::Advise(..))
    }

    fn examples() -> Vec<Self> {
        use RaymondMessage::*;
        vec![
            Request,
            Privilege,
            PrivilegeRequest,
            Initialize,
            Restart(1),
            Advise(1, Relation::Holder),
            Advise(1, Relation::HolderAsked),
            Advise(1, Relation::Queued),
            Advise(1, Relation::NotQueued),
            Advise(u64::MAX, Relation::Unknown),
        ]
    }
}

impl fmt::Display for RaymondMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            RaymondMessage::Restart(incarnation) => write!(f, " {incarnation}"),
            RaymondMessage::Advise(incarnation, relation) => write!(f, " {incarnation} {relation}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Holder => "(1) HOLDER=you ASKED=false",
            Relation::HolderAsked => "(2) HOLDER=you ASKED=true",
            Relation::Queued => "(3) HOLDER≠you, you are in REQUEST_Q",
            Relation::NotQueued => "(4) HOLDER≠you, you are not in REQUEST_Q",
            Relation::Unknown => "HOLDER unknown",
        })
    }
}
