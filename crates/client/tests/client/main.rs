//! Tests of the client against real nodes.

#[path = "../../../node/tests/common/alone.rs"]
mod alone;
mod connecting;
mod guards;
mod looking;
mod resending;

use std::future::Future;
use std::time::Duration;

use soloist_client::{Client, Guard, Target};
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleSettings;
use soloist_node::http::{self, ApiServer};
use soloist_node::local::{LocalCluster, LocalKeepers, LocalSettings};
use tempfile::TempDir;

/// Longer than anything here takes, so that a test fails instead of waiting forever.
const PATIENCE: Duration = Duration::from_secs(30);

struct Nodes {
    cluster: LocalCluster,
    servers: Vec<Option<ApiServer>>,
    _folder: TempDir,
}

impl Nodes {
    async fn start(count: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let settings = LocalSettings {
            nodes: count,
            rule: RuleSettings::default(),
            tls: false,
            folder: folder.path().to_owned(),
            keepers: LocalKeepers {
                lease: Lease::default(),
                data: folder.path().join("data"),
            },
        };
        let cluster = LocalCluster::start(settings).await.unwrap();
        let mut servers = Vec::new();
        for node in &cluster.nodes {
            servers.push(Some(http::serve(node).await.unwrap()));
        }
        Nodes {
            cluster,
            servers,
            _folder: folder,
        }
    }

    fn target(&self, node: usize) -> Target {
        Target::socket(self.servers[node].as_ref().unwrap().socket())
    }

    async fn client(&self, node: usize) -> Client {
        Client::connect(self.target(node)).await.unwrap()
    }

    /// Drops the node's API server without notice to its clients.
    fn cut(&mut self, node: usize) {
        drop(self.servers[node].take());
    }
}

async fn waiting(client: &Client, lock: &str) -> u64 {
    client.lock_info(lock).await.unwrap().waiting
}

/// Polls until `condition` holds.
async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, wait).await;
}

/// Awaits `future`, and panics if it takes too long.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("timed out: {what}"),
    }
}

async fn held(client: &Client, lock: &str) -> Guard {
    soon("the lock is granted", client.acquire(lock).into_future())
        .await
        .unwrap()
}
