//! How a lock is lost.

use std::fmt;

use crate::Moment;

/// The lock was lost before it was released: somebody else may hold it, from `since` on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the lock was lost before it was released: {reason}")]
pub struct Loss {
    /// Why.
    pub reason: LossReason,
    /// Since when, as far as is known: a node that slept may notice late that it was cut off. If the node stops, this is
    /// still to come: until then the lock is held.
    pub since: Moment,
}

/// Why a lock was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossReason {
    /// It was not renewed in time, by the node's clock or by this machine's own.
    Expired,
    /// The node was cut off from the others.
    EpochLost,
    /// The node was stopped.
    NodeStopped,
    /// Somebody else who knows the hold's name released it.
    Released,
    /// The node knows no such hold: it was started anew.
    Forgotten,
    /// As the node says.
    Other(String),
}

impl LossReason {
    /// From the reason in the node's answer.
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "expired" => LossReason::Expired,
            "epoch-lost" => LossReason::EpochLost,
            "node-stopped" => LossReason::NodeStopped,
            "released" => LossReason::Released,
            other => LossReason::Other(other.to_owned()),
        }
    }

    /// Its name, as the node writes it.
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
