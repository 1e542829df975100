//! `soloist lab check`, `lab replay` and `lab suite`.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{json, lab, refused};

/// The exit code, and the output.
#[track_caller]
fn check(arguments: &str) -> (Option<i32>, String) {
    let output = lab(&format!("check {arguments}"));
    let stdout = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), stdout)
}

#[test]
fn a_check_that_holds_exits_with_0() {
    let (code, text) = check("--algorithm raymond --nodes 3 --requests 2");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("holds") && text.contains("states"), "{text}");
    let report = json("check --algorithm fair --nodes 2 --requests 2 --json");
    assert_eq!(report["verdict"], "holds");
    assert!(report["states"].as_u64().unwrap() > 100, "{report}");
    for field in ["seconds", "states_per_second", "graph_seconds", "cut"] {
        assert!(report[field].is_number(), "{field}: {report}");
    }
}

/// Cases that fail, most of them with the rules as printed.
#[test]
fn a_failed_check_exits_with_1_and_replays_to_the_same_fault() {
    for (arguments, word, faults) in [
        (
            "fair --variant as-published --nodes 3 --requests 2",
            "BROKEN",
            true,
        ),
        (
            "maekawa --variant as-published --nodes 4 --shape grid",
            "DEADLOCK",
            false,
        ),
        (
            "torus --variant as-published --nodes 4 --shape 2x2 --channels fifo",
            "STARVATION",
            false,
        ),
        (
            "mesh --variant as-published --nodes 3 --shape 1x1x3 --requests 2",
            "DEADLOCK",
            false,
        ),
        (
            "raymond --nodes 2 --shape line --channels any --crashes 1",
            "BROKEN",
            false,
        ),
        (
            "raymond --variant duplicates --nodes 2 --channels fifo --crashes 2",
            "UNREST",
            false,
        ),
    ] {
        let (code, text) = check(&format!("--algorithm {arguments}"));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(word), "{text}");
        let scenario = text.trim_end().to_owned() + "\n";
        let (code, replayed) = replay(&scenario);
        assert_eq!(replayed, scenario, "a replay changes nothing");
        assert_eq!(code, Some(i32::from(faults)), "{replayed}");
    }
}

/// Replays a scenario from standard input.
fn replay(scenario: &str) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .args(["lab", "replay", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(scenario.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), stdout)
}

#[test]
fn too_many_states_are_not_exhausted_and_nothing_is_claimed() {
    let (code, text) = check("--algorithm lamport --nodes 3 --max-states 1000");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("not exhausted"), "{text}");
    assert!(!text.contains("holds"), "{text}");
}

/// A fault that was found is reported even if the search has to stop early. No limit causes a
/// panic.
#[test]
fn a_fault_is_not_lost_where_the_states_run_out() {
    for most in [100_000, 300_000] {
        let (code, text) = check(&format!(
            "-a maekawa --variant as-published -n 4 --shape grid --channels any --max-states {most}"
        ));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("two nodes inside"), "{most}: {text}");
    }
    for most in [1, 3, 10, 30, 100] {
        let (code, text) = check(&format!(
            "-a ra --variant as-published -n 2 -r 2 --max-states {most}"
        ));
        assert!(
            [Some(1), Some(3)].contains(&code),
            "{most}: {code:?} {text}"
        );
    }
}

/// A search that ignored some steps claims nothing.
#[test]
fn a_search_that_leaves_out_steps_does_not_hold() {
    for rest in ["", " --safety-only"] {
        let (code, text) = check(&format!("-a raymond -n 3 --max-messages 0{rest}"));
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("not exhausted"), "{text}");
    }
    let (code, text) = check("-a torus -n 4 --max-messages 0");
    assert_eq!(code, Some(3), "{text}");
}

#[test]
fn every_start_is_as_good_as_any() {
    let reports = json("check --algorithm maekawa --nodes 3 --inside each --json");
    let reports = reports.as_array().unwrap();
    let inside: Vec<_> = reports.iter().map(|r| r["inside"].as_u64()).collect();
    assert_eq!(inside, [Some(0), Some(1), Some(2), None]);
    assert!(reports.iter().all(|report| report["verdict"] == "holds"));
}

#[test]
fn a_node_that_does_not_request_only_serves() {
    let few = json("check --algorithm maekawa --nodes 4 --requesters 1,3 --json");
    let all = json("check --algorithm maekawa --nodes 4 --json");
    assert_eq!(few["requesters"], serde_json::json!([1, 3]));
    assert!(few["states"].as_u64() < all["states"].as_u64());
}

#[test]
fn each_node_may_have_a_number_of_requests_of_its_own() {
    let report = json("check -a raymond -n 3 --requests 2,1,0 --json");
    assert_eq!(report["requests_by_node"], serde_json::json!([2, 1, 0]));
    assert_eq!(report["requesters"], serde_json::json!([0, 1]));
    assert!(report["transitions"].as_u64() > report["states"].as_u64());
}

