//! `soloist lab epochs`.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::{json, lab, refused};

fn scenario(name: &str) -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/scenarios");
    lab.join(name)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_run_says_what_happened() {
    let arguments = "epochs run --algorithm maekawa --nodes 7 --seed 7";
    let output = lab(arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let first = "maekawa, 7 nodes, lease 3s, 1m with faults, seed 7: all is well\n";
    assert!(text.starts_with(first), "{text}");
    for word in [
        "faults injected",
        "epochs",
        "evicted",
        "takeovers",
        "longest wait",
    ] {
        assert!(text.contains(word), "no '{word}' in {text}");
    }
    assert_eq!(stdout(&lab(arguments)), text, "a seed gives the same run");
}

#[test]
fn a_run_is_also_printed_as_json_and_line_by_line() {
    let several = json("epochs run --nodes 3 --seeds 4 --length 20s --json");
    assert_eq!(several["algorithm"], "raymond");
    assert_eq!(several["total"]["runs"], 4);
    assert_eq!(several["failures"].as_array().unwrap().len(), 0);
    assert!(several["total"]["acquisitions"].as_u64().unwrap() > 100);
    let only = json("epochs run --nodes 3 --fault crash --json");
    assert_eq!(only["faults"], serde_json::json!(["crash"]));
    let injected = only["total"]["faults"].as_object().unwrap();
    assert!(injected.keys().eq(["crash"]), "{injected:?}");
    let calm = json("epochs run --nodes 3 --fault none --lease 500ms --json");
    assert_eq!(calm["total"]["faults"], serde_json::json!({}));
    assert_eq!(calm["total"]["evictions"], 0);

    let traced = stdout(&lab("epochs run --nodes 3 --length 5s --trace"));
    for line in [
        " n0 -> the leader JOIN\n",
        " is a member of epoch ",
        " enters with fence ",
    ] {
        assert!(traced.contains(line), "no '{line}' in {traced}");
    }
    let summary = stdout(&lab("epochs run --nodes 3 --length 5s"));
    assert!(traced.ends_with(&summary), "{traced}");
}

#[test]
fn a_search_says_how_many_states_there_are() {
    let output = lab("epochs check --nodes 2 --fault crash --steps 2");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.starts_with("raymond, 2 nodes, crash, 2 requests, 2 steps: holds\n"),
        "{text}"
    );
    let report = json("epochs check --nodes 2 --fault crash --steps 2 --json");
    assert_eq!(report["verdict"], "holds");
    let states = report["states"].as_u64().unwrap();
    assert!(
        text.contains(&format!("{states} states, all of them searched")),
        "{text}"
    );
}

#[test]
fn a_search_that_reaches_a_limit_does_not_say_that_it_holds() {
    let output = lab("epochs check --nodes 3 --fault crash --max-states 1000");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.contains("not exhausted: more states than allowed"),
        "{text}"
    );
    assert!(!text.contains("holds"), "{text}");
}

#[test]
fn a_search_of_the_keepers_says_how_many_states_there_are() {
    let output = lab("epochs keepers --case sole-keeper");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let expected = "sole-keeper, 1 promotion, 1 demotion, 1 crash, 1 re-imaged machine, 3 elections, \
        partitions: holds\n10130 states, all of them searched, in ";
    assert!(text.starts_with(expected), "{text}");
    let report = json("epochs keepers --case recovery --recoveries 0 --safety-only --json");
    assert_eq!(report["case"], "recovery");
    assert_eq!(report["verdict"], "holds");
    assert_eq!(report["budget"]["recoveries"], 0);
    assert_eq!(report["checks_progress"], false);
    assert!(report["states"].as_u64().unwrap() > 100, "{report}");

    let output = lab("epochs keepers --max-states 5000");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains("not exhausted: more states"), "{text}");
    assert!(!text.contains("holds"), "{text}");
}

