//! `soloist node` that panics exits with a code of its own.

use std::fs::{self, File};
use std::process::Command;

use crate::processes::Cluster;
use crate::{Running, until};

#[test]
fn a_node_that_panics_ends_and_says_so() {
    for (mutant, says) in [
        ("panic-in-state", "its state machine panicked"),
        (
            "panic-in-leader",
            "the leader's task panicked: a planted fault",
        ),
    ] {
        let cluster = Cluster::init(1, "raymond");
        let log = cluster.file(0, "log");
        let said = || fs::read_to_string(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.arg("node").arg("--config");
        command.arg(cluster.file(0, "soloist.toml"));
        command.env("SOLOIST_MUTANT", mutant);
        command.stderr(File::create(&log).unwrap());
        let mut node = Running::start(&mut command);
        if mutant == "panic-in-state" {
            until("it is a member", || said().contains("joined the epoch"));
            let mut lock = Command::new(env!("CARGO_BIN_EXE_soloist"));
            lock.env("SOLOIST_API", cluster.file(0, "soloist.sock"));
            let lock = lock.args(["lock", "a", "true"]).output().unwrap();
            assert_ne!(lock.status.code(), Some(0));
        }
        assert_eq!(node.code(), Some(70), "{}", said());
        assert!(said().contains("error: the node has failed"), "{}", said());
        assert!(said().contains(says), "{}", said());
    }
}
