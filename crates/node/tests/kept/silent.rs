//! Connections that say nothing, to the port of every node, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use soloist_api::{Address, NodeName};
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::Node;
use soloist_node::config::{Api, Config, Kept, Metrics, Nodes, Security, Ttl};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{LEASE, PATIENCE, settle, start, until};

/// Connections that say nothing, for as long as this lives.
#[derive(Default)]
struct Silence {
    tasks: JoinSet<()>,
    open: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
}

impl Silence {
    /// Opens this many connections, and each again a while after it was closed.
    fn towards(&mut self, address: &Address, connections: usize, pause: Duration) {
        for _ in 0..connections {
            let (address, open, opened) =
                (address.to_string(), self.open.clone(), self.opened.clone());
            self.tasks.spawn(async move {
                loop {
                    if let Ok(mut tcp) = TcpStream::connect(&address).await {
                        open.fetch_add(1, Ordering::Relaxed);
                        opened.fetch_add(1, Ordering::Relaxed);
                        let _ = tcp.read_to_end(&mut Vec::new()).await;
                        open.fetch_sub(1, Ordering::Relaxed);
                    }
                    sleep(pause).await;
                }
            });
        }
    }
}

/// A node that the cluster does not know yet.
async fn joiner(name: &str, keepers: &[Address], folder: &TempDir) -> (Node, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = listener.local_addr().unwrap().into();
    let name: NodeName = name.parse().unwrap();
    let keepers = (1..).zip(keepers).map(|(number, address)| {
        let name: NodeName = format!("n{number}").parse().unwrap();
        (name, address.clone())
    });
    let rule = RuleSettings {
        algorithm: "raymond".to_owned(),
        ..RuleSettings::default()
    };
    let config = Config {
        members: Kept {
            address: address.clone(),
            keepers: Nodes::new(keepers.collect::<Vec<_>>()).unwrap(),
            data: folder.path().join("data").join(name.as_str()),
            lease: LEASE,
        },
        api: Api {
            socket: folder.path().join(format!("{name}.sock")),
            tcp: None,
        },
        name,
        listen: None,
        security: Security::Insecure,
        rules: Rules::for_any(&rule, &[]).unwrap(),
        ttl: Ttl::default(),
        limits: Limits::default(),
        metrics: Metrics::default(),
    };
    let node = Node::start_on(config, None, listener).await.unwrap();
    (node, address)
}

/// A free lock, a join and a change of leader, while this many connections to each port say nothing.
async fn all_goes_on(connections: usize, pause: Duration) {
    soloist_node::files::raise_limit();
    let (cluster, folder) = start(4, "raymond", false, LEASE).await;
    let mut silence = Silence::default();
    for address in &cluster.addresses {
        silence.towards(address, connections, pause);
    }
    let all = connections * cluster.addresses.len();
    until("all were opened", || {
        silence.opened.load(Ordering::Relaxed) >= all
    })
    .await;
    let began = Instant::now();
    // A lock's token is at one of the nodes: for most of these, a link must be opened first.
    for (number, node) in cluster.nodes.iter().enumerate() {
        let lock = node.lock(&format!("free-{number}")).unwrap();
        let acquired = timeout(PATIENCE, lock.acquire()).await;
        let guard = acquired.expect("a free lock is granted").unwrap();
        guard.release().await.unwrap();
    }
    let granted = began.elapsed();
    let began = Instant::now();
    let (joined, _) = joiner("n5", &cluster.addresses[..3], &folder).await;
    let ready = timeout(PATIENCE, joined.ready()).await;
    ready.expect("a node joins");
    let joining = began.elapsed();
    let began = Instant::now();
    let leader = &cluster.nodes[0];
    leader.stop(Duration::ZERO).await;
    let mut left = cluster.nodes[1..].to_vec();
    left.push(joined);
    settle(&left).await;
    let lock = left[3].lock("after").unwrap();
    let acquired = timeout(PATIENCE, lock.acquire()).await;
    let guard = acquired.expect("granted under the next leader").unwrap();
    guard.release().await.unwrap();
    println!(
        "{connections} silent connections to each port ({} opened): four free locks after {granted:.1?}, \
         a join after {joining:.1?}, another leader after {:.1?}",
        silence.opened.load(Ordering::Relaxed),
        began.elapsed()
    );
    drop(silence);
    left[3].stop(Duration::ZERO).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_stop_nobody() {
    all_goes_on(300, Duration::from_millis(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "12,000 sockets: a minute on two cores, and more files than some machines allow"]
async fn thousands_of_silent_connections_stop_nobody() {
    // They share the processor with the nodes: 12,000 connections in a second are enough for it.
    all_goes_on(3000, Duration::from_secs(1)).await;
}
