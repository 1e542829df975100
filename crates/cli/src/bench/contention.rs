//! Workload: one lock that all nodes want.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use soloist_bench::{Measured, Samples};
use soloist_core::rules::RuleSettings;
use soloist_node::{Guard, Locks};
use tokio::sync::Barrier;

use super::single::cluster;

/// Algorithm, number of nodes, and whether links use TLS.
pub(super) const CASES: [(&str, usize, bool); 8] = [
    ("naimi-trehel", 5, true),
    ("naimi-trehel", 5, false),
    ("raymond", 5, true),
    ("raymond", 5, false),
    ("naimi-trehel", 27, true),
    ("raymond", 27, true),
    ("chaudhuri-karaata", 27, true),
    ("maekawa", 27, true),
];

pub(super) fn name(algorithm: &str, nodes: usize, tls: bool) -> String {
    let plain = if tls { "" } else { ", without TLS" };
    format!("contended {nodes}, {algorithm}{plain}")
}

/// Time and node of the last release, and the delays from a release to the next entry on another
/// node.
#[derive(Default)]
struct HandOvers {
    released: Option<(usize, Instant)>,
    samples: Samples,
}

/// Measures the wait per entry, and the hand-overs between nodes.
pub(super) async fn measure(
    algorithm: &str,
    nodes: usize,
    tls: bool,
    entries: usize,
) -> Result<[Measured; 2]> {
    let (cluster, _folder) = cluster(nodes, algorithm, tls).await?;
    // Warm up: all links are open and every node has had a turn before the measurement starts.
    for node in &cluster.nodes {
        node.lock("bench")?.acquire().await?.release().await?;
    }
    let sent_before = sent(&cluster);
    let hand_overs = Arc::new(Mutex::new(HandOvers::default()));
    let left = Arc::new(AtomicUsize::new(entries));
    // Without it, the first clients may be done before the last ones run.
    let start = Arc::new(Barrier::new(2 * nodes));
    let begin = Instant::now();
    let mut clients = Vec::new();
    for (number, node) in cluster.nodes.iter().chain(&cluster.nodes).enumerate() {
        let number = number % nodes;
        let lock = node.lock("bench")?;
        let (hand_overs, left) = (Arc::clone(&hand_overs), Arc::clone(&left));
        let start = Arc::clone(&start);
        clients.push(tokio::spawn(async move {
            start.wait().await;
            let mut waits = Samples::default();
            let take = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
            {
                let asked = Instant::now();
                let guard = lock.acquire().await?;
                let now = Instant::now();
                waits.add(now - asked);
                {
                    let mut hand_overs = hand_overs
                        .lock()
                        .expect("no thread panics while it has the mutex");
                    if let Some((node, released)) = hand_overs.released.take()
                        && node != number
                    {
                        hand_overs.samples.add(now - released);
                    }
                    hand_overs.released = Some((number, Instant::now()));
                }
                guard.release().await?;
                // Let other clients run, as they would if each node had a machine of its own.
                tokio::task::yield_now().await;
            }
            anyhow::Ok(waits)
        }));
    }
    let mut waits = Samples::default();
    for client in clients {
        waits.extend(client.await??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let messages = (sent(&cluster) - sent_before) as f64 / waits.len() as f64;
    cluster.stop().await;
    let name = name(algorithm, nodes, tls);
    let mut entries = Measured::new(name.clone(), "wait for an entry", seconds, &waits);
    entries.messages = Some(messages);
    let samples = std::mem::take(
        &mut hand_overs
            .lock()
            .expect("no thread panics while it has the mutex")
            .samples,
    );
    entries.starved = starved(waits.len(), samples.len(), RuleSettings::LOCAL_TURNS);
    let hand_over = name.replace("contended", "hand-over");
    let hand_over = Measured::new(
        hand_over,
        "release to next entry on another node",
        seconds,
        &samples,
    );
    Ok([entries, hand_over])
}

/// Returns the share of entries that came from another node than the one before, if it is so small
/// that most nodes cannot have taken part: all want the lock all the time, and a node passes it on
/// after a fixed number of turns.
pub(super) fn starved(entries: usize, hand_overs: usize, max_local_turns: u32) -> Option<f64> {
    let is_starved = hand_overs * max_local_turns as usize * 2 < entries;
    is_starved.then(|| hand_overs as f64 / entries as f64)
}

fn sent(cluster: &soloist_node::local::LocalCluster) -> u64 {
    let links = cluster.nodes.iter().flat_map(|node| node.links());
    links.map(|link| link.frames_sent).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_one_node_kept_the_lock_is_starved() {
        assert_eq!(starved(2000, 20, 8), Some(0.01));
        assert_eq!(starved(2000, 250, 8), None);
        assert_eq!(starved(2000, 250, 1), Some(0.125));
    }
}
