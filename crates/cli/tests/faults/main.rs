//! The real executable under faults: nodes that are killed, paused, cut off and restarted, while a referee watches.
//!
//! - `cluster`: the node processes. `network`: a network of their own that can be cut.
//! - `operator`: replaces keepers and brings machines back, as docs/operations.md says.
//! - `referee`: who was inside when, and whether that was right. `workers`: those who go in and out all the time.
//! - The other modules are the faults.
//!
//! Some of it needs the rights to make namespaces, and `unshare`, `nsenter`, `ip` and `nft`: without them it fails.

mod cluster;
mod descriptors;
mod forwarding;
#[path = "../../../node/tests/common/free.rs"]
mod free;
mod killed;
mod manual;
mod names;
mod network;
mod operator;
mod partitions;
mod paused;
mod raw;
mod referee;
mod restarts;
mod returns;
mod stores;
mod workers;

use std::time::{Duration, Instant};

/// Nodes have so many locks, each with an algorithm of its own.
const LOCKS: [&str; 4] = [
    "raymond/a",
    "maekawa/a",
    "naimi-trehel/a",
    "lodha-kshemkalyani/a",
];

/// All nodes, in most of these tests.
const ALL: [usize; 5] = [0, 1, 2, 3, 4];

/// How long members rely on being members, in most of these tests.
const LEASE: Duration = Duration::from_millis(1000);

/// For elections, changes of epoch and this machine, which may be busy with other tests.
const GRACE: Duration = Duration::from_secs(5);

/// Longer than anything here takes, so that a test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something is so.
async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    within(PATIENCE, what, condition).await;
}

/// Waits until something is so, for no longer than this, and tells how long it took.
async fn within(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

/// All nodes but one.
fn all_but(node: usize) -> Vec<usize> {
    ALL.into_iter().filter(|other| *other != node).collect()
}

/// The first three nodes, which are the keepers in most of these tests, but one.
fn keepers_but(node: usize) -> [usize; 2] {
    match node {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}
