//! Many holds with long names: what members report, and what an epoch starts from, is far more than fits a message.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use soloist_api::LockName;
use soloist_core::epochs::lease::Lease;
use soloist_node::{Guard, Node};
use tokio::time::{sleep, timeout};

use crate::start;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(240);

/// A build for tests is slow, and a node that installs this much renews nothing meanwhile.
const LEASE: Lease = Lease {
    length: Duration::from_secs(60),
    drift: 5,
};

/// A name of the greatest length.
fn name(number: usize) -> String {
    format!("{number:0>width$}", width = LockName::LEN_MAX)
}

/// These nodes hold this many locks each; then a node leaves, and the epoch changes. Returns how long that took.
async fn change(holds: [usize; 3]) -> Duration {
    let (cluster, _folder) = start(4, "naimi-trehel", true, LEASE).await;
    let nodes = &cluster.nodes;
    let mut guards: Vec<Guard> = Vec::new();
    for (node, holds) in nodes.iter().zip(holds) {
        let first = guards.len();
        let acquired = stream::iter(first..first + holds).map(|number| {
            let lock = node.lock(&name(number)).unwrap();
            async move { lock.acquire().await.unwrap() }
        });
        guards.extend(acquired.buffer_unordered(512).collect::<Vec<_>>().await);
    }
    let lost = || {
        let lost = guards
            .iter()
            .filter(|guard| guard.valid_for() == Some(Duration::ZERO));
        lost.count()
    };
    assert_eq!(lost(), 0, "before the change");
    let begin = Instant::now();
    nodes[3].stop(Duration::ZERO).await;
    let changed = async {
        let is_in = |node: &Node| node.epoch().is_some() && node.members() == 3;
        while !nodes[..3].iter().all(is_in) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, changed).await.expect("the epoch changes");
    let took = begin.elapsed();
    assert_eq!(lost(), 0, "no lease ran out");
    let free = nodes[1].lock("free").unwrap();
    let served = timeout(PATIENCE, free.acquire()).await.expect("served");
    served.unwrap().release().await.unwrap();
    // What is held stays held, and goes to the next when it is released.
    let last = guards.pop().expect("some are held");
    let next = nodes[0].lock(last.name().as_str()).unwrap();
    assert!(next.try_acquire(Duration::from_millis(50)).await.is_err());
    last.release().await.unwrap();
    let next = timeout(PATIENCE, next.acquire()).await.expect("served");
    drop(next.unwrap());
    cluster.stop().await;
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_names_on_all_nodes_change_epoch() {
    let took = change([24_000, 23_000, 23_000]).await;
    println!("70,000 holds: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_names_on_one_node_change_epoch() {
    let took = change([0, 0, 80_000]).await;
    println!("80,000 holds on one node: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and only an optimised build is fast enough"]
async fn three_hundred_thousand_long_names_change_epoch() {
    let took = change([100_000; 3]).await;
    println!("300,000 holds: {took:?}");
}
