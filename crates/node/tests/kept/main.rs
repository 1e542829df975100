//! Clusters with keepers in one process, with real sockets, TLS and Raft on disk. Tests that kill
//! nodes are with the command line's tests.

mod clusters;
mod failing;
mod hostile;
mod many;
mod silent;
mod stopping;
mod upgrade;

use std::path::Path;
use std::time::Duration;

use soloist_core::epochs::lease::Lease;
use soloist_node::local::{LocalCluster, LocalSettings};
use soloist_node::{EndReason, Guard, Locks, Node};
use soloist_testing::wait::within;
use tempfile::TempDir;
use tokio::time::timeout;

/// Longer than any of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(30);

const LEASE: Lease = Lease {
    length: Duration::from_secs(2),
    drift: 5,
};

async fn cluster(nodes: usize, algorithm: &str) -> (LocalCluster, TempDir) {
    start(nodes, algorithm, true, LEASE).await
}

async fn start(nodes: usize, algorithm: &str, tls: bool, lease: Lease) -> (LocalCluster, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = start_in(folder.path(), nodes, algorithm, tls, lease).await;
    (cluster, folder)
}

async fn start_in(
    folder: &Path,
    nodes: usize,
    algorithm: &str,
    tls: bool,
    lease: Lease,
) -> LocalCluster {
    // `cargo test` runs several of these tests in one process.
    soloist_node::files::raise_limit();
    let settings = LocalSettings {
        tls,
        lease,
        ..LocalSettings::new(nodes, folder).with_algorithm(algorithm)
    };
    LocalCluster::start(settings).await.unwrap()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    within(TIMEOUT, what, async || condition()).await;
}

/// Waits until the members are exactly these nodes.
async fn settle(nodes: &[Node]) {
    let is_settled = || {
        let mut nodes_left = nodes.iter();
        nodes_left.all(|node| node.epoch().is_some() && node.members() == nodes.len())
    };
    until("the members are these", is_settled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_node_is_its_own_keeper() {
    let (cluster, _folder) = cluster(1, "raymond").await;
    let lock = cluster.nodes[0].lock("x").unwrap();
    let guard = lock.acquire().await.unwrap();
    let valid_for = guard.valid_for();
    assert!(!valid_for.is_zero() && valid_for <= LEASE.length);
    guard.release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_and_waiters_outlive_nodes_that_leave() {
    for algorithm in ["raymond", "maekawa", "lodha-kshemkalyani"] {
        let (cluster, _folder) = cluster(5, algorithm).await;
        let nodes = &cluster.nodes;
        let held = nodes[1].lock("held").unwrap().acquire().await.unwrap();
        let waiter = nodes[2].lock("held").unwrap();
        let waiter = tokio::spawn(async move { waiter.acquire().await });
        let leaving = nodes[4].lock("leaving").unwrap().acquire().await.unwrap();
        let next = nodes[0].lock("leaving").unwrap();
        let next = tokio::spawn(async move { next.acquire().await });
        let before = nodes[0].epoch().unwrap();
        nodes[4].stop(Duration::ZERO).await;
        // The waiter for the lock of the leaving node gets it, with a higher fence.
        let next = timeout(TIMEOUT, next)
            .await
            .expect("served")
            .unwrap()
            .unwrap();
        assert!(next.fence() > leaving.fence());
        assert!(leaving.release().await.is_err(), "it was lost");
        settle(&nodes[..4]).await;
        assert!(nodes[0].epoch().unwrap() > before);
        assert!(!waiter.is_finished(), "{algorithm}: the hold continued");
        let fence = held.fence();
        held.release().await.unwrap();
        let served = timeout(TIMEOUT, waiter).await.expect("served");
        assert!(served.unwrap().unwrap().fence() > fence);
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_renewed_while_nothing_happens() {
    let (cluster, _folder) = cluster(3, "naimi-trehel").await;
    let guard = cluster.nodes[2].lock("x").unwrap().acquire().await.unwrap();
    let lost = timeout(LEASE.length * 2, guard.lost()).await;
    assert!(lost.is_err(), "it was lost: {lost:?}");
    assert_eq!(
        cluster.nodes[0].epoch(),
        Some(1),
        "the members are the same"
    );
    guard.release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hold_is_lost_when_the_keepers_leader_leaves() {
    let (cluster, _folder) = cluster(4, "raymond").await;
    let nodes = &cluster.nodes;
    let guard = nodes[3].lock("x").unwrap().acquire().await.unwrap();
    // The first keeper leads after bootstrap.
    nodes[0].stop(Duration::ZERO).await;
    settle(&nodes[1..]).await;
    let lost = timeout(LEASE.length * 2, guard.lost()).await;
    assert!(lost.is_err(), "it was lost: {lost:?}");
    guard.release().await.unwrap();
    let again = nodes[1].lock("x").unwrap();
    let again = timeout(TIMEOUT, again.acquire()).await;
    again.expect("served").unwrap().release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_of_the_keepers_holds_are_lost_in_time() {
    let (cluster, _folder) = cluster(4, "raymond").await;
    let nodes = &cluster.nodes;
    let guard = nodes[3].lock("x").unwrap().acquire().await.unwrap();
    nodes[0].stop(Duration::ZERO).await;
    nodes[1].stop(Duration::ZERO).await;
    let lost = timeout(TIMEOUT, guard.lost()).await.expect("it is told");
    assert_eq!(lost.reason, EndReason::EpochLost);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    assert_eq!(nodes[3].epoch(), None);
    cluster.stop().await;
}
