//! Locks over links that break at any moment: no two holds overlap, and every request is granted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use soloist_api::NodeName;
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::config::{Api, Config, Members, Metrics, Security, Ttl};
use soloist_node::identity::{Authority, Identity};
use soloist_node::{Guard, Locks, Node};
use soloist_testing::alone::alone;
use soloist_testing::proxy::{Proxy, Temper};
use soloist_testing::referee::Referee;
use soloist_testing::wait::within;
use tempfile::TempDir;
use tokio::net::TcpListener;

const NODES: usize = 5;
const CLIENTS: usize = 8;
const ENTRIES: usize = 6;

/// Far longer than these tests take. It only ends a test that hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A link carries only a single frame now and then. These values let most handshakes complete, but
/// cut some of the frames.
const TEMPER: Temper = Temper {
    refuses: 0.05,
    early: 0.02,
    bytes: (100_000, 100_000),
    lifetime_ms: 1_000,
    cuts: 0.08,
    delays: 0.3,
};

/// Longer than the test, so that no lease expires while links to the only keeper are cut.
const LEASE: Lease = Lease {
    length: Duration::from_secs(300),
    drift: 5,
};

struct Torn {
    nodes: Vec<Node>,
    proxies: Vec<Proxy>,
    _folder: TempDir,
}

fn name(node: usize) -> NodeName {
    format!("n{node}").parse().unwrap()
}

/// Starts a cluster with TLS in which each node is reached through a proxy. The first node is the
/// only keeper.
async fn torn(algorithm: &str, seed: u64) -> Torn {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("orchestra").unwrap();
    let (mut listeners, mut proxies) = (Vec::new(), Vec::new());
    for node in 0..NODES {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let proxy = Proxy::to(&address, seed * 100 + node as u64, TEMPER).await;
        proxy.healed.store(true, Ordering::Relaxed);
        proxies.push(proxy);
        listeners.push(listener);
    }
    let keeper = proxies[0].address.parse().unwrap();
    let keeper = Members {
        lease: LEASE,
        ..alone(&name(0), &keeper, &folder.path().join("n0"))
    };
    let mut nodes = Vec::new();
    for (me, listener) in listeners.into_iter().enumerate() {
        let issued = authority.issue(&name(me), &[]).unwrap();
        let (certificate, key) = (&issued.certificate, &issued.key);
        let identity = Identity::from_pem(authority.certificate(), certificate, key).unwrap();
        let members = Members {
            address: proxies[me].address.parse().unwrap(),
            data: folder.path().join(name(me).as_str()),
            ..keeper.clone()
        };
        let config = config(me, members, algorithm);
        let node = Node::start_on(config, Some(identity), listener).await;
        nodes.push(node.unwrap());
    }
    let is_member = |node: &Node| node.epoch().is_some() && node.members() == NODES;
    until("all are members", || nodes.iter().all(is_member)).await;
    for proxy in &proxies {
        proxy.healed.store(false, Ordering::Relaxed);
    }
    Torn {
        nodes,
        proxies,
        _folder: folder,
    }
}

fn config(me: usize, members: Members, algorithm: &str) -> Config {
    let settings = RuleSettings {
        algorithm: algorithm.to_owned(),
        ..RuleSettings::default()
    };
    Config {
        name: name(me),
        rules: Rules::for_any(&settings, &[]).unwrap(),
        members,
        listen: None,
        security: Security::Insecure,
        ttl: Ttl::default(),
        api: Api::at("not served"),
        limits: Limits::default(),
        metrics: Metrics::default(),
        io_threads: Config::IO_THREADS,
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(TIMEOUT, what, async || is_so()).await;
}

/// Acquires and releases the lock `entries` times, and reports each entry to the referee.
async fn enter(node: Node, entries: usize, referee: Referee) {
    let lock = node.lock("torn/lock").unwrap();
    for entry in 0..entries {
        let guard = lock.acquire_within(TIMEOUT).await;
        let guard = guard.unwrap_or_else(|error| panic!("entry {entry}: {error}"));
        referee.enter(guard.fence());
        // Long enough for another client to enter if mutual exclusion were broken.
        tokio::time::sleep(Duration::from_millis(2)).await;
        referee.leave(guard.fence());
        guard.release().await.unwrap();
    }
}

/// Returns whether every frame sent was received once and none is queued.
fn is_drained(nodes: &[Node]) -> bool {
    let links: Vec<_> = nodes.iter().map(Node::links).collect();
    (0..NODES).all(|a| {
        (0..NODES).all(|b| {
            let (there, back) = (&links[a][b], &links[b][a]);
            let well = there.frames_sent == 0 || (there.out_up && there.last_error.is_none());
            well && there.buffered_frames == 0 && there.frames_sent == back.frames_received
        })
    })
}

/// Returns whether enough connections were cut and some frames had to be resent.
fn was_rough(torn: &Torn) -> bool {
    let count = |proxy: &Proxy| proxy.cuts.load(Ordering::Relaxed);
    let cuts: u64 = torn.proxies.iter().map(count).sum();
    let links: Vec<_> = torn.nodes.iter().flat_map(Node::links).collect();
    let resent: u64 = links.iter().map(|link| link.frames_resent).sum();
    cuts > 20 && resent > 0
}

async fn contend(algorithm: &str, seed: u64) {
    let torn = torn(algorithm, seed).await;
    let referee = Referee::default();
    let mut rounds = 0;
    while !was_rough(&torn) {
        let clients = (0..CLIENTS).map(|client| {
            let node = torn.nodes[client % NODES].clone();
            tokio::spawn(enter(node, ENTRIES, referee.clone()))
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        rounds += 1;
    }
    assert_eq!(referee.entries(), rounds * CLIENTS * ENTRIES);

    for proxy in &torn.proxies {
        proxy.healed.store(true, Ordering::Relaxed);
    }
    for node in &torn.nodes {
        enter(node.clone(), 1, referee.clone()).await;
    }
    until("all that was sent has arrived", || is_drained(&torn.nodes)).await;
    // Stop the keeper last: the others need it in order to leave.
    for node in torn.nodes.iter().rev() {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn raymond_tolerates_cut_links() {
    contend("raymond", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn maekawa_tolerates_cut_links() {
    contend("maekawa", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn naimi_trehel_tolerates_cut_links() {
    contend("naimi-trehel", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lodha_kshemkalyani_tolerates_cut_links() {
    contend("lodha-kshemkalyani", 4).await;
}
