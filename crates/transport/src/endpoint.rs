//! This node's identity on every connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::hello::{Hello, Party, Purpose, VERSIONS};
use crate::security::Security;
use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;

/// This node as it dials others and answers them. Cheap to clone.
// Methods: dialling in `dial.rs`, accepting in `accept.rs`.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// This node's name.
    pub name: NodeName,
    /// How its connections are protected.
    pub security: Security,
    /// The cluster that it belongs to, or `None` while it belongs to none.
    cluster: watch::Receiver<Option<ClusterIdentity>>,
    addresses: Arc<HashMap<NodeName, Vec<SocketAddr>>>,
}

impl Endpoint {
    /// Creates the endpoint of a node that belongs to no cluster.
    pub fn new(name: NodeName, security: Security) -> Self {
        Endpoint {
            name,
            security,
            cluster: watch::channel(None).1,
            addresses: Arc::default(),
        }
    }

    /// Sets the source of this node's cluster. Each hello uses the channel's current value.
    #[must_use]
    pub fn in_cluster(self, cluster: watch::Receiver<Option<ClusterIdentity>>) -> Self {
        Endpoint { cluster, ..self }
    }

    /// Overrides the addresses at which these nodes are dialled.
    #[must_use]
    pub fn reaching(self, addresses: HashMap<NodeName, Vec<SocketAddr>>) -> Self {
        let addresses = Arc::new(addresses);
        Endpoint { addresses, ..self }
    }

    /// Returns the addresses that override a node's own.
    pub(super) fn addresses_of(&self, to: &NodeName) -> Option<&[SocketAddr]> {
        self.addresses.get(to).map(Vec::as_slice)
    }

    /// Returns the cluster that this node currently belongs to.
    pub fn cluster(&self) -> Option<ClusterIdentity> {
        *self.cluster.borrow()
    }

    pub(super) fn hello(&self, to: &NodeName, purpose: Purpose) -> Hello {
        Hello {
            versions: VERSIONS,
            from: self.name.clone(),
            to: to.clone(),
            cluster: self.cluster(),
            purpose,
        }
    }

    pub(super) fn party(&self) -> Party<'_> {
        Party {
            name: &self.name,
            cluster: self.cluster(),
        }
    }
}
