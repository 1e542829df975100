//! No process of a command outlives the lock.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process};
use soloist_testing::http_get::metric;

use crate::{Nodes, Running, runs, until};

/// A shell that prints its process id and ignores SIGTERM and SIGHUP.
const STUBBORN: &str = "sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 0.05; done'";

#[test]
fn leftover_processes_are_ended_before_the_lock_is_released() {
    let nodes = Nodes::start(1);
    let mut running = Running::start(&mut nodes.lock(0, "a", "sleep 1000 & echo $!; exit 4"));
    let left_behind = running.process();
    assert_eq!(running.code(), Some(4));
    assert!(!runs(left_behind));
}

#[test]
fn a_command_that_does_not_end_is_killed_after_the_grace_period_and_held_until_then() {
    let nodes = Nodes::start(2);
    // The grace period is longer than the time to live: the lock is renewed during it.
    let script = format!("{STUBBORN} & read go; exit 4");
    let mut command = nodes.lock(0, "--grace 700ms --ttl 500ms a", &script);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let left_behind = running.process();
    let began = Instant::now();
    drop(running.child.stdin.take());
    let next = nodes.lock(1, "a", "exit 0").status().unwrap();
    assert!(!runs(left_behind), "it ran while another held the lock");
    assert_eq!(next.code(), Some(0));
    assert!(began.elapsed() >= Duration::from_millis(700));
    assert_eq!(running.code(), Some(4));
}

#[test]
fn children_may_outlive_the_lock_on_request() {
    let nodes = Nodes::start(1);
    let script = "sleep 1000 >/dev/null & echo $!; exit 4";
    let mut running = Running::start(&mut nodes.lock(0, "--leave-children a", script));
    let left_behind = running.process();
    assert_eq!(running.code(), Some(4));
    assert!(runs(left_behind));
    kill_process(left_behind, Signal::KILL).unwrap();
}

#[test]
fn nothing_survives_its_parent_by_more_than_the_time_to_live() {
    let nodes = Nodes::start(2);
    let script = format!("{STUBBORN} & exec {STUBBORN}");
    for signal in [Signal::KILL, Signal::STOP] {
        let mut running = Running::start(&mut nodes.lock(0, "--ttl 1s a", &script));
        let (one, other) = (running.process(), running.process());
        assert!(runs(one) && runs(other));
        running.signal(signal);
        let next = nodes.lock(1, "a", "exit 0").status().unwrap();
        assert!(!runs(one) && !runs(other), "ran while another held it");
        assert_eq!(next.code(), Some(0));
    }
}

#[test]
fn a_command_whose_parent_was_killed_gets_sigterm_first() {
    let nodes = Nodes::start(1);
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let script = "trap 'echo asked > $NOTE; exit' TERM; echo $$; while :; do sleep 0.01; done";
    let mut command = nodes.lock(0, "--ttl 1h a", script);
    let mut running = Running::start(command.env("NOTE", &note));
    let shell = running.process();
    running.signal(Signal::KILL);
    until("the command has ended", || !runs(shell));
    assert_eq!(std::fs::read_to_string(note).unwrap(), "asked\n");
}

#[test]
fn a_command_in_a_group_of_its_own_is_ended_too() {
    let nodes = Nodes::start(1);
    let mut command = nodes.soloist(0);
    // `setsid` makes the process the leader of a new session, and of a new process group. It does
    // not fork for that, because the process does not lead a group yet.
    command.args(["lock", "--ttl", "1h", "--grace", "100ms", "a"]);
    command.args([
        "setsid",
        "sh",
        "-c",
        "trap '' TERM; echo $$; while :; do sleep 0.05; done",
    ]);
    let mut running = Running::start(&mut command);
    let shell = running.process();
    assert_eq!(getpgid(Some(shell)), Ok(shell));
    running.signal(Signal::KILL);
    until("the command has ended", || !runs(shell));
}

/// Kills `soloist lock` at several moments while it starts a command that leaves its group.
#[test]
fn a_lock_is_free_at_once_if_its_parent_is_killed_while_it_starts_the_command() {
    let nodes = Nodes::start(1);
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = "trap '' TERM; echo $$ >> $PIDS; while :; do sleep 0.05; done";
    for run in 0..10 {
        let mut command = nodes.soloist(0);
        command.args(["lock", "--ttl", "1h", "--grace", "100ms", "a"]);
        command.args(["setsid", "sh", "-c", script]);
        let running = Running::start(command.env("PIDS", &pids));
        // The guard process, and the one that becomes the command.
        while children(&running) < 2 {
            sleep(Duration::from_micros(20));
        }
        sleep(Duration::from_micros(200) * run);
        running.signal(Signal::KILL);
        let next = nodes.lock(0, "-w 10 a", "exit 0").status().unwrap();
        assert_eq!(next.code(), Some(0), "the lock is held after run {run}");
        for pid in std::fs::read_to_string(&pids).unwrap_or_default().lines() {
            let command = Pid::from_raw(pid.parse().unwrap()).unwrap();
            assert!(!runs(command), "it ran while another held the lock");
        }
    }
}

/// Number of processes that the main thread of a process has started and not reaped.
fn children(of: &Running) -> usize {
    let process = of.child.id();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.unwrap().split_whitespace().count()
}

#[test]
fn the_command_does_not_run_on_without_its_guard() {
    let nodes = Nodes::start(1);
    let mut running = Running::start(&mut nodes.lock(0, "a", "echo $$; exec sleep 1000"));
    let command = running.process();
    let guard = guard_of(command);
    assert_ne!(getpgid(Some(guard)), getpgid(Some(command)));
    kill_process(guard, Signal::KILL).unwrap();
    assert_eq!(running.code(), Some(128 + 15));
    assert!(!runs(command));
}

/// The guard process of a command: the parent of the leader of the command's group.
pub(crate) fn guard_of(command: Pid) -> Pid {
    let leader = getpgid(Some(command)).unwrap();
    assert_ne!(leader, command);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", leader.as_raw_pid())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let parent = fields.split(' ').nth(1).unwrap().parse().unwrap();
    Pid::from_raw(parent).unwrap()
}

#[test]
fn the_guard_process_ends_with_the_command() {
    let nodes = Nodes::start(1);
    let mut command = nodes.lock(0, "a", "echo $$; read go");
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let command = running.process();
    let (guard, leader) = (guard_of(command), getpgid(Some(command)).unwrap());
    drop(running.child.stdin.take());
    running.code();
    until("both have ended", || !runs(guard) && !runs(leader));
}

#[test]
fn the_session_ends_with_soloist_lock() {
    let nodes = Nodes::start(1);
    let sessions = || metric(nodes.served.socket(0), "soloist_sessions") as usize;
    let status = nodes.lock(0, "--ttl 1h a", "exit 3").status().unwrap();
    assert_eq!(status.code(), Some(3));
    until("its session has ended", || sessions() == 0);
    let mut holder = nodes.lock(0, "--ttl 1h a", "echo in; read go");
    let mut holder = Running::start(holder.stdin(Stdio::piped()));
    holder.line();
    let status = nodes.lock(0, "--ttl 1h -n a", "exit 3").status().unwrap();
    assert_eq!(status.code(), Some(75));
    until("only the holder has a session", || sessions() == 1);
    let mut waiter = Running::start(&mut nodes.lock(0, "--ttl 1h a", "exit 3"));
    until("it waits", || nodes.waiting("a") == 1);
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.code(), Some(128 + 15));
    until("only the holder has a session", || sessions() == 1);
}
