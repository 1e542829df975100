//! `soloist lab swarm`.

use serde_json::Value;

use super::{json, lab};

#[test]
fn a_swarm_runs_every_algorithm_and_repeats_itself() {
    let arguments = "swarm --runs 78 --seed 3";
    let swarm = json(&format!("{arguments} --json"));
    assert_eq!(swarm["runs"], 78);
    assert_eq!(swarm["failures"].as_array().map(Vec::len), Some(0));
    let algorithms = swarm["algorithms"].as_array().unwrap();
    assert_eq!(
        algorithms.len(),
        json("list --json").as_array().unwrap().len()
    );
    for tally in algorithms {
        assert_eq!(tally["runs"], 6, "{tally}");
        assert!(tally["entries"].as_u64() > Some(0), "{tally}");
        assert_eq!(tally["violations"], 0);
        assert_eq!(tally["unserved"], 0);
    }
    assert_eq!(swarm, json(&format!("{arguments} --json")));
    let table = String::from_utf8(lab(arguments).stdout).unwrap();
    assert_eq!(table.lines().count(), 1 + algorithms.len() + 1);
    assert!(table.lines().last().unwrap().starts_with("all"), "{table}");
}

#[test]
fn a_swarm_stops_in_time() {
    let swarm = json("swarm --minutes 0.001 --json");
    let runs = swarm["runs"].as_u64().unwrap();
    assert!(runs > 0 && runs < 1_000_000, "{runs}");
    let fewer = json("swarm --minutes 100 --runs 5 --json");
    assert_eq!(fewer["runs"], 5);
}

/// Raymond's recovery as printed: the swarm finds the fault, and the printed command repeats it.
#[test]
fn a_failed_run_of_a_swarm_is_repeated_by_its_command() {
    let arguments = "swarm --algorithm raymond --variant as-published --runs 60";
    let output = lab(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let command = stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("soloist lab "));
    let command = command.expect("a command that repeats it");
    let repeated = lab(command);
    assert_eq!(repeated.status.code(), Some(1), "{command}: {repeated:?}");

    let output = lab(&format!("{arguments} --json"));
    let swarm: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failures = swarm["failures"].as_array().unwrap();
    assert_eq!(swarm["algorithms"][0]["failed"], failures.len());
    for failure in failures {
        let command = failure["command"].as_str().unwrap();
        let repeated = lab(&format!(
            "{} --json",
            command.strip_prefix("soloist lab ").unwrap()
        ));
        assert_eq!(repeated.status.code(), Some(1), "{command}");
        let report: Value = serde_json::from_slice(&repeated.stdout).unwrap();
        assert_eq!(report["seed"], failure["seed"]);
        assert!(report["crashes"].as_u64() > Some(0), "{command}");
    }
}
