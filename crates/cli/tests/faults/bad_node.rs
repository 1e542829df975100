//! A bad fourth node beside three healthy ones: how many epochs it causes, and how long locks stand
//! still on the healthy nodes.
//!
//! `lab/tests/epochs/bad_node.rs` simulates the same. Here the nodes are processes, and a proxy
//! makes the fourth node as distant as needed.

use std::time::{Duration, Instant};

use soloist_testing::{free, proxy};
use tokio::time::sleep;

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{LOCKS, isolation, raw, until};

const HEALTHY: [usize; 3] = [0, 1, 2];
const BAD: usize = 3;
/// Interval at which the crashing node is restarted.
const RESTARTED_EVERY: Duration = Duration::from_millis(1500);

/// The fault of the fourth node.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Everything between it and the others takes this long, one way.
    Distant(Duration),
    /// It is killed soon after its start, and restarted.
    Crashes,
}

/// The effect on the healthy nodes.
#[derive(Debug)]
struct Cost {
    epochs: u64,
    /// Share of time in which locks stood still on the average healthy node, in percent.
    frozen: f64,
}

/// A loopback host that belongs to this process.
fn host() -> String {
    let address = free::address();
    let (host, _) = address.rsplit_once(':').expect("a host and a port");
    host.to_owned()
}

/// A cluster whose fourth node is far from the others, and not started yet.
async fn cluster(lease: Duration, delay: Duration) -> Cluster {
    let mut cluster = Cluster::init(&Plan {
        nodes: 4,
        lease,
        named: true,
        ..Plan::default()
    });
    let hosts: Vec<String> = (0..=BAD).map(|_| host()).collect();
    let mut distant = Vec::new();
    for own in &hosts {
        let host = host();
        proxy::distant(&format!("{host}:7401"), &format!("{own}:7401"), delay).await;
        distant.push(host);
    }
    for node in HEALTHY {
        let seen = [&hosts[..BAD], &distant[BAD..]].concat();
        cluster.set_hosts(node, &seen);
        cluster.spawn(node);
    }
    cluster.set_hosts(BAD, &[&distant[..BAD], &hosts[BAD..]].concat());
    cluster.together(&HEALTHY).await;
    cluster
}

/// Seconds in which locks stood still on the healthy nodes so far.
fn standstill(cluster: &Cluster) -> f64 {
    let nodes = HEALTHY.iter();
    let sums = nodes.map(|&node| {
        let socket = cluster.file(node, "soloist.sock");
        raw::metric_sum(&socket, "soloist_epoch_standstill_seconds")
    });
    sums.sum()
}

async fn epoch(cluster: &Cluster) -> u64 {
    cluster.view(0).await.expect("it answers").epoch
}

async fn measure(lease: Duration, trouble: Trouble, length: Duration) -> Cost {
    let delay = match trouble {
        Trouble::Distant(delay) => delay,
        Trouble::Crashes => Duration::ZERO,
    };
    let mut cluster = cluster(lease, delay).await;
    let mut workers = Workers::new();
    workers.start(&cluster, &HEALTHY, &LOCKS);
    let before = (epoch(&cluster).await, standstill(&cluster));
    let began = Instant::now();
    while began.elapsed() < length {
        cluster.spawn(BAD);
        match trouble {
            Trouble::Distant(_) => sleep(length).await,
            Trouble::Crashes => {
                sleep(RESTARTED_EVERY).await;
                cluster.kill(BAD);
            }
        }
    }
    let lasted = began.elapsed().as_secs_f64() * HEALTHY.len() as f64;
    let cost = Cost {
        epochs: epoch(&cluster).await - before.0,
        frozen: 100.0 * (standstill(&cluster) - before.1) / lasted,
    };
    println!(
        "{trouble:?}, lease {lease:?}, {length:?}: {} epochs, locks stood still {:.3} % of the time",
        cost.epochs, cost.frozen
    );
    let losses = workers.referee.losses();
    assert!(losses.is_empty(), "{losses:?}");
    workers.end().await;
    cost
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement of 8 minutes; it needs a quiet machine"]
async fn how_long_locks_stand_still_beside_a_bad_node() {
    if isolation::is_missing() {
        return;
    }
    let length = Duration::from_secs(120);
    for (lease, trouble) in [
        (3000, Trouble::Distant(Duration::from_millis(520))),
        (500, Trouble::Distant(Duration::from_millis(90))),
        (3000, Trouble::Crashes),
        (3000, Trouble::Distant(Duration::from_millis(100))),
    ] {
        let cost = measure(Duration::from_millis(lease), trouble, length).await;
        assert!(cost.frozen < 1.0, "{trouble:?}: {cost:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_distant_node_joins_without_disturbing_the_others() {
    if isolation::is_missing() {
        return;
    }
    let lease = Duration::from_secs(3);
    let mut cluster = cluster(lease, Duration::from_millis(100)).await;
    let mut workers = Workers::new();
    workers.start(&cluster, &HEALTHY, &LOCKS);
    let before = epoch(&cluster).await;
    cluster.spawn(BAD);
    cluster.takes_part(BAD).await;
    until("the others know", async || epoch(&cluster).await > before).await;
    assert_eq!(epoch(&cluster).await, before + 1);
    let losses = workers.referee.losses();
    assert!(losses.is_empty(), "{losses:?}");
    workers.end().await;
}
