//! Unused locks leave no state on any node.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use soloist_node::local::LocalCluster;
use soloist_node::{Fence, Guard, Locks};

/// Locks must be forgotten within this time.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(120);

const NAMES: usize = 100;

/// Uses each lock once on each node. Asserts that its fences increase.
async fn use_each(cluster: &LocalCluster, names: usize, fences: &mut HashMap<usize, Fence>) {
    for number in 0..names {
        for place in 0..cluster.nodes.len() {
            let node = &cluster.nodes[(place + number) % cluster.nodes.len()];
            let lock = node.lock(&format!("idle/{number}")).unwrap();
            let guard = lock.acquire().await.unwrap();
            let fence = guard.fence();
            let last = fences.insert(number, fence);
            assert!(last < Some(fence), "{last:?}, then {fence}");
            guard.release().await.unwrap();
        }
    }
}

async fn entries_left(cluster: &LocalCluster) -> usize {
    let begin = Instant::now();
    loop {
        let left = cluster.nodes.iter().map(|node| node.locks()).sum();
        if left == 0 || begin.elapsed() > FORGOTTEN_WITHIN {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn forgets(algorithm: &'static str) {
    let (cluster, _folder) = crate::cluster(4, algorithm).await;
    let mut fences = HashMap::new();
    use_each(&cluster, NAMES, &mut fences).await;
    assert_eq!(entries_left(&cluster).await, 0, "{algorithm}");
    use_each(&cluster, 10, &mut fences).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_names_used_on_four_nodes_leave_nothing() {
    // In parallel, so that their locks become idle at the same time.
    let algorithms = ["suzuki-kasami", "lodha-kshemkalyani", "naimi-trehel"];
    let clusters = algorithms.map(|algorithm| tokio::spawn(forgets(algorithm)));
    for cluster in clusters {
        cluster.await.unwrap();
    }
}
