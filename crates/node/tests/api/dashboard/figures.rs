//! What an open dashboard costs: memory, and entries per second. Prints figures for
//! docs/dashboard.md.

use std::time::{Duration, Instant};

use serde_json::json;
use soloist_api::session::NodeMessage;
use soloist_node::Locks;

use super::next;
use crate::cluster::{Served, served};
use crate::http::resident;
use crate::sessions::Socket;

const NODES: usize = 3;
const LOCKS: usize = 10_000;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 8;

/// Follows the cluster as a page does: everything, twenty rows of the list, and one lock.
async fn open_page(served: &Served) -> Socket {
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    socket.send(json!({ "follow": { "n": 1 } })).await;
    socket.send(json!({ "list": { "n": 2, "rows": 20 } })).await;
    let watch = json!({ "n": 3, "all": true, "prefix": "live-00000" });
    socket.send(json!({ "watch": watch })).await;
    next(&mut socket, |message| {
        matches!(message, NodeMessage::Listed(_)).then_some(())
    })
    .await;
    socket
}

/// Enters a lock on the node of the page, one entry after the other. Returns the entries per
/// second.
async fn entries(served: &Served) -> f64 {
    let lock = served.cluster.nodes[0].lock("busy").unwrap();
    let (begin, mut entries) = (Instant::now(), 0);
    while begin.elapsed() < ROUND {
        drop(lock.acquire().await.unwrap());
        entries += 1;
        tokio::task::yield_now().await;
    }
    f64::from(entries) / begin.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]) / 2.0
}

fn mib(bytes: f64) -> f64 {
    bytes / 1024.0 / 1024.0
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures for docs/dashboard.md"]
async fn cost_of_an_open_dashboard() {
    let served = served(NODES).await;
    let empty = resident();
    let node = &served.cluster.nodes[0];
    let mut guards = Vec::new();
    for index in 0..LOCKS {
        let lock = node.lock(&format!("live-{index:05}")).unwrap();
        guards.push(lock.acquire().await.unwrap());
    }
    // The events and seconds that a node keeps anyway.
    entries(&served).await;
    let before = resident();
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    let mut after = before;
    for round in 0..ROUNDS {
        // In turns, because the machine is not equally fast all the time.
        if round % 2 == 0 {
            alone.push(entries(&served).await);
        }
        let mut page = open_page(&served).await;
        let reading = tokio::spawn(async move {
            loop {
                page.next().await;
            }
        });
        watched.push(entries(&served).await);
        after = resident().max(after);
        reading.abort();
        if round % 2 == 1 {
            alone.push(entries(&served).await);
        }
    }
    println!(
        "{NODES} nodes in one process, {LOCKS} live locks: {:.1} MiB, of which the locks {:.1} MiB; \
         {:.1} MiB more with an open dashboard",
        mib(before),
        mib(before - empty),
        mib(after - before)
    );
    let (least, most) = (alone.iter(), alone.iter());
    let least = least.copied().fold(f64::INFINITY, f64::min);
    let most = most.copied().fold(0.0, f64::max);
    println!(
        "entries per second, medians of {ROUNDS} rounds of {ROUND:?}: {:.0} without a dashboard \
         ({least:.0} to {most:.0}), {:.0} with one",
        median(alone),
        median(watched)
    );
    drop(guards);
    served.stop().await;
}
