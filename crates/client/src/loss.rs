//! Why and when a lock was lost.

use std::fmt;

use crate::Moment;

/// The lock was lost before it was released. From `since` on, another client may hold it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the lock was lost before it was released: {reason}")]
pub struct Loss {
    /// Reason of the loss.
    pub reason: LossReason,
    /// Time of the loss, to the best of the client's knowledge. It may be long ago, since a node
    /// whose machine was suspended notices late that its lease had expired. It is in the future if
    /// the node is stopping: until then, the lock is held.
    pub since: Moment,
}

/// Why a lock was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossReason {
    /// The hold was not renewed in time, by the clock of the node or of this machine.
    Expired,
    /// The node was cut off from the cluster.
    EpochLost,
    /// The node was stopped.
    NodeStopped,
    /// Another client that knows the hold's id released it.
    Released,
    /// The node does not know the hold: it was restarted.
    Forgotten,
    /// Another reason, as named by the node.
    Other(String),
}

impl LossReason {
    /// Parses the reason in the node's response.
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "expired" => LossReason::Expired,
            "epoch-lost" => LossReason::EpochLost,
            "node-stopped" => LossReason::NodeStopped,
            "released" => LossReason::Released,
            other => LossReason::Other(other.to_owned()),
        }
    }

    /// The name of the reason, as in the API.
    pub fn name(&self) -> &str {
        match self {
            LossReason::Expired => "expired",
            LossReason::EpochLost => "epoch-lost",
            LossReason::NodeStopped => "node-stopped",
            LossReason::Released => "released",
            LossReason::Forgotten => "forgotten",
            LossReason::Other(name) => name,
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
