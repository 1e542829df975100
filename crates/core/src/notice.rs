//! Log lines. The core has no logger: a notice is an effect, and the caller writes it.

use soloist_api::NodeName;

use crate::locks::ReceiveError;

/// Something that an operator should know.
#[derive(Debug)]
pub enum Notice {
    /// From the leader: a member left in an orderly way.
    Left(NodeName),
    /// From the leader: a member is evicted by the change of epoch that begins.
    Evicted {
        /// The member.
        member: NodeName,
        /// The reason.
        reason: String,
    },
    /// From the leader: a member did not report in time, and must wait before it may rejoin.
    LateReport(NodeName),
    /// From the leader: a member is evicted because it and these members cannot reach each other.
    Partitioned {
        /// The member.
        member: NodeName,
        /// Some of the members that it cannot reach.
        from: Vec<NodeName>,
    },
    /// From the leader: most members cannot reach each other, so none is evicted.
    MostPartitioned,
    /// From the leader: a member is evicted because all members together hold more than fits.
    TooMuchHeld {
        /// The member.
        member: NodeName,
        /// Number of pieces of its report.
        pieces: u32,
    },
    /// From the leader: these two members report the same lock. Both are evicted.
    HeldTwice([NodeName; 2]),
    /// From a member: a message that arrived before its epoch was installed is refused now.
    EarlyMessage(ReceiveError),
    /// From a member: the epoch has more pieces than are allowed.
    TooManyPieces(u32),
    /// From a member: what the leader sent for the beginning of an epoch contradicts itself. All
    /// pieces are requested again after the next renewal.
    UnsoundPieces,
}
