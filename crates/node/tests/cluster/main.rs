//! Whole clusters in one process, over real sockets with TLS.

#[path = "../common/alone.rs"]
mod alone;
mod cut;
mod forgetting;
#[path = "../common/free.rs"]
mod free;
mod listen;
#[path = "../common/proxy.rs"]
mod proxy;
#[path = "../common/referee.rs"]
mod referee;

use std::time::Duration;

use referee::Referee;
use soloist_algorithms::Choice;
use soloist_core::epochs::lease::Lease;
use soloist_core::locks::End;
use soloist_core::rules::RuleSettings;
use soloist_node::local::{LocalCluster, LocalKeepers, LocalSettings};
use soloist_node::{AcquireError, Lost};
use tempfile::TempDir;

async fn cluster(nodes: usize, algorithm: &str) -> (LocalCluster, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = LocalSettings {
        nodes,
        rule: RuleSettings {
            algorithm: algorithm.to_owned(),
            ..RuleSettings::default()
        },
        tls: true,
        folder: folder.path().to_owned(),
        keepers: LocalKeepers {
            lease: Lease::default(),
            data: folder.path().join("data"),
        },
    };
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
                    referee.enter(guard.fence().number());
                    tokio::task::yield_now().await;
                    referee.leave(guard.fence().number());
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
async fn everybody_is_served_one_at_a_time_with_every_algorithm() {
    for choice in Choice::all() {
        contend(choice.name, 8, 5).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_dropped_lets_the_next_one_in() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let [first, second] = [0, 2].map(|node| cluster.nodes[node].lock("a").unwrap());
    let guard = first.acquire().await.unwrap();
    let valid_for = guard.valid_for().expect("there is a lease");
    assert!(!valid_for.is_zero() && valid_for <= Lease::default().length);
    let late = second.try_acquire(Duration::from_millis(50)).await;
    assert!(matches!(late, Err(AcquireError::Late(name)) if name.as_str() == "a"));
    let fence = guard.fence();
    drop(guard);
    let guard = second.acquire().await.unwrap();
    assert!(guard.fence() > fence);
    guard.release().await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_wait_that_is_dropped_is_passed_over() {
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
    assert_eq!(guard.lost().await, Lost(End::NodeStopped));
    assert_eq!(guard.valid_for(), Some(Duration::ZERO));
    assert_eq!(guard.release().await, Err(Lost(End::NodeStopped)));
    let denied = waits.await.unwrap().unwrap_err();
    assert!(!matches!(denied, AcquireError::Late(_)), "{denied}");
}
