//! Workload: how long locks stand still during a change of epoch.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use soloist_bench::{Bound, Measured, Samples};
use soloist_core::rules::RuleSettings;
use soloist_node::{Guard, Locks};

use crate::bench::single::cluster;

/// A longer change means that something is wrong.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One of `nodes` nodes leaves while the others hold `locks` locks.
pub(super) async fn measure(nodes: usize, locks: usize, times: usize) -> Result<Measured> {
    let mut samples = Samples::default();
    let begin = Instant::now();
    for _ in 0..times {
        let (cluster, _folder) = cluster(nodes, RuleSettings::ALGORITHM, true).await?;
        let (leaver, stay) = cluster.nodes.split_last().context("there are nodes")?;
        let mut guards = Vec::with_capacity(locks);
        for number in 0..locks {
            let node = &stay[number % stay.len()];
            let lock = node.lock(&format!("bench/held/{number}"))?;
            guards.push(lock.acquire().await?);
        }
        let before = stay[0].epoch();
        leaver.stop(Duration::ZERO).await;
        let left = Instant::now();
        let is_over = || {
            let members = stay.iter();
            members
                .clone()
                .all(|node| node.epoch().is_some() && node.epoch() != before)
        };
        while !is_over() {
            ensure!(left.elapsed() < TIMEOUT, "the epoch does not change");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for node in stay {
            samples.add(node.standstill().context("the epoch was changed")?);
        }
        let lost = guards.iter().filter(|guard| guard.valid_for().is_zero());
        ensure!(lost.count() == 0, "holds were lost");
        drop(guards);
        cluster.stop().await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let name = format!("{}, {nodes} nodes, {locks} locks", super::CHANGE);
    let mut measured = Measured::new(name, "standstill on a node", seconds, &samples);
    measured.bound = Some(Bound {
        what: "500 ms".to_owned(),
        us: 500_000.0,
    });
    Ok(measured)
}
