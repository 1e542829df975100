//! `soloist node` that is told to stop.

use std::time::Duration;

use rustix::process::Signal;
use soloist_client::{ClientGuard, Fence, Guard, Locks};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::processes::{Cluster, NodeProcess};
use crate::{Running, TIMEOUT, stderr, until};

const STAYS: &str = "echo in; exec sleep 1000";

/// Waits until a hold is renewed once more.
async fn renewed(guard: &ClientGuard) {
    let renewed = guard.renewed_after(guard.valid_until());
    timeout(TIMEOUT, renewed).await.expect("it is renewed");
}

/// Number of waiters of a lock.
fn waiting(node: &NodeProcess, lock: &str) -> u64 {
    let output = node.soloist().args(["who", lock, "--json"]).output();
    let info: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    info["waiting"].as_u64().unwrap()
}

#[test]
fn a_stopping_node_keeps_its_holds() {
    let cluster = Cluster::init(2, "raymond");
    let mut nodes = cluster.start_all();
    let runtime = Runtime::new().unwrap();
    let guard = runtime.block_on(async {
        let client = nodes[0].client_with_ttl(Duration::from_millis(900)).await;
        client.lock("a").unwrap().acquire().await.unwrap()
    });
    let mut waits = Running::start(&mut nodes[1].lock("a", "echo $SOLOIST_FENCE"));
    until("a waiter on another node", || waiting(&nodes[1], "a") == 1);

    nodes[0].end();
    nodes[0].says("stopping");
    let late = nodes[0].lock("b", "exit 0").output().unwrap();
    assert_eq!(late.status.code(), Some(69), "no new grants");
    assert!(stderr(&late).contains("is stopping"), "{}", stderr(&late));
    // Twice: the first renewal may have been in flight before the signal.
    runtime.block_on(renewed(&guard));
    runtime.block_on(renewed(&guard));
    assert_eq!(nodes[0].running.child.try_wait().unwrap(), None);

    let fence = guard.fence();
    runtime.block_on(guard.release()).unwrap();
    nodes[0].ended_well();
    // The lock was granted to the next waiter before the node left.
    assert!(waits.line().parse::<Fence>().unwrap() > fence);
    assert_eq!(waits.code(), Some(0));
}

#[test]
fn a_command_under_the_lock_runs_to_completion() {
    let cluster = Cluster::init(1, "raymond");
    let mut nodes = cluster.start_all();
    let mut command = nodes[0].lock("a", "echo in; read go; exit 7");
    let mut holder = Running::start(command.stdin(std::process::Stdio::piped()));
    holder.line();
    nodes[0].end();
    nodes[0].says("stopping");
    drop(holder.child.stdin.take());
    assert_eq!(holder.code(), Some(7));
    nodes[0].ended_well();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for signals in [
        [Signal::TERM, Signal::TERM],
        [Signal::TERM, Signal::INT],
        [Signal::INT, Signal::INT],
    ] {
        let cluster = Cluster::init(1, "raymond");
        let mut node = cluster.start(0, "--drain 1h");
        node.ready();
        let mut holder = Running::start(&mut node.lock("--ttl 1h a", STAYS));
        holder.line();
        node.running.signal(signals[0]);
        node.says("stopping");
        assert_eq!(node.running.child.try_wait().unwrap(), None);
        node.running.signal(signals[1]);
        node.ended_well();
        assert!(node.log().contains("second signal"), "{}", node.log());
        assert_eq!(holder.code(), Some(76), "its lock is lost");
    }
}

#[test]
fn holds_that_do_not_end_in_time_are_lost() {
    let cluster = Cluster::init(1, "raymond");
    let mut node = cluster.start(0, "--drain 200ms");
    node.ready();
    let mut command = node.lock("--ttl 1h a", STAYS);
    let mut holder = Running::start(command.stderr(std::process::Stdio::piped()));
    holder.line();
    node.end();
    node.ended_well();
    assert_eq!(holder.code(), Some(76));
    let mut said = String::new();
    let mut pipe = holder.child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut pipe, &mut said).unwrap();
    assert!(said.contains("node-stopped"), "{said}");
}

#[test]
fn a_node_without_holds_stops_immediately() {
    let cluster = Cluster::init(1, "raymond");
    for signal in [Signal::TERM, Signal::INT] {
        let mut node = cluster.start(0, "--drain 1h");
        node.ready();
        node.running.signal(signal);
        node.ended_well();
    }
}
