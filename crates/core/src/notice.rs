//! What is to be logged. Core has no logger: a notice is an effect, and the caller writes it.

use soloist_api::{LockName, NodeName};

use crate::locks::ReceiveError;

/// Something that an operator should know.
#[derive(Debug)]
pub enum Notice {
    /// The leader: a member left in good order.
    Left(NodeName),
    /// The leader: a member is evicted by the change of epoch that begins.
    Evicted {
        /// The member.
        member: NodeName,
        /// Why.
        reason: &'static str,
    },
    /// The leader: a member did not report in time, and must wait before it may rejoin.
    LateReport(NodeName),
    /// The leader: a member is evicted because it and these members cannot reach each other.
    Partitioned {
        /// The member.
        member: NodeName,
        /// Some of the members that it cannot reach.
        from: Vec<NodeName>,
    },
    /// The leader: most members cannot reach each other, so none is evicted for it.
    MostPartitioned,
    /// The leader: a member is evicted because all members together hold more than fits.
    TooMuchHeld {
        /// The member.
        member: NodeName,
        /// The number of pieces of its report.
        pieces: u32,
    },
    /// The leader: two members report the same lock. Both are evicted.
    HeldTwice(LockName),
    /// A member: a message that arrived before its epoch was refused.
    EarlyMessage(ReceiveError),
    /// A member: the epoch has more pieces than are allowed.
    TooManyPieces(u32),
    /// A member: a piece from the leader cannot be decoded. It is requested again.
    UnreadablePiece,
}
