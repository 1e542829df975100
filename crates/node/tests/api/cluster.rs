//! Clusters whose nodes serve the API.

use std::ops::Deref;
use std::time::Duration;

use serde_json::json;
use soloist_api::{Cluster, Hold, LockInfo};
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::Node;
use soloist_node::config::{Api, Config, Metrics, Security, Ttl};
use soloist_testing::alone::alone;
use soloist_testing::served;
use soloist_testing::wait::found;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::http::{Answer, Http};

/// A cluster, and clients of its nodes' APIs.
pub(crate) struct Served {
    nodes: served::Served,
    pub https: Vec<Http>,
}

impl Deref for Served {
    type Target = served::Served;

    fn deref(&self) -> &served::Served {
        &self.nodes
    }
}

/// Starts a cluster with one API per node, on Unix sockets. Returns when all nodes answer each
/// other.
pub(crate) async fn served(count: usize) -> Served {
    let nodes = served::Served::start(count).await;
    let sockets = (0..count).map(|node| nodes.socket(node).to_owned());
    let served = Served {
        https: sockets.map(Http::Unix).collect(),
        nodes,
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
pub(crate) struct Lonely {
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
pub(crate) async fn lonely(api: Api, metrics: Metrics) -> Lonely {
    limited(api, metrics, Limits::default()).await
}

/// Like [`lonely`], with the given quotas.
pub(crate) async fn limited(api: Api, metrics: Metrics, limits: Limits) -> Lonely {
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
    pub(crate) async fn stop(self) {
        self.nodes.stop().await;
    }

    /// Waits until `waiting` requests wait for the lock.
    pub(crate) async fn waiting(&self, lock: &str, waiting: u64) -> LockInfo {
        until(&format!("{waiting} wait for {lock}"), async || {
            let info: LockInfo = self.https[0].get(&format!("/v1/locks/{lock}")).await.ok();
            (info.waiting == waiting).then_some(info)
        })
        .await
    }
}

impl Http {
    pub(crate) async fn acquire(&self, lock: &str, body: serde_json::Value) -> Answer {
        self.post(&format!("/v1/locks/{lock}/acquire"), body).await
    }

    /// Acquires a lock that must be free.
    pub(crate) async fn hold(&self, lock: &str) -> Hold {
        self.acquire(lock, json!({ "ttl_ms": 60_000 })).await.ok()
    }

    pub(crate) async fn release(&self, hold: &Hold) -> Answer {
        self.delete(&format!("/v1/holds/{}", hold.hold)).await
    }
}

/// Polls until the condition returns a value. Panics after a timeout.
pub(crate) async fn until<T>(what: &str, condition: impl AsyncFnMut() -> Option<T>) -> T {
    found(Duration::from_secs(20), what, condition).await
}
