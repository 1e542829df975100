//! Clusters whose nodes serve the API.

use std::ops::Deref;
use std::time::Duration;

use serde_json::json;
use soloist_api::{Cluster, Hold, LockInfo};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::Node;
use soloist_node::config::{Api, Config, Metrics, Security, Ttl};
use soloist_node::http::{self, ApiServer};
use soloist_node::local::{LocalCluster, LocalKeepers, LocalSettings};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::alone::alone;
use crate::http::{Answer, Http};

pub struct Served {
    pub cluster: LocalCluster,
    pub servers: Vec<ApiServer>,
    pub https: Vec<Http>,
    _folder: TempDir,
}

/// Starts a cluster with one API per node, on Unix sockets. Returns when all nodes answer each
/// other.
pub async fn served(nodes: usize) -> Served {
    let folder = TempDir::new().unwrap();
    let settings = LocalSettings {
        nodes,
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
        servers.push(http::serve(node).await.unwrap());
    }
    let sockets = servers.iter().map(|server| server.socket().to_owned());
    let served = Served {
        https: sockets.map(Http::Unix).collect(),
        cluster,
        servers,
        _folder: folder,
    };
    for http in &served.https {
        until("all nodes answer each other", async || {
            let cluster: Cluster = http.get("/v1/cluster").await.ok();
            let mut nodes = cluster.nodes.iter();
            nodes.all(|node| node.health.is_some()).then_some(())
        })
        .await;
    }
    served
}

/// A cluster of one node.
pub struct Lonely {
    node: Node,
    _data: TempDir,
}

impl Deref for Lonely {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

/// Starts a cluster of one node with the given API settings.
pub async fn lonely(api: Api, metrics: Metrics) -> Lonely {
    limited(api, metrics, Limits::default()).await
}

/// Like [`lonely`], with the given quotas.
pub async fn limited(api: Api, metrics: Metrics, limits: Limits) -> Lonely {
    let data = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().into();
    let name: soloist_api::NodeName = "n1".parse().unwrap();
    let members = alone(&name, &address, data.path());
    let config = Config {
        name,
        members,
        listen: None,
        security: Security::Insecure,
        rules: Rules::for_any(&RuleSettings::default(), &[]).unwrap(),
        ttl: Ttl::default(),
        api,
        limits,
        metrics,
    };
    let node = Node::start_on(config, None, listener).await.unwrap();
    node.ready().await;
    Lonely { node, _data: data }
}

impl Served {
    pub async fn stop(self) {
        self.cluster.stop().await;
        for server in self.servers {
            server.stop().await;
        }
    }

    /// Waits until `waiting` requests wait for the lock.
    pub async fn waiting(&self, lock: &str, waiting: u64) -> LockInfo {
        until(&format!("{waiting} wait for {lock}"), async || {
            let info: LockInfo = self.https[0].get(&format!("/v1/locks/{lock}")).await.ok();
            (info.waiting == waiting).then_some(info)
        })
        .await
    }
}

impl Http {
    pub async fn acquire(&self, lock: &str, body: serde_json::Value) -> Answer {
        self.post(&format!("/v1/locks/{lock}/acquire"), body).await
    }

    /// Acquires a lock that must be free.
    pub async fn hold(&self, lock: &str) -> Hold {
        self.acquire(lock, json!({ "ttl_ms": 60_000 })).await.ok()
    }

    pub async fn release(&self, hold: &Hold) -> Answer {
        self.delete(&format!("/v1/holds/{}", hold.hold)).await
    }
}

/// Polls until the condition returns a value. Panics after a timeout.
pub async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    waited.unwrap_or_else(|_| panic!("it never came: {what}"))
}
