//! Messages of Raymond's algorithm.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Message;

/// Messages between neighbours in the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RaymondMessage {
    /// To the neighbour in the direction of the privilege: requests it, for the sender or for one
    /// of the sender's neighbours. The receiver enqueues the sender, and sends its own request
    /// unless it has already done so.
    Request,
    /// The privilege. The receiver gives it to the head of its queue: itself or a neighbour.
    Privilege,
    /// Both at once (§6.1): the privilege, and a request to give it back to the sender.
    PrivilegeRequest,
    /// The privilege is on the sender's side (§7). The receiver tells its other neighbours the
    /// same.
    Initialize,
    /// The sender lost its state and restarts as this incarnation (§8). The receiver answers with
    /// ADVISE immediately and otherwise continues as before.
    Restart(u64),
    /// The answer to RESTART. Quotes its incarnation, and states the sender's relation to the
    /// receiver (§8.1). The receiver rebuilds its state when all neighbours have answered.
    Advise(u64, Relation),
    /// The same, with the number of PRIVILEGEs that the sender has received from the receiver
    /// (§8.4), or the maximum if there are more. The receiver serves neighbours with fewer of them
    /// first. Half the size of the counter, so that this message is no larger than `Advise`.
    AdviseCount(u64, Relation, u32),
}

/// The relation of a node Y to a neighbour X, as Y sees it: the states of §8.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Relation {
    /// (1) HOLDER of Y is X, and Y has not sent it a request.
    Holder,
    /// (2) HOLDER of Y is X, and Y has sent it a request.
    HolderAsked,
    /// (3) HOLDER of Y is not X, and X is in the REQUEST_Q of Y.
    Queued,
    /// (4) HOLDER of Y is not X, and X is not in the REQUEST_Q of Y.
    NotQueued,
    /// Not in the paper: Y does not know, because it is recovering too or INITIALIZE has not
    /// reached it.
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
            RaymondMessage::Advise(..) | RaymondMessage::AdviseCount(..) => 5,
        }
    }

    fn is_token(&self) -> bool {
        use RaymondMessage::{Privilege, PrivilegeRequest};
        matches!(self, Privilege | PrivilegeRequest)
    }

    fn is_advice(&self) -> bool {
        use RaymondMessage::{Advise, AdviseCount};
        matches!(self, Advise(..) | AdviseCount(..))
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
            AdviseCount(1, Relation::HolderAsked, 300),
        ]
    }
}

impl fmt::Display for RaymondMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            RaymondMessage::Restart(incarnation) => write!(f, " {incarnation}"),
            RaymondMessage::Advise(incarnation, relation) => write!(f, " {incarnation} {relation}"),
            RaymondMessage::AdviseCount(incarnation, relation, count) => {
                write!(f, " {incarnation} {relation} received={count}")
            }
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
