//! Workloads that measure the memory per lock.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use soloist_bench::{Measured, Samples};
use soloist_core::rules::RuleSettings;
use soloist_node::{Guard, Locks, Node};

use super::single::cluster;
use crate::memory;

/// A longer wait means that something is wrong.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(60);

/// Memory left behind by locks that were used once and are idle. The cluster has a single node,
/// which is the home of every lock.
pub(super) async fn idle(locks: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(1, RuleSettings::ALGORITHM, true).await?;
    let node = &cluster.nodes[0];
    // The allocator keeps memory that was needed once, so only growth in the second round counts.
    use_once(node, "first", locks).await?;
    let before = resident()?;
    let seconds = use_once(node, "second", locks).await?;
    let bytes = resident()?.saturating_sub(before);
    cluster.stop().await;
    let name = format!("idle locks, {locks}");
    Ok(weighed(name, "acquire and release", locks, seconds, bytes))
}

/// Uses each lock once and waits until the node has forgotten them, which it does some time after
/// their last use. Returns the seconds that using them took.
async fn use_once(node: &Node, round: &str, locks: usize) -> Result<f64> {
    let begin = Instant::now();
    for number in 0..locks {
        let lock = node.lock(&format!("bench/idle/{round}/{number}"))?;
        lock.acquire().await?.release().await?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let used = Instant::now();
    while node.locks() > 0 {
        let left = node.locks();
        ensure!(
            used.elapsed() < FORGOTTEN_WITHIN,
            "{left} locks are not forgotten"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(seconds)
}

/// Memory of locks that one node of five holds, including the state of the other nodes.
pub(super) async fn live(locks: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(5, RuleSettings::ALGORITHM, true).await?;
    let node = &cluster.nodes[0];
    let before = resident()?;
    let begin = Instant::now();
    let mut guards = Vec::with_capacity(locks);
    for number in 0..locks {
        let lock = node.lock(&format!("bench/live/{number}"))?;
        guards.push(lock.acquire().await?);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let bytes = resident()?.saturating_sub(before);
    drop(guards);
    cluster.stop().await;
    let name = format!("live locks, {locks}");
    Ok(weighed(name, "acquire", locks, seconds, bytes))
}

fn weighed(name: String, what: &'static str, locks: usize, seconds: f64, bytes: u64) -> Measured {
    let mut measured = Measured::new(name, what, seconds, &Samples::default());
    measured.operations = locks;
    measured.operations_per_second = locks as f64 / seconds;
    measured.bytes_each = Some(bytes as f64 / locks as f64);
    measured
}

fn resident() -> Result<u64> {
    memory::resident().context("cannot read how much memory this process uses")
}
