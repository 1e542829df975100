//! A node that stops does not free a lock before the command under it has ended.
//!
//! `SOLOIST_RUNS=20 cargo nextest run -p soloist --test lock stopping` runs each kind of command 20
//! times.

use crate::processes::{Cluster, NodeProcess};
use crate::{Running, until};

/// Prints its process id and ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.02; done";

/// Takes 400 ms to clean up on SIGTERM.
const TIDY: &str = "trap 'sleep 0.4; exit 0' TERM; echo $$; while :; do sleep 0.02; done";

fn runs() -> usize {
    let runs = std::env::var("SOLOIST_RUNS");
    runs.map_or(1, |runs| runs.parse().expect("SOLOIST_RUNS is a number"))
}

fn waiting(node: &NodeProcess, lock: &str) -> u64 {
    let output = node.soloist().args(["who", lock, "--json"]).output();
    let info: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    info["waiting"].as_u64().unwrap_or(0)
}

/// Runs the command under the lock on a node that stops, while another command waits for the same
/// lock on another node.
fn never_at_once(script: &str) {
    let cluster = Cluster::init(3, "raymond");
    let mut nodes = cluster.start_all();
    for run in 0..runs() {
        nodes[2].says("joined the epoch");
        let mut holder = Running::start(&mut nodes[2].lock("a", script));
        let command = holder.process().as_raw_pid();
        let look = format!("kill -0 {command} 2>/dev/null && echo both || echo alone");
        let mut next = Running::start(&mut nodes[0].lock("a", &look));
        until("the next one waits", || waiting(&nodes[0], "a") == 1);
        // The first signal starts the drain, the second ends it.
        nodes[2].end();
        nodes[2].says("stopping");
        nodes[2].end();
        assert_eq!(next.line(), "alone", "in run {run}");
        assert_eq!(next.code(), Some(0));
        assert_eq!(
            holder.code(),
            Some(76),
            "it was told that its node is stopping"
        );
        nodes[2].ended_well();
        nodes[2] = cluster.start(2, "");
        nodes[2].ready();
    }
    println!("{} runs, no two commands at once", runs());
}

#[test]
fn a_command_that_ignores_sigterm_never_runs_beside_the_next_one() {
    never_at_once(STUBBORN);
}

#[test]
fn a_command_that_cleans_up_never_runs_beside_the_next_one() {
    never_at_once(TIDY);
}