#[test]
fn only_named_nodes_crash_and_messages_to_them_may_be_lost() {
    let states = |options: &str| {
        let report = json(&format!("check -a raymond -n 3 {options} --json"));
        assert_eq!(report["verdict"], "holds", "{options}");
        report["states"].as_u64().unwrap()
    };
    let one = states("--crash 1");
    assert!(one < states("--crashes 1"));
    assert!(one < states("--crash 1 --lose-messages"));
}

#[test]
fn the_worst_case_is_printed_as_a_scenario() {
    let output = lab("check -a central -n 3 --most messages");
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("at most 3/1 = 3.000 messages per entry of a complete run"),
        "{stdout}"
    );
    assert!(stdout.contains("> request 1"), "{stdout}");
    let endless = json("check -a raymond -n 3 --shape line -r endless --most messages --json");
    assert_eq!(endless["verdict"], "per-entry");
    assert_eq!(
        endless["most"].as_u64(),
        endless["entries"].as_u64().map(|e| 4 * e)
    );
    let short = lab("check -a raymond -n 3 -r 2 --most messages --max-states 10");
    assert_eq!(short.status.code(), Some(3));
}

#[test]
fn the_worst_run_found_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worst.txt");
    let output = lab(&format!(
        "worst -a maekawa -n 7 --tries 50 --out {}",
        path.display()
    ));
    assert_eq!(output.status.code(), Some(0));
    let replayed = lab(&format!("replay --check {}", path.display()));
    assert_eq!(replayed.status.code(), Some(0));
}

#[test]
fn crashes_are_searched_in_order_if_recovery_needs_it() {
    let output = lab("check -a raymond -n 2 --crashes 1");
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("fifo"), "{stdout}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("--channels any"), "{stderr}");
    let report = json("check -a raymond --variant second-wait -n 2 --crashes 1 --json");
    assert_eq!(report["channels"], "any");
}

#[test]
fn bad_input_is_refused() {
    let check = |rest: &str, words: &[&str]| refused(&format!("check {rest}"), words);
    check("-a raymond -n 65", &["65", "64"]);
    check("-a raymond -n 3 -r 0", &["'0'", "254", "endless"]);
    check("-a raymond -n 3 --requesters 0,3", &["3", "0 to 2"]);
    check("-a raymond -n 3 --requesters 0,x", &["'x'", "0"]);
    check("-a raymond -n 3 --home 7", &["7", "0 to 2"]);
    check("-a raymond -n 3 --inside 9", &["9", "0 to 2"]);
    check(
        "-a maekawa -n 3 --crashes 1",
        &["maekawa", "does not support crashes"],
    );
    check(
        "-a lamport -n 3 --requests endless",
        &["lamport", "use a number", "raymond"],
    );
    check(
        "-a singhal-dynamic -n 3 --requesters 1 -r endless",
        &["singhal-dynamic counts requests"],
    );
    check("-a raymond -n 3 --crashes 16", &["16", "15"]);
    check("-a raymond -n 3 --crashes 256", &["256", "15"]);
    check("-a raymond -n 3 --max-states -1", &["-1", "0 up"]);
    check(
        "-a raymond -n 3 --neighbours",
        &["--neighbours", "--crashes"],
    );
    check("-a raymond -n 3 --shape ring", &["ring", "line"]);
    check("-a raymond -n 3 -r 1,2", &["2 numbers", "3 nodes"]);
    check("-a raymond -n 3 -r 1,x,2", &["1,x,2", "endless"]);
    check("-a raymond -n 2 -r 1,2 --requesters 0", &["--requesters"]);
    check("-a raymond -n 2 --crash 2", &["2", "0 to 1"]);
    check(
        "-a raymond -n 2 --crash 1 --crashes 0",
        &["--crash", "--crashes 0"],
    );
    check(
        "-a raymond -n 2 --lose-messages",
        &["--lose-messages", "--crashes"],
    );
    check("-a raymond -n 2 --most words", &["words", "overtaking"]);
    check(
        "-a maekawa -n 3 --variant repair-1",
        &["as-published,repair-1"],
    );
    refused("worst -a raymond -n 3 -r endless", &["--requests"]);
    refused("worst -a raymond -n 3 -r 1,2", &["2 numbers", "3 nodes"]);
    refused("replay no-such-file.txt", &["no-such-file.txt"]);
}

#[test]
fn the_suite_holds_what_it_must_and_fails_what_it_must() {
    let rows = json("suite --algorithm mesh --json");
    let rows = rows.as_array().unwrap();
    assert!(rows.iter().any(|row| row["verdict"] == "holds"));
    assert!(rows.iter().any(|row| row["verdict"] == "deadlock"));
    assert!(rows.iter().all(|row| row["verdict"] == row["expected"]));
}
