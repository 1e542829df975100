//! Connections that never identify themselves, opened to the port of every node again and again.

mod strangers;

use std::time::{Duration, Instant};

use soloist_api::{Address, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::config::{Api, Config, Members, Metrics, Nodes, Security, Ttl};
use soloist_node::identity::Identity;
use soloist_node::local::LocalCluster;
use soloist_node::{Guard, Locks, Node, NodeGuard};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::{LEASE, TIMEOUT, settle, start};
use strangers::{Manner, Strangers};

/// Issues a certificate for one more node of this cluster, or returns `None` if its nodes use no
/// TLS.
fn identity(cluster: &LocalCluster, name: &NodeName) -> Option<Identity> {
    let authority = cluster.authority.as_ref()?;
    let issued = authority.issue(name, &[]).unwrap();
    let identity = Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    Some(identity.unwrap())
}

/// Starts a node that the cluster does not know yet.
async fn joiner(name: &str, lease: Lease, cluster: &LocalCluster, folder: &TempDir) -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = listener.local_addr().unwrap().into();
    let name: NodeName = name.parse().unwrap();
    let keepers = (1..).zip(&cluster.addresses[..3]).map(|(number, address)| {
        let name: NodeName = format!("n{number}").parse().unwrap();
        (name, address.clone())
    });
    let rule = RuleSettings {
        algorithm: "raymond".to_owned(),
        ..RuleSettings::default()
    };
    let identity = identity(cluster, &name);
    let config = Config {
        members: Members {
            address,
            keepers: Nodes::new(keepers.collect::<Vec<_>>()).unwrap(),
            data: folder.path().join("data").join(name.as_str()),
            lease,
        },
        api: Api::at(folder.path().join(format!("{name}.sock"))),
        name,
        listen: None,
        security: Security::Insecure,
        rules: Rules::for_any(&rule, &[]).unwrap(),
        ttl: Ttl::default(),
        limits: Limits::default(),
        metrics: Metrics::default(),
        io_threads: Config::IO_THREADS,
    };
    Node::start_on(config, identity, listener).await.unwrap()
}

async fn acquire(node: &Node, name: &str) -> NodeGuard {
    let lock = node.lock(name).unwrap();
    let acquired = timeout(TIMEOUT, lock.acquire()).await;
    let acquired = acquired.unwrap_or_else(|_| panic!("{} gets {name}", node.name()));
    acquired.unwrap()
}

/// Asserts that acquiring free locks, joining, and a change of leader all work, and that no lease
/// is lost, while strangers keep this many connections to each port open.
async fn all_goes_on(connections: usize, lease: Lease, tls: bool, manner: Manner) {
    let (cluster, folder) = start(4, "raymond", tls, lease).await;
    let nodes = &cluster.nodes;
    let epoch = nodes[1].epoch();
    let strangers = Strangers::start(&cluster.addresses, connections, manner).await;
    let began = Instant::now();
    // The token of each lock is at one of the nodes. Most of these requests must first open a link.
    let mut held = Vec::new();
    for node in nodes {
        held.push(acquire(node, &format!("free at {}", node.name())).await);
    }
    let granted = began.elapsed();
    held.remove(0).release().await.unwrap();
    assert_eq!(nodes[1].epoch(), epoch, "no member was evicted");
    let mut left = nodes[1..].to_vec();
    let mut joining = Duration::ZERO;
    for name in ["n5", "n6", "n7"] {
        let began = Instant::now();
        let joined = joiner(name, lease, &cluster, &folder).await;
        let ready = timeout(TIMEOUT, joined.ready()).await;
        ready.expect("a node joins");
        joining = joining.max(began.elapsed());
        left.push(joined);
    }
    let began = Instant::now();
    // The first keeper leads after bootstrap.
    nodes[0].stop(Duration::ZERO).await;
    settle(&left).await;
    let guard = acquire(&left[3], "after").await;
    guard.release().await.unwrap();
    let led = began.elapsed();
    let lost = held.iter().filter(|guard| guard.valid_for().is_zero());
    let lost = lost.count();
    println!(
        "{connections} connections to each port ({} opened in all): four free locks after \
         {granted:.1?}, the slowest of three joins after {joining:.1?}, another leader after \
         {led:.1?}, {lost} of {} leases lost",
        strangers.opened(),
        held.len()
    );
    assert_eq!(lost, 0);
    drop(strangers);
    for joined in &left[3..] {
        joined.stop(Duration::ZERO).await;
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_block_nobody() {
    all_goes_on(300, LEASE, false, Manner::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_without_a_client_hello_block_nobody() {
    all_goes_on(300, LEASE, true, Manner::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_half_a_client_hello_block_nobody() {
    all_goes_on(300, LEASE, true, Manner::HalfOfClientHello).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "12,000 sockets: more files than some machines allow"]
async fn thousands_of_silent_connections_block_nobody() {
    all_goes_on(3000, Lease::default(), false, Manner::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "12,000 sockets: more files than some machines allow"]
async fn thousands_of_connections_without_a_client_hello_block_nobody() {
    all_goes_on(3000, Lease::default(), true, Manner::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "12,000 sockets: more files than some machines allow"]
async fn thousands_of_connections_with_half_a_client_hello_block_nobody() {
    all_goes_on(3000, Lease::default(), true, Manner::HalfOfClientHello).await;
}
