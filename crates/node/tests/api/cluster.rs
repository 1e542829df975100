//! Clusters whose nodes serve the API.

use std::ops::Deref;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use soloist_api::{Cluster, Hold, LockInfo, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::Node;
use soloist_node::config::{Api, Config, Members, Metrics, Security, Ttl};
use soloist_node::http::{self, ApiServer};
use soloist_node::identity::{Authority, Identity};
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
    let name: NodeName = "n1".parse().unwrap();
    let authority = Authority::new("test").unwrap();
    let issued = authority.issue(&name, &[]).unwrap();
    let identity = Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    let members = alone(&name, &address, data.path());
    let config = Config {
        limits,
        metrics,
        ..config(name, members, api)
    };
    let identity = Some(identity.unwrap());
    let node = Node::start_on(config, identity, listener).await.unwrap();
    node.ready().await;
    Lonely { node, _data: data }
}

fn config(name: NodeName, members: Members, api: Api) -> Config {
    Config {
        name,
        members,
        listen: None,
        security: Security::Insecure,
        rules: Rules::for_any(&RuleSettings::default(), &[]).unwrap(),
        ttl: Ttl::default(),
        api,
        limits: Limits::default(),
        metrics: Metrics::default(),
        io_threads: Config::IO_THREADS,
    }
}

/// Three nodes, of which the only keeper is not started: the others serve the API and are not
/// members.
pub(crate) struct Forming {
    keeper: Option<(Config, TcpListener)>,
    nodes: Vec<Node>,
    servers: Vec<ApiServer>,
    /// Clients of the nodes that are not keepers.
    pub https: Vec<Http>,
    folder: TempDir,
}

impl Forming {
    /// Waiters keep their places much longer than a test takes.
    const LEASE: Lease = Lease {
        length: Duration::from_secs(60),
        drift: 5,
    };

    pub(crate) async fn start() -> Self {
        let mut forming = Forming {
            keeper: None,
            nodes: Vec::new(),
            servers: Vec::new(),
            https: Vec::new(),
            folder: TempDir::new().unwrap(),
        };
        let folder = forming.folder.path().to_owned();
        let mut keeper: Option<Members> = None;
        for node in ["n1", "n2", "n3"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().into();
            let name: NodeName = node.parse().unwrap();
            let data = folder.join(node);
            let api = Api::at(folder.join(format!("{node}.sock")));
            let Some(keeper) = &keeper else {
                let members = Members {
                    lease: Self::LEASE,
                    ..alone(&name, &address, &data)
                };
                keeper = Some(members.clone());
                forming.keeper = Some((config(name, members, api), listener));
                continue;
            };
            let members = Members {
                address,
                data,
                ..keeper.clone()
            };
            let config = config(name, members, api);
            let node = Node::start_on(config, None, listener).await.unwrap();
            let server = http::serve(&node).await.unwrap();
            forming.https.push(Http::Unix(server.socket().to_owned()));
            forming.servers.push(server);
            forming.nodes.push(node);
        }
        forming
    }

    /// Starts the keeper, and waits until all nodes are members.
    pub(crate) async fn form(&mut self) {
        let (config, listener) = self.keeper.take().expect("it is not started");
        let keeper = Node::start_on(config, None, listener).await.unwrap();
        self.nodes.push(keeper);
        until("all are members", async || {
            let mut nodes = self.nodes.iter();
            nodes.all(|node| node.members() == 3).then_some(())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        join_all(self.nodes.iter().map(|node| node.stop(Duration::ZERO))).await;
        for server in self.servers {
            server.stop().await;
        }
    }
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
