//! `soloist lab run`.

use serde_json::Value;

use super::{json, lab, lab_in, refused};

#[test]
fn replications_print_every_mean_with_its_interval() {
    let report = json("run --algorithm raymond --nodes 7 --entries 200 --json");
    for (field, expected) in [("replications", 10.0), ("level", 0.95), ("entries", 200.0)] {
        assert_eq!(report[field].as_f64(), Some(expected), "{field}");
    }
    assert_eq!(report["warm_up"]["entries"], 500);
    assert_eq!(report["warm_up"]["settled"], true);
    for path in [
        "/messages_per_entry",
        "/messages_by_kind_per_entry/REQUEST",
        "/idle_messages_per_time",
        "/bytes_per_entry",
        "/response_time/mean",
        "/response_time/p50",
        "/response_time/p99",
        "/sync_delay/mean",
        "/fairness/jain",
        "/node_load/mean",
    ] {
        let estimate = report.pointer(path).expect(path);
        for part in ["mean", "half_width", "level", "replications"] {
            assert!(estimate[part].is_number(), "no {part} of {path}");
        }
    }
    for path in ["/response_time/max", "/fairness/max_overtaken"] {
        let largest = report.pointer(path).expect(path);
        assert!(largest["value"].is_number(), "{path}");
        assert_eq!(largest["sample"], 2000, "{path}");
    }
    let text = lab("run --algorithm raymond --nodes 7 --entries 200");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("10 replications (seeds 1 to 10) of 200 entries after a warm-up of 500"));
    let messages = text.lines().find(|line| line.starts_with("messages"));
    assert!(messages.is_some_and(|line| line.contains(" ± ")), "{text}");
}

#[test]
fn without_a_warm_up_the_load_is_not_called_settled() {
    let arguments = "run -a raymond -n 7 --load light --entries 100 --json --warm-up 0";
    let output = lab(arguments);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["warm_up"], serde_json::json!({"entries": 0}));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("not checked whether the load is steady"),
        "{stderr}"
    );
    // One at a time, no node waits when another leaves.
    assert_eq!(report["sync_delay"], Value::Null);
    assert_eq!(report["without_hand_over"], 10);
    let text = lab("run -a raymond -n 7 --load light --entries 100");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("10 of 10 replications have no hand-over"),
        "{text}"
    );
}

#[test]
fn a_precision_that_is_not_reached_is_said() {
    let arguments = "run -a raymond -n 7 --load think:9 --entries 100 --json";
    let reached = json(&format!("{arguments} --precision 50%"));
    assert_eq!(reached["precision"]["reached"], true);
    let output = lab(&format!("{arguments} --precision 0.001% --seeds 12"));
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["precision"]["reached"], false);
    assert_eq!(report["replications"], 12);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("precision not reached"), "{stderr}");
}

#[test]
fn bad_replications_and_loads_are_refused() {
    let run = |arguments: &str, words: &[&str]| {
        refused(&format!("run -a raymond -n 4 {arguments}"), words);
    };
    run("--seeds 3", &["3", "at least 10"]);
    run("--seeds 1 --precision 1%", &["--seeds 1", "--precision"]);
    run("--precision 1", &["'1'", "such as 1%"]);
    run("--level 100%", &["'100%'", "between"]);
    run("--requesters 0,9", &["no node 9", "4 nodes"]);
    run("--requesters some", &["'some'", "zipf:S"]);
    run("--requesters zipf:1", &["zipf", "heavy", "use light"]);
    run("--hold gamma:2", &["'gamma:2'", "exponential[:MEAN]"]);
    run("--delay zones:9:1/2", &["9 zones for 4 nodes"]);
    run("--delay zones:2", &["zones:COUNT:NEAR/FAR"]);
    run("--delay file:no/such/file", &["no/such/file"]);
    run("--trace events.txt", &["events.txt", ".csv", ".jsonl"]);
    run("--trace no/such/folder/a.csv", &["no/such/folder/a.csv"]);
    refused("compare -n 4 --seeds 1", &["--seeds 1", "10 or more"]);
}

#[test]
fn delays_are_read_from_a_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str| {
        std::fs::write(folder.path().join("delays"), text).unwrap();
        let arguments = "run -a central -n 3 --requesters 2 --load light --entries 50 --json";
        lab_in(folder.path(), &format!("{arguments} --delay file:delays"))
    };
    // A request from 2 to the coordinator, and a grant back.
    let output = run("-  1  5\n1  -  1\n3  1  -  # from 2\n");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["delay"], "file:delays");
    assert_eq!(report["response_time"]["mean"]["mean"], 8.0);
    let output = run("- 1 5\n1 - 1\n3 slow -\n");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    for word in ["delays:3", "'slow'", "use a number"] {
        assert!(stderr.contains(word), "no {word} in {stderr}");
    }
}

