//! Whole clusters in one process, over real sockets with TLS.

mod cut;
mod forgetting;
mod listen;
mod starving;

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_core::epochs::lease::Lease;
use soloist_node::local::{LocalCluster, LocalSettings};
use soloist_node::{AcquireError, EndReason, Guard, Locks, ReleaseError};
use soloist_testing::referee::Referee;
use tempfile::TempDir;

async fn cluster(nodes: usize, algorithm: &str) -> (LocalCluster, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = LocalSettings::new(nodes, folder.path()).with_algorithm(algorithm);
    (LocalCluster::start(settings).await.unwrap(), folder)
}

/// Clients on all nodes contend for one lock. The referee observes every entry and exit.
async fn contend(algorithm: &str, clients: usize, entries: usize) {
    let (cluster, _folder) = cluster(5, algorithm).await;
    let referee = Referee::default();
    let mut tasks = Vec::new();
    for node in &cluster.nodes {
        for _ in 0..clients {
            let lock = node.lock("contended/lock").unwrap();
            let referee = referee.clone();
            tasks.push(tokio::spawn(async move {
                for _ in 0..entries {
                    let guard = lock.acquire().await.unwrap();
                    referee.enter(guard.fence());
                    tokio::task::yield_now().await;
                    referee.leave(guard.fence());
                    guard.release().await.unwrap();
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(referee.entries(), 5 * clients * entries, "{algorithm}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_waiter_is_served_one_at_a_time_with_every_algorithm() {
    for choice in Choice::all() {
        contend(choice.name, 8, 5).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_dropped_lets_the_next_one_in() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let [first, second] = [0, 2].map(|node| cluster.nodes[node].lock("a").unwrap());
    let guard = first.acquire().await.unwrap();
    let valid_for = guard.valid_for();
    assert!(!valid_for.is_zero() && valid_for <= Lease::default().length);
    let late = second.acquire_within(Duration::from_millis(50)).await;
    assert!(matches!(late, Err(AcquireError::NotGranted { lock, .. }) if lock.as_str() == "a"));
    let fence = guard.fence();
    drop(guard);
    let guard = second.acquire().await.unwrap();
    assert!(guard.fence() > fence);
    guard.release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_cancelled_wait_is_skipped() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let locks: Vec<_> = cluster.nodes.iter().map(|n| n.lock("a").unwrap()).collect();
    let guard = locks[0].acquire().await.unwrap();
    for _ in 0..20 {
        let wait = tokio::time::timeout(Duration::from_millis(1), locks[1].acquire());
        assert!(wait.await.is_err(), "it is held");
    }
    let next = tokio::spawn({
        let lock = locks[2].clone();
        async move { lock.acquire().await.unwrap().fence() }
    });
    guard.release().await.unwrap();
    next.await.unwrap();
    // The abandoned waits left nothing behind at this node.
    let guard = locks[1].acquire().await.unwrap();
    guard.release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_that_stops_tells_its_holders() {
    let (cluster, _folder) = cluster(1, "raymond").await;
    let lock = cluster.nodes[0].lock("a").unwrap();
    let guard = lock.acquire().await.unwrap();
    let waits = tokio::spawn(async move { lock.acquire().await.map(|guard| guard.fence()) });
    tokio::task::yield_now().await;
    cluster.stop().await;
    let loss = guard.lost().await;
    assert_eq!(loss.reason, EndReason::NodeStopped);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    let released = guard.release().await;
    assert!(matches!(released, Err(ReleaseError::Lost(same)) if same == loss));
    let denied = waits.await.unwrap().unwrap_err();
    assert!(matches!(denied, AcquireError::Unavailable(_)), "{denied}");
}
