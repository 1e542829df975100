//! The types that the keepers' Raft is instantiated with.

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use soloist_api::{Address, Host, NodeName};
use soloist_core::Term;
use soloist_core::epochs::roster::{Applied, Command};
use soloist_transport::sha256;

openraft::declare_raft_types!(
    /// The keepers agree on commands to the roster.
    pub Types:
        D = Proposal,
        R = Applied,
        NodeId = u64,
        Node = KeeperNode,
        SnapshotData = Cursor<Vec<u8>>,
);

/// The keepers' Raft.
pub type Raft = openraft::Raft<Types>;
/// The keepers as Raft knows them, and the log entry that made them so.
pub type Membership = openraft::StoredMembership<u64, KeeperNode>;
pub(super) type LogId = openraft::LogId<u64>;
pub(super) type Vote = openraft::Vote<u64>;
pub(super) type Entry = openraft::Entry<Types>;
pub(super) type Metrics = openraft::RaftMetrics<u64, KeeperNode>;
pub(super) type StorageError = openraft::StorageError<u64>;

/// A command, and the term in which its proposer led when it decided on it. A decision of one
/// leader must not be applied in another leader's term, when other decisions may have been made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Proposal {
    /// The term.
    pub term: Term,
    /// The command to the roster.
    pub command: Command,
}

/// A node that is, or is to become, a keeper.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KeeperNode {
    /// Its name, which is in its certificate.
    pub name: NodeName,
    /// Where other keepers reach it.
    pub address: Address,
}

impl std::fmt::Display for KeeperNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.name, self.address)
    }
}

/// A placeholder. Raft requires one for nodes whose address is not known.
impl Default for KeeperNode {
    fn default() -> Self {
        KeeperNode {
            name: "nobody".parse().expect("a valid name"),
            address: Address {
                host: Host::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                port: 0,
            },
        }
    }
}

/// The id of a keeper from before ids were random, derived from its node's name. Only migrated
/// stores have such ids.
pub fn id_of(name: &NodeName) -> u64 {
    let hash = sha256(name.as_str().as_bytes());
    let first = hash[..8].try_into().expect("a hash has 32 bytes");
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_old_keepers_do_not_change() {
        // Migrated stores contain these ids.
        let id = |name: &str| id_of(&name.parse().unwrap());
        assert_eq!(id("a"), 0xcabd_1bca_1281_97ca);
        assert_ne!(id("a"), id("b"));
    }

    #[test]
    fn the_keeper_id_of_no_keeper_can_be_written_and_read() {
        let nobody = KeeperNode::default();
        let bytes = postcard::to_allocvec(&nobody).unwrap();
        assert_eq!(postcard::from_bytes::<KeeperNode>(&bytes).unwrap(), nobody);
    }
}
