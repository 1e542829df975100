//! The keeper and cluster that a store belongs to.

use serde::{Deserialize, Serialize};

use soloist_core::cluster_identity::ClusterIdentity;

/// The keeper that a node with this store is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct StoreIdentity {
    /// The cluster. `None` only in a store from before clusters had an identity, until the leader
    /// has committed one.
    pub cluster: Option<ClusterIdentity>,
    /// The keeper's id in Raft: random, and fresh for each promotion. A node that is promoted a
    /// second time must not answer for the keeper that it was before.
    pub id: u64,
}

impl StoreIdentity {
    /// Creates the identity of a new keeper of this cluster.
    pub fn fresh(cluster: ClusterIdentity) -> Self {
        StoreIdentity {
            cluster: Some(cluster),
            id: rand::random(),
        }
    }
}
