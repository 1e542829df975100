//! The real executable under faults: nodes are killed, paused, cut off and restarted while a
//! referee checks mutual exclusion.
//!
//! - `cluster`: the node processes.
//! - `network`: a network for them that can be cut.
//! - `operator`: replaces keepers and brings machines back, as in docs/operations.md.
//! - `referee`: records entries and checks mutual exclusion.
//! - `workers`: clients that enter and leave all the time.
//! - `raw`: the API without the client.
//! - The other modules are the faults.
//!
//! Some tests need the privilege to create namespaces, and the tools `unshare`, `nsenter`, `ip` and
//! `nft`. Without them those tests are left out and say so, or fail under `./check`: see
//! `isolation`.

mod addresses;
mod bad_node;
mod cluster;
mod commands;
mod descriptors;
mod doctor;
mod forwarding;
mod isolation;
mod killed;
mod leadership;
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

use std::time::Duration;

use soloist_testing::wait::within;

/// The locks of most tests, each with another algorithm.
const LOCKS: [&str; 4] = [
    "raymond/a",
    "maekawa/a",
    "naimi-trehel/a",
    "lodha-kshemkalyani/a",
];

/// All nodes, in most tests.
const ALL: [usize; 5] = [0, 1, 2, 3, 4];

/// The lease of members, in most tests.
const LEASE: Duration = Duration::from_millis(1000);

/// Extra time for elections and changes of epoch, on a machine that may be busy with other tests.
const GRACE: Duration = Duration::from_secs(5);

/// Timeout that is longer than any step takes, so that a test fails instead of hanging.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    within(TIMEOUT, what, condition).await;
}

/// All nodes except one.
fn all_but(node: usize) -> Vec<usize> {
    ALL.into_iter().filter(|other| *other != node).collect()
}

/// The first three nodes, which are the keepers in most tests, except one.
fn keepers_but(node: usize) -> [usize; 2] {
    match node {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}
