//! Why a hold ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a hold ended. The names in JSON are those that [`name`](EndReason::name) returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndReason {
    /// It was released, by its holder or by another client that knows its id.
    Released,
    /// It was not renewed in time, by the clock of the node or of the client.
    Expired,
    /// Its node lost its lease, for example because it was cut off from the cluster, and no longer
    /// has authority over the hold.
    EpochLost,
    /// Its node was stopped.
    NodeStopped,
    /// Its node does not know it, because the node was restarted. Nodes do not send this: a client
    /// concludes it.
    Forgotten,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

impl EndReason {
    /// Its name in JSON, in logs and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Released => "released",
            EndReason::Expired => "expired",
            EndReason::EpochLost => "epoch-lost",
            EndReason::NodeStopped => "node-stopped",
            EndReason::Forgotten => "forgotten",
            EndReason::Other => "other",
        }
    }

    /// Whether the holder lost the lock instead of releasing it.
    pub fn is_loss(self) -> bool {
        self != EndReason::Released
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for reason in [
            EndReason::Released,
            EndReason::Expired,
            EndReason::EpochLost,
            EndReason::NodeStopped,
            EndReason::Forgotten,
            EndReason::Other,
        ] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("{:?}", reason.name()));
            assert_eq!(serde_json::from_str::<EndReason>(&json).unwrap(), reason);
        }
        let later = serde_json::from_str::<EndReason>(r#""of-a-later-version""#);
        assert_eq!(later.unwrap(), EndReason::Other);
    }
}
