//! `soloist demo` and `soloist bench`.

use std::process::{Command, Output};

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

#[test]
fn a_workload_is_measured_beside_its_floor() {
    let output = soloist(&["bench", "--quick", "--json", "--only", "reacquire api"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let measured: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = measured
        .iter()
        .map(|one| one["workload"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["tcp", "tls", "unix", "reacquire api"]);
    for one in &measured {
        assert!(one["operations"].as_u64().unwrap() > 0, "{one}");
        assert!(one["p50_us"].as_f64().unwrap() > 0.0, "{one}");
    }
    let ratio = &measured[3]["ratio"];
    assert_eq!(ratio["floor"], "unix");
    assert!(ratio["times"].as_f64().unwrap() > 0.0, "{ratio}");
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
