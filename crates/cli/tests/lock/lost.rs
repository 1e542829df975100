//! The command ends if its lock is lost.

use std::time::Duration;

use crate::{Nodes, Running, runs, stderr};

const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.05; done";

#[test]
fn a_node_that_stops_ends_the_command() {
    let nodes = Nodes::start(2);
    // The time to live is an hour, so only the node's notification can be the reason.
    let mut command = nodes.lock(0, "--ttl 1h --grace 100ms a", STUBBORN);
    let mut running = Running::start(command.stderr(std::process::Stdio::piped()));
    let shell = running.process();
    nodes
        .runtime
        .block_on(nodes.served.cluster.nodes[0].stop(Duration::ZERO));
    assert_eq!(running.code(), Some(76));
    assert!(!runs(shell));
    let mut said = String::new();
    let mut pipe = running.child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut pipe, &mut said).unwrap();
    assert!(said.contains("node-stopped"), "{said}");
}

#[test]
fn a_command_that_ends_on_sigterm_is_not_killed() {
    let nodes = Nodes::start(1);
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let script = "trap 'echo asked > $NOTE; exit 0' TERM; echo $$; while :; do sleep 0.01; done";
    let mut command = nodes.lock(0, "--ttl 1h a", script);
    let mut running = Running::start(command.env("NOTE", &note));
    running.line();
    nodes
        .runtime
        .block_on(nodes.served.cluster.nodes[0].stop(Duration::ZERO));
    assert_eq!(running.code(), Some(76), "not the command's 0");
    assert_eq!(std::fs::read_to_string(note).unwrap(), "asked\n");
}

#[test]
fn a_node_that_is_silent_ends_the_command_before_another_gets_the_lock() {
    let mut nodes = Nodes::start(2);
    // The grace period is longer than the time to live: the time to live takes precedence.
    let mut running = Running::start(&mut nodes.lock(0, "--ttl 1500ms --grace 1h a", STUBBORN));
    let shell = running.process();
    nodes.cut(0);
    let next = nodes.lock(1, "a", "exit 0").output().unwrap();
    assert!(!runs(shell), "it ran while another held the lock");
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    assert_eq!(running.code(), Some(76));
}
