//! Waiters that move to another node, and holders that die.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::processes::{Cluster, NodeProcess};
use crate::{Nodes, Running, TIMEOUT, runs, until};

/// `soloist lock` with several nodes, beginning with the first.
fn lock(nodes: &[&NodeProcess], options: &str, script: &str) -> Command {
    let mut command = nodes[0].lock(options, script);
    let sockets = nodes.iter().map(|node| node.socket.display().to_string());
    command.env("SOLOIST_API", sockets.collect::<Vec<_>>().join(","));
    command
}

/// The node on which a lock is waited for, if it is, as another node sees it.
fn waits_on(node: &NodeProcess, lock: &str) -> Option<String> {
    let output = node.soloist().args(["who", lock, "--json"]).output();
    let info: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).ok()?;
    Some(info["waiters"][0]["node"].as_str()?.to_owned())
}

#[test]
fn a_waiter_survives_a_rolling_restart_of_all_nodes() {
    let cluster = Cluster::init(3, "raymond");
    let mut nodes = cluster.start_all();
    let mut holder = Running::start(&mut nodes[2].lock("a", "echo in; exec sleep 1000"));
    holder.line();
    let mut waiter = Running::start(&mut lock(
        &[&nodes[0], &nodes[1], &nodes[2]],
        "-w 120 a",
        "echo in",
    ));
    until("it waits on the first node", || {
        waits_on(&nodes[2], "a").as_deref() == Some("n0")
    });
    for node in 0..3 {
        let other = (node + 1) % 3;
        nodes[node].end();
        nodes[node].says("stopping");
        if node < 2 {
            let next = format!("n{}", node + 1);
            until("it waits on the next node", || {
                waits_on(&nodes[other], "a").as_ref() == Some(&next)
            });
        } else {
            // The holder is on this node. The second signal ends the drain.
            nodes[node].end();
            assert_eq!(waiter.line(), "in");
        }
        nodes[node].ended_well();
        nodes[node] = cluster.start(node, "");
        nodes[node].ready();
        nodes[node].says("joined the epoch");
    }
    assert_eq!(waiter.code(), Some(0));
    assert_eq!(holder.code(), Some(76), "its node was stopped");
}

/// A waiter whose node is killed or stopped moves, and leaves nothing behind.
#[test]
fn a_waiter_moves_when_its_node_dies_or_is_cut_off() {
    let cluster = Cluster::init(3, "raymond");
    for signal in [Signal::KILL, Signal::STOP] {
        let nodes = cluster.start_all();
        for node in &nodes {
            node.says("joined the epoch");
        }
        let mut holder = nodes[2].lock("a", "echo in; read go; exit 0");
        let mut holder = Running::start(holder.stdin(std::process::Stdio::piped()));
        holder.line();
        let mut waiter = Running::start(&mut lock(&[&nodes[0], &nodes[1]], "-w 120 a", "echo in"));
        until("it waits", || {
            waits_on(&nodes[2], "a").as_deref() == Some("n0")
        });
        nodes[0].running.signal(signal);
        until("it waits on the other node", || {
            waits_on(&nodes[1], "a").as_deref() == Some("n1")
        });
        drop(holder.child.stdin.take());
        assert_eq!(holder.code(), Some(0));
        assert_eq!(waiter.line(), "in");
        assert_eq!(waiter.code(), Some(0));
        // The node that was stopped comes back, and holds nothing.
        if signal == Signal::STOP {
            nodes[0].running.signal(Signal::CONT);
        }
        let free = nodes[2].lock("-w 60 a", "exit 0").status().unwrap();
        assert_eq!(free.code(), Some(0));
    }
}

#[test]
fn the_first_node_that_answers_is_used() {
    let nodes = Nodes::start(1);
    let mut command = nodes.soloist(0);
    let socket = nodes.served.socket(0).display().to_string();
    command.args(["lock", "--api", "/no/such.sock", "--api", &socket]);
    let status = command.args(["a", "--", "sh", "-c", "exit 3"]).status();
    assert_eq!(status.unwrap().code(), Some(3));
    let mut command = nodes.soloist(0);
    command.args(["lock", "--api", "/no/such.sock,/no/other.sock", "a", "true"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(69));
    let said = crate::stderr(&output);
    assert!(
        said.contains("/no/such.sock") && said.contains("/no/other.sock"),
        "{said}"
    );
}

/// Takes 400 ms to clean up on SIGTERM, and then writes the time.
const TIDY: &str = "trap 'sleep 0.4; date +%s%N > $ENDED; exit 0' TERM; echo $$; \
                    while :; do sleep 0.01; done";

/// The next one enters when the command has ended, and not when the time to live is over. Within
/// 100 ms, in at least one of a few runs: this machine may be busy.
#[test]
fn a_killed_lock_is_free_as_soon_as_its_command_has_ended() {
    let nodes = Nodes::start(2);
    let folder = tempfile::tempdir().unwrap();
    let ended = folder.path().join("ended");
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let mut command = nodes.lock(0, "--ttl 1h a", TIDY);
        let mut holder = Running::start(command.env("ENDED", &ended));
        let shell = holder.process();
        let mut next = Running::start(&mut nodes.lock(1, "a", "date +%s%N"));
        until("it waits", || nodes.waiting("a") == 1);
        holder.signal(Signal::KILL);
        let entered: u64 = next.line().parse().unwrap();
        assert!(!runs(shell), "it ran while another held the lock");
        assert_eq!(next.code(), Some(0));
        let ended: u64 = fs::read_to_string(&ended).unwrap().trim().parse().unwrap();
        let late = Duration::from_nanos(entered.checked_sub(ended).expect("not before the end"));
        assert!(late < TIMEOUT, "{late:?}");
        fastest = fastest.min(late);
        if fastest < Duration::from_millis(100) {
            println!("the next one entered {fastest:?} after the end");
            return;
        }
    }
    panic!("the next one entered {fastest:?} after the end, at the earliest");
}

#[test]
fn a_killed_waiter_leaves_the_queue_at_once() {
    let nodes = Nodes::start(2);
    let mut holder = nodes.lock(1, "a", "echo in; read go; exit 0");
    let mut holder = Running::start(holder.stdin(std::process::Stdio::piped()));
    holder.line();
    let waiter = Running::start(&mut nodes.lock(0, "--ttl 1h a", "echo in"));
    until("it waits", || nodes.waiting("a") == 1);
    waiter.signal(Signal::KILL);
    until("it has left the queue", || nodes.waiting("a") == 0);
    drop(holder.child.stdin.take());
    assert_eq!(holder.code(), Some(0));
}
