//! A program that acquires and releases in a loop, and another node that wants the same lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use soloist_node::{Guard, Locks};

use super::cluster;

/// A request that is on its way is overtaken by a few entries for each time that tokio looks for
/// input. Everything runs on one thread, so that the operating system decides nothing.
#[tokio::test]
async fn a_loop_on_one_node_does_not_starve_requests_of_other_nodes() {
    for algorithm in ["naimi-trehel", "raymond"] {
        let (cluster, _folder) = cluster(3, algorithm).await;
        let [greedy, other] = [0, 2].map(|node| cluster.nodes[node].lock("a").unwrap());
        // All links are open afterwards.
        for lock in [&other, &greedy] {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        let entries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&entries);
        let in_a_loop = tokio::spawn(async move {
            loop {
                let guard = greedy.acquire().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                guard.release().await.unwrap();
            }
        });
        let mut overtaken = Vec::new();
        for _ in 0..50 {
            // The loop has the lock again.
            let before = entries.load(Ordering::Relaxed);
            while entries.load(Ordering::Relaxed) == before {
                tokio::task::yield_now().await;
            }
            let before = entries.load(Ordering::Relaxed);
            let guard = other.acquire().await.unwrap();
            overtaken.push(entries.load(Ordering::Relaxed) - before);
            guard.release().await.unwrap();
        }
        in_a_loop.abort();
        overtaken.sort_unstable();
        let median = overtaken[overtaken.len() / 2];
        assert!(median <= 64, "{algorithm}: overtaken {overtaken:?} times");
        cluster.stop().await;
    }
}
