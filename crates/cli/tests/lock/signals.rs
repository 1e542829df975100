//! `soloist lock` passes signals on to its command.

use std::process::Command;

use rustix::process::Signal;

use crate::{Nodes, Running, until};

const PASSED_ON: [(Signal, &str); 6] = [
    (Signal::INT, "INT"),
    (Signal::TERM, "TERM"),
    (Signal::HUP, "HUP"),
    (Signal::QUIT, "QUIT"),
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
];

#[test]
fn signals_reach_the_command_which_decides_what_comes_of_them() {
    let nodes = Nodes::start(1);
    for (signal, name) in PASSED_ON {
        let script = format!("trap 'exit 40' {name}; echo ready; while :; do sleep 0.01; done");
        let mut running = Running::start(&mut nodes.lock(0, "a", &script));
        running.line();
        running.signal(signal);
        assert_eq!(running.code(), Some(40), "{name}");
    }
}

#[test]
fn a_command_killed_by_a_signal_exits_with_128_plus_its_number() {
    let nodes = Nodes::start(1);
    for (signal, name) in PASSED_ON {
        let mut running = Running::start(&mut nodes.lock(0, "a", "echo ready; exec sleep 1000"));
        running.line();
        running.signal(signal);
        assert_eq!(running.code(), Some(128 + signal.as_raw()), "{name}");
    }
}

#[test]
fn signals_reach_the_whole_group() {
    let nodes = Nodes::start(1);
    // The inner shell is a grandchild; the outer one waits for it and exits with its code.
    let script = "trap : TERM
        sh -c 'trap \"exit 41\" TERM; echo ready; while :; do sleep 0.01; done' & child=$!
        wait $child; code=$?
        while [ $code -gt 128 ]; do wait $child; code=$?; done
        exit $code";
    let mut running = Running::start(&mut nodes.lock(0, "a", script));
    running.line();
    running.signal(Signal::TERM);
    assert_eq!(running.code(), Some(41));
}

#[test]
fn a_signal_while_waiting_ends_the_waiting() {
    let nodes = Nodes::start(2);
    let mut holder = Running::start(&mut nodes.lock(0, "a", "echo in; exec sleep 1000"));
    holder.line();
    for (signal, name) in PASSED_ON {
        let mut waiter = Running::start(&mut nodes.lock(1, "a", "exit 0"));
        until("it waits", || nodes.waiting("a") == 1);
        waiter.signal(signal);
        assert_eq!(waiter.code(), Some(128 + signal.as_raw()), "{name}");
        until("it left the queue", || nodes.waiting("a") == 0);
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let nodes = Nodes::start(1);
    let inner = nodes.lock(0, "a", "echo $$; read go; exit 6");
    let mut outer = Command::new("sh");
    outer
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .envs(
            inner
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .stdin(std::process::Stdio::piped());
    let mut running = Running::start(&mut outer);
    let command = running.process();
    running.signal(Signal::HUP);
    rustix::process::kill_process(command, Signal::HUP).unwrap();
    drop(running.child.stdin.take());
    assert_eq!(running.code(), Some(6));
}
