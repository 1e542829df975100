//! `soloist demo` and `soloist bench`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{stderr, stdout};

fn soloist(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(arguments).output().unwrap()
}

#[test]
fn the_demo_shows_that_nothing_overlapped() {
    let output = soloist(&["demo", "--seconds", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for word in ["5 nodes", "10 workers", "0 overlaps", "fences rise"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(text.lines().count() <= 13, "a short log: {text}");
    let output = soloist(&["demo", "--seconds", "1", "--verbose"]);
    let text = stdout(&output);
    let entries = text.lines().filter(|line| line.contains("inside"));
    assert!(entries.count() > 5, "{text}");
}

#[test]
fn the_demo_shows_a_kill_and_its_takeover() {
    let output = soloist(&["demo", "--kill", "--seconds", "4", "--lease", "1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let standing_out: Vec<&str> = text.lines().filter(|line| line.contains(">>>")).collect();
    let [kill, takeover, back] = standing_out[..] else {
        panic!("three lines stand out: {text}");
    };
    assert!(kill.contains("KILL") && kill.contains("n5"), "{text}");
    assert!(takeover.contains("TAKEOVER") && takeover.contains("after the kill"));
    assert!(back.contains("n5 was restarted"), "{text}");
    assert!(text.contains("0 overlaps"), "{text}");
    assert!(text.contains("counts from its last renewal"), "{text}");
}

#[test]
fn the_demo_counts_for_programs() {
    let arguments = "demo --seconds 1 --nodes 3 --workers 1 --algorithm maekawa --json";
    let output = soloist(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["overlaps"], 0);
    assert_eq!(summary["fences_rise"], true);
    assert_eq!(summary["counter"], summary["entries"]);
    assert!(summary["fewest_turns"].as_u64().unwrap() > 0, "{summary}");
    for wrong in ["--seconds=0", "--nodes=61", "--algorithm=nobodys"] {
        let output = soloist(&["demo", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}

/// Runs `soloist bench` with less work, and returns what it measured.
fn bench(arguments: &[&str]) -> Vec<Value> {
    let output = soloist(&[&["bench", "--quick", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn names(measured: &[Value]) -> Vec<&str> {
    let names = measured.iter();
    names.map(|one| one["workload"].as_str().unwrap()).collect()
}

#[test]
fn a_workload_is_measured_beside_its_floor() {
    let measured = bench(&["--only", "reacquire api"]);
    assert_eq!(names(&measured), ["tcp", "tls", "unix", "reacquire api"]);
    for one in &measured {
        assert!(one["operations"].as_u64().unwrap() > 0, "{one}");
        assert!(one["p50_us"].as_f64().unwrap() > 0.0, "{one}");
    }
    let ratio = &measured[3]["ratio"];
    assert_eq!(ratio["floor"], "unix");
    assert!(ratio["times"].as_f64().unwrap() > 0.0, "{ratio}");
}

#[test]
fn clients_of_node_processes_are_measured_beside_their_floors() {
    let measured = bench(&["--api", "--only", "one core: 5 clients"]);
    let expected = [
        "one core: unix",
        "one core: tcp",
        "one core: three hops",
        "one core: 5 clients, 1 lock",
        "one core: hand-over of 5 clients, 1 lock",
    ];
    assert_eq!(names(&measured), expected);
    let [.., entries, hand_over] = &measured[..] else {
        unreachable!("five were measured");
    };
    for cost in [
        "client_cpu_us",
        "node_cpu_us",
        "client_switches",
        "node_switches",
    ] {
        assert!(entries[cost].as_f64().unwrap() > 0.0, "{cost}: {entries}");
    }
    assert_eq!(entries["runs"], 3);
    assert!(entries["overtaken"].is_u64(), "{entries}");
    assert_eq!(entries["starved"], Value::Null);
    assert_eq!(hand_over["ratio"]["floor"], "one core: three hops");
}

#[test]
fn an_unknown_workload_is_refused() {
    let output = soloist(&["bench", "--quick", "--only", "reaquire"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("\"reaquire\""),
        "{}",
        stderr(&output)
    );
}

#[test]
fn no_node_outlives_a_demo_that_is_terminated() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .args(["demo", "--kill", "--seconds", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(demo.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let nodes = children(demo.id());
    assert_eq!(nodes.len(), 5, "{line}");
    kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(1));
    let alive = |pid: &&String| Path::new("/proc").join(pid).exists();
    assert_eq!(nodes.iter().find(alive), None);
}

/// The processes that this process has started.
fn children(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children = children.map(Result::unwrap).collect::<Vec<_>>().join(" ");
    children.split_whitespace().map(str::to_owned).collect()
}