#[test]
fn a_trace_has_every_event_of_the_first_seed() {
    let folder = tempfile::tempdir().unwrap();
    let run = "run -a raymond -n 5 --entries 40 --seeds 1 --json --trace";
    for name in ["events.csv", "events.jsonl"] {
        let output = lab_in(folder.path(), &format!("{run} {name}"));
        assert!(output.status.success(), "{output:?}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let csv = read("events.csv");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("time,event,node,peer,message"));
    let events: Vec<Value> = read("events.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.count(), events.len());
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(count("request"), 40);
    assert_eq!(count("enter"), 40);
    assert_eq!(count("leave"), 40);
    assert_eq!(count("send"), count("receive"));
    let report = json("run -a raymond -n 5 --entries 40 --seeds 1 --json");
    assert_eq!(report["messages"].as_u64(), Some(count("send") as u64));
    let times: Vec<_> = events.iter().map(|e| e["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let sent = events
        .iter()
        .find(|event| event["event"] == "send")
        .unwrap();
    assert_eq!(sent["message"], "REQUEST");
    assert!(sent["peer"].is_u64(), "{sent}");
}

#[test]
fn one_run_prints_every_promised_field() {
    let report = json("run --algorithm raymond --nodes 7 --entries 200 --seeds 1 --json");
    for field in [
        "algorithm",
        "variant",
        "shape",
        "nodes",
        "load",
        "delay",
        "hold",
        "seed",
        "entries",
        "messages",
        "messages_per_entry",
        "messages_by_kind",
        "idle_messages_per_time",
        "bytes_per_entry",
        "response_time",
        "sync_delay",
        "fairness",
        "node_load",
        "violations",
        "unserved",
        "crashes",
        "events",
        "wall_seconds",
        "events_per_second",
    ] {
        assert!(!report[field].is_null(), "no {field} in {report:#}");
    }
    for (field, parts) in [
        ("response_time", &["mean", "p50", "p99", "max"][..]),
        ("sync_delay", &["mean", "p50", "p99", "max"]),
        ("fairness", &["jain", "max_overtaken"]),
        ("node_load", &["mean", "max"]),
        ("messages_by_kind", &["REQUEST", "PRIVILEGE"]),
    ] {
        for part in parts {
            assert!(report[field][part].is_number(), "no {field}.{part}");
        }
    }
    assert_eq!(report["entries"], 200);
    assert_eq!(report["violations"], 0);
}

#[test]
fn defaults_are_the_documented_ones() {
    let report = json("run --algorithm raymond --nodes 10 --json");
    assert_eq!(report["load"], "heavy");
    assert_eq!(report["delay"], "exponential:1");
    assert_eq!(report["hold"], "1");
    assert_eq!(report["requesters"], "all");
    assert_eq!(report["seed"], 1);
    assert_eq!(report["shape"], "star:3");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let arguments = "run --algorithm maekawa --nodes 13 --entries 500 --json --seed";
    let mut reports = ["7", "7", "8"].map(|seed| json(&format!("{arguments} {seed}")));
    for report in &mut reports {
        let fields = report.as_object_mut().unwrap();
        fields.remove("wall_seconds");
        fields.remove("events_per_second");
        fields.remove("seed");
    }
    assert_eq!(reports[0], reports[1]);
    assert_ne!(reports[0], reports[2]);
}

#[test]
fn aliases_and_presets_work() {
    for (alias, name) in [
        ("mesh", "chaudhuri-karaata"),
        ("quorum", "maekawa"),
        ("tree", "raymond"),
        ("torus", "neamatollahi"),
        ("fair", "lodha-kshemkalyani"),
        ("singhal-dynamic", "singhal-dynamic"),
    ] {
        let report = json(&format!(
            "run --algorithm {alias} --nodes 5 --entries 50 --json"
        ));
        assert_eq!(report["algorithm"], name);
    }
}

#[test]
fn a_failed_run_exits_with_1_and_says_why() {
    let output = lab(
        "run --algorithm mesh --variant as-published --nodes 7 --load think:3 --entries 500 --json",
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["unserved"].as_u64() > Some(0));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("left waiting"), "{stderr}");
}

#[test]
fn shapes_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tree", "0-1\n1-2\n1-3\n");
    write("cycle", "0-1\n1-2\n2-0\n");
    write("sets", "0: 0 1\n1: 1 2\n2: 2 0\n");
    write("apart", "0: 0 1\n1: 0 1\n2: 2\n");
    let run = |arguments: &str| lab_in(folder.path(), &format!("run --entries 50 {arguments}"));
    assert!(
        run("--algorithm raymond --nodes 4 --shape file:tree")
            .status
            .success()
    );
    assert!(
        run("--algorithm maekawa --nodes 3 --shape file:sets")
            .status
            .success()
    );
    for arguments in [
        "--algorithm raymond --nodes 3 --shape file:cycle",
        "--algorithm raymond --nodes 5 --shape file:tree",
        "--algorithm maekawa --nodes 3 --shape file:apart",
        "--algorithm maekawa --nodes 4 --shape file:sets",
        "--algorithm lamport --nodes 4 --shape file:tree",
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap().lines().count(),
            1,
            "{arguments}"
        );
    }
}

#[test]
fn nodes_crash_and_recover() {
    let report = json("run -a raymond -n 15 --crashes 5:2 --entries 2000 --seeds 1 --json");
    assert!(report["crashes"].as_u64() > Some(100), "{report:#}");
    assert_eq!(report["entries"], 2000);
    assert_eq!(report["channels"], "fifo");
    let calm = json("run -a raymond -n 15 --entries 100 --json");
    assert_eq!(calm["crashes"], 0);
}
