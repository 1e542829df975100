//! A node that drains, dies or hangs does not free a lock before the command under it has ended.
//! The same for a node that is cut off is in `tests/faults/commands.rs`.
//!
//! `SOLOIST_RUNS=20 cargo nextest run -p soloist --test lock stopping` runs each kind of command 20
//! times.

use rustix::process::Signal;
use soloist_testing::scripts::{QUICK, STUBBORN, TIDY, look_for};

use crate::processes::{Cluster, NodeProcess};
use crate::{Running, until};

fn runs() -> usize {
    let runs = std::env::var("SOLOIST_RUNS");
    runs.map_or(1, |runs| runs.parse().expect("SOLOIST_RUNS is a number"))
}

fn waiting(node: &NodeProcess, lock: &str) -> u64 {
    let output = node.soloist().args(["who", lock, "--json"]).output();
    let info: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    info["waiting"].as_u64().unwrap_or(0)
}

/// What happens to the node of the command.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It is told to stop, and to stop draining.
    Drain,
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
}

/// Runs the command under the lock on a node that fails, while another command waits for the same
/// lock on another node.
fn never_at_once(script: &str, fault: Fault) {
    let cluster = Cluster::init(3, "raymond");
    let mut nodes = cluster.start_all();
    for run in 0..runs() {
        nodes[2].says("joined the epoch");
        let mut holder = Running::start(&mut nodes[2].lock("a", script));
        let command = holder.process().as_raw_pid();
        let mut next = Running::start(&mut nodes[0].lock("a", &look_for(command)));
        until("the next one waits", || waiting(&nodes[0], "a") == 1);
        match fault {
            // The first signal starts the drain, the second ends it.
            Fault::Drain => {
                nodes[2].end();
                nodes[2].says("stopping");
                nodes[2].end();
            }
            Fault::Kill => nodes[2].running.signal(Signal::KILL),
            Fault::Stop => nodes[2].running.signal(Signal::STOP),
        }
        assert_eq!(next.line(), "alone", "in run {run}");
        assert_eq!(next.code(), Some(0));
        assert_eq!(holder.code(), Some(76), "it has lost its lock");
        if fault == Fault::Drain {
            nodes[2].ended_well();
        }
        drop(nodes.pop());
        nodes.push(cluster.start(2, ""));
        nodes[2].ready();
    }
    println!("{} runs, no two commands at once", runs());
}

#[test]
fn a_command_that_ignores_sigterm_never_runs_beside_the_next_one() {
    never_at_once(STUBBORN, Fault::Drain);
}

#[test]
fn a_command_that_cleans_up_never_runs_beside_the_next_one() {
    never_at_once(TIDY, Fault::Drain);
}

#[test]
fn a_command_that_ends_at_once_never_runs_beside_the_next_one() {
    never_at_once(QUICK, Fault::Drain);
}

#[test]
fn no_command_runs_beside_the_next_one_when_its_node_is_killed() {
    for script in [QUICK, TIDY, STUBBORN] {
        never_at_once(script, Fault::Kill);
    }
}

#[test]
fn no_command_runs_beside_the_next_one_when_its_node_hangs() {
    for script in [QUICK, TIDY, STUBBORN] {
        never_at_once(script, Fault::Stop);
    }
}
