//! Clusters whose nodes serve the HTTP API.

use std::path::Path;

use soloist_core::epochs::lease::Lease;
use soloist_node::http::{self, ApiServer};
use soloist_node::local::{LocalCluster, LocalSettings};
use tempfile::TempDir;

/// Nodes in this process without TLS, each with its API on a Unix socket.
#[derive(Debug)]
pub struct Served {
    /// The nodes.
    pub cluster: LocalCluster,
    /// Their APIs, in the same order: `None` for those that were cut.
    pub servers: Vec<Option<ApiServer>>,
    _folder: TempDir,
}

impl Served {
    /// Starts a cluster. Returns when all nodes are members.
    pub async fn start(nodes: usize) -> Self {
        Self::start_with(nodes, Lease::default()).await
    }

    /// Like [`start`](Served::start), with leases of another length.
    pub async fn start_with(nodes: usize, lease: Lease) -> Self {
        let folder = TempDir::new().unwrap();
        let settings = LocalSettings {
            tls: false,
            lease,
            ..LocalSettings::new(nodes, folder.path())
        };
        let cluster = LocalCluster::start(settings).await.unwrap();
        let mut servers = Vec::new();
        for node in &cluster.nodes {
            servers.push(Some(http::serve(node).await.unwrap()));
        }
        Served {
            cluster,
            servers,
            _folder: folder,
        }
    }

    /// Returns the socket of a node's API.
    pub fn socket(&self, node: usize) -> &Path {
        let server = self.servers[node].as_ref();
        server.expect("the API is served").socket()
    }

    /// Drops a node's API without notice to its clients. Must be called within the runtime.
    pub fn cut(&mut self, node: usize) {
        drop(self.servers[node].take());
    }

    /// Stops all nodes, then their APIs.
    pub async fn stop(self) {
        self.cluster.stop().await;
        for server in self.servers.into_iter().flatten() {
            server.stop().await;
        }
    }
}
