//! `soloist lab run`.

use serde_json::Value;

use super::{json, lab, lab_in};

#[test]
fn run_prints_every_promised_field() {
    let report = json("run --algorithm raymond --nodes 7 --entries 200 --json");
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
    assert_eq!(report["hold"], 1.0);
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
    let report = json("run -a raymond -n 15 --crashes 5:2 --entries 2000 --json");
    assert!(report["crashes"].as_u64() > Some(100), "{report:#}");
    assert_eq!(report["entries"], 2000);
    assert_eq!(report["channels"], "fifo");
    let calm = json("run -a raymond -n 15 --entries 100 --json");
    assert_eq!(calm["crashes"], 0);
}
