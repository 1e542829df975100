//! A process whose main thread has ended runs on in its other threads. No such process outlives the
//! lock.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};
use soloist_testing::programs;

use crate::{Nodes, Running, runs, until};

/// Prints its process id, ignores SIGTERM, and goes on without its main thread.
const THREADED: &str = r#"
import ctypes, os, signal, threading, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
"#;

/// A command that leaves such a process behind when its standard input ends. `None` if the test is
/// left out.
fn leaves_it_behind(nodes: &Nodes) -> Option<(Running, Pid)> {
    if !programs::has("python3") {
        return None;
    }
    let script = r#"python3 -c "$THREADED" & read go; exit 4"#;
    let mut command: Command = nodes.lock(0, "--ttl 1h --grace 100ms a", script);
    command.env("THREADED", THREADED).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let process = running.process();
    until("its main thread has ended", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
        stat.is_ok_and(|stat| stat.contains(") Z "))
    });
    assert!(runs(process));
    Some((running, process))
}

#[test]
fn threads_that_are_left_behind_are_ended_before_the_lock_is_released() {
    let nodes = Nodes::start(1);
    let Some((mut running, process)) = leaves_it_behind(&nodes) else {
        return;
    };
    drop(running.child.stdin.take());
    let next = nodes.lock(0, "a", "exit 0").status().unwrap();
    assert!(!runs(process), "it ran while another held the lock");
    assert_eq!((next.code(), running.code()), (Some(0), Some(4)));
}

#[test]
fn threads_are_ended_before_the_lock_of_a_killed_parent_is_free() {
    let nodes = Nodes::start(1);
    let Some((running, process)) = leaves_it_behind(&nodes) else {
        return;
    };
    running.signal(Signal::KILL);
    let next = nodes.lock(0, "a", "exit 0").status().unwrap();
    assert!(!runs(process), "it ran while another held the lock");
    assert_eq!(next.code(), Some(0));
}
