//! Workload: many nodes and many locks at a fixed rate, at which a lock service with all-to-all
//! traffic breaks down.

use std::time::{Duration, Instant};

use anyhow::Result;
use soloist_bench::{Measured, Samples};
use soloist_core::rules::RuleSettings;
use soloist_node::{Guard, Locks};

use super::single::cluster;

pub(super) const NODES: usize = 60;
pub(super) const LOCKS: usize = 500;
pub(super) const A_SECOND: u32 = 500;

/// Starts this many acquisitions at a fixed rate, each on another node and of another lock, without
/// waiting for earlier ones.
pub(super) async fn measure(acquisitions: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(NODES, RuleSettings::ALGORITHM, true).await?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / A_SECOND);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let begin = Instant::now();
    let mut clients = Vec::new();
    for turn in 0..acquisitions {
        ticks.tick().await;
        // Both steps are coprime to their counts, so all nodes and locks come up, in an order that
        // does not suit a tree.
        let node = &cluster.nodes[turn * 37 % NODES];
        let lock = node.lock(&format!("bench/{}", turn * 211 % LOCKS))?;
        clients.push(tokio::spawn(async move {
            let asked = Instant::now();
            let guard = lock.acquire().await?;
            let waited = asked.elapsed();
            guard.release().await?;
            anyhow::Ok(waited)
        }));
    }
    let mut samples = Samples::default();
    for client in clients {
        samples.add(client.await??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    cluster.stop().await;
    let name = format!("{NODES} nodes, {LOCKS} locks, {A_SECOND} per second");
    Ok(Measured::new(name, "wait for an entry", seconds, &samples))
}