/// A broken rule is found, and what is printed is a text that shows it again.
#[test]
fn a_search_of_the_keepers_prints_a_violation_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.txt");
    for (variant, more, word, fault) in [
        (
            "empty-store-votes",
            "",
            "BROKEN",
            "n2 leads without what was agreed on",
        ),
        (
            "set-aside-uncommitted",
            "--reimages 0",
            "DEADLOCK",
            "a majority of the keepers is up, but none can lead",
        ),
    ] {
        let output = lab(&format!("epochs keepers --variant {variant} {more}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let found = stdout(&output);
        let head = format!("# replaced-keeper ({variant}), ");
        assert!(found.starts_with(&head), "{found}");
        let title = found.lines().next().unwrap();
        assert!(title.ends_with(&format!(": {word}: {fault}")), "{found}");
        std::fs::write(&path, &found).unwrap();
        let output = lab(&format!("epochs replay {}", path.display()));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(stdout(&output), found);
        let last = format!("FAULT {fault}\n\n");
        assert!(found.ends_with(&last), "{found}");
    }
}

/// The text of a broken rule shows the second cluster, and is what happens.
#[test]
fn the_counterexample_of_the_keepers_replays_to_itself_and_fails() {
    let path = scenario("epochs-keeper-returns-empty-store-votes.txt");
    let output = lab(&format!("epochs replay {}", path.display()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(stdout(&output), std::fs::read_to_string(&path).unwrap());
    let output = lab(&format!("epochs replay --check {}", path.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn the_texts_replay_to_themselves() {
    for name in [
        "epochs-holder-dies.txt",
        "epochs-lease-lapses.txt",
        "epochs-join.txt",
        "epochs-keeper-returns.txt",
    ] {
        let path = scenario(name);
        let output = lab(&format!("epochs replay {}", path.display()));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(stdout(&output), std::fs::read_to_string(&path).unwrap());
        let output = lab(&format!("epochs replay --check {}", path.display()));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!((stdout(&output), stderr(&output)), Default::default());
    }
}

#[test]
fn a_line_that_is_not_what_happens_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.txt");
    let text = std::fs::read_to_string(scenario("epochs-join.txt")).unwrap();
    std::fs::write(
        &path,
        text.replacen("REPORT epoch 2: holds 1 lock", "REPORT epoch 2", 1),
    )
    .unwrap();
    let output = lab(&format!("epochs replay --check {}", path.display()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = stderr(&output);
    assert!(complaint.contains("line 40 differs"), "{complaint}");
    assert!(
        complaint.contains("actual:   0.050s a -> L1 REPORT epoch 2: holds 1 lock"),
        "{complaint}"
    );
    // Without --check, the line is replaced.
    let output = lab(&format!("epochs replay {}", path.display()));
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), text));

    std::fs::write(&path, "algorithm raymond\nnodes 2\n> request 1\n2 enters\n").unwrap();
    let output = lab(&format!("replay --check {}", path.display()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("line 4 differs"), "{output:?}");
}

/// A node that stays with a deposed leader loses its lease, and with it the lock. The text forbids
/// that, since no fault has hit the node itself.
#[test]
fn a_violation_in_a_text_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("astray.txt");
    let text = "algorithm raymond\nnodes 2\nlosses faulty\nelections 1\n\n\
                > request n0\n> run\n> elect without n0\n> tick\n> tick\n> tick\n";
    std::fs::write(&path, text).unwrap();
    let output = lab(&format!("epochs replay {}", path.display()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let played = stdout(&output);
    assert!(
        played.ends_with("FAULT n0 loses the lock, and no fault has hit it\n"),
        "{played}"
    );
}

#[test]
fn bad_input_is_refused_in_one_line() {
    refused("epochs run --nodes 0", &["'0'", "1 to 200"]);
    refused(
        "epochs run --algorithm raymnod",
        &["did you mean 'raymond'?"],
    );
    refused("epochs run --fault crahs", &["'crahs'", "crash", "none"]);
    refused("epochs run --fault none,crash", &["not both"]);
    refused("epochs run --lease 1ms", &["'1ms'", "500ms to 1h"]);
    refused("epochs run --length 0", &["'0'", "1s to 24h"]);
    refused("epochs run --seeds 0", &["'0'", "from 1"]);
    refused("epochs run --turns 0", &["'0'", "1 to"]);
    refused("epochs run --seeds 2 --trace", &["--trace", "one run"]);
    refused(
        "epochs run --algorithm maekawa --variant as-published",
        &[
            "a node cannot use these rules",
            "maekawa with 'as-published'",
        ],
    );
    refused("epochs check --nodes 1", &["1 nodes", "2 to 8"]);
    refused(
        "epochs check --nodes 9 --fault crash",
        &["9 nodes", "2 to 8"],
    );
    refused(
        "epochs check --fault clocks",
        &["'clocks'", "lab epochs run"],
    );
    refused("epochs check --fault dance", &["'dance'", "crash, pause"]);
    refused("epochs check --requests 21", &["'21'", "0 to 20"]);
    refused("epochs check --max-states 0", &["'0'", "from 1"]);
    refused(
        "epochs check -a maekawa --variant as-published",
        &["with 'as-published'"],
    );
    refused(
        "epochs keepers --case replaced",
        &["'replaced'", "replaced-keeper", "recovery"],
    );
    refused(
        "epochs keepers --variant empty-votes",
        &["'empty-votes'", "empty-store-votes"],
    );
    refused("epochs keepers --crashes 21", &["'21'", "0 to 20"]);
    refused(
        "epochs keepers --promotions 14",
        &["17", "16", "fewer promotions"],
    );
    refused("epochs replay no-such-file.txt", &["no-such-file.txt"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.txt");
    std::fs::write(&path, "algorithm raymond\nnodes 2\n> dance n0\n").unwrap();
    refused(
        &format!("epochs replay {}", path.display()),
        &[
            "line 3",
            "'dance n0' is not a step",
            "request NODE",
            "finish",
        ],
    );
}
