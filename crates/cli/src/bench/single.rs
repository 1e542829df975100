//! Workloads without contention.

use std::time::Instant;

use anyhow::{Context, Result};
use soloist_bench::{Measured, Samples};
use soloist_client::{Client, Guard, Locks, Target};
use soloist_core::rules::RuleSettings;
use soloist_node::http;
use soloist_node::local::{LocalCluster, LocalSettings};

const WHAT: &str = "acquire and release";

/// Number of nodes of the cluster.
pub(super) const NODES: usize = 5;
/// Number of clients that have a lock each.
pub(super) const CLIENTS: usize = 8;

/// Number of operations per measurement, where a single one is too short for the clock.
const BATCH: usize = 100;

pub(super) async fn cluster(
    nodes: usize,
    algorithm: &str,
    tls: bool,
) -> Result<(LocalCluster, tempfile::TempDir)> {
    let folder = tempfile::tempdir().context("cannot create a folder for sockets")?;
    let settings = LocalSettings {
        tls,
        ..LocalSettings::new(nodes, folder.path()).with_algorithm(algorithm)
    };
    Ok((LocalCluster::start(settings).await?, folder))
}

pub(super) async fn embedded(rounds: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(NODES, RuleSettings::ALGORITHM, true).await?;
    let lock = cluster.nodes[0].lock("bench")?;
    // Fetch the token first.
    lock.acquire().await?.release().await?;
    let mut samples = Samples::default();
    let begin = Instant::now();
    for _ in 0..rounds.div_ceil(BATCH) {
        let batch = Instant::now();
        for _ in 0..BATCH {
            lock.acquire().await?.release().await?;
        }
        samples.add(batch.elapsed() / BATCH as u32);
    }
    let seconds = begin.elapsed().as_secs_f64();
    cluster.stop().await;
    let mut measured = Measured::new("reacquire embedded", WHAT, seconds, &samples);
    measured.operations *= BATCH;
    measured.operations_per_second *= BATCH as f64;
    Ok(measured)
}

pub(super) async fn over_the_api(rounds: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(NODES, RuleSettings::ALGORITHM, true).await?;
    let server = http::serve(&cluster.nodes[0]).await?;
    let target = Target::parse(&format!("unix:{}", server.socket().display()))?;
    let client = Client::connect(target).await?;
    let lock = client.lock("bench")?;
    lock.acquire().await?.release().await?;
    let mut samples = Samples::default();
    let begin = Instant::now();
    for _ in 0..rounds {
        let asked = Instant::now();
        lock.acquire().await?.release().await?;
        samples.add(asked.elapsed());
    }
    let seconds = begin.elapsed().as_secs_f64();
    cluster.stop().await;
    server.stop().await;
    Ok(Measured::new("reacquire api", WHAT, seconds, &samples))
}

pub(super) async fn eight_locks(rounds: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(NODES, RuleSettings::ALGORITHM, true).await?;
    let begin = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let lock = cluster.nodes[client % NODES].lock(&format!("bench/{client}"));
        tokio::spawn(async move {
            let lock = lock?;
            let mut samples = Samples::default();
            for _ in 0..rounds / CLIENTS {
                let asked = Instant::now();
                lock.acquire().await?.release().await?;
                samples.add(asked.elapsed());
                tokio::task::consume_budget().await;
            }
            anyhow::Ok(samples)
        })
    });
    let mut samples = Samples::default();
    for client in clients.collect::<Vec<_>>() {
        samples.extend(client.await??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    cluster.stop().await;
    Ok(Measured::new("eight locks", WHAT, seconds, &samples))
}
