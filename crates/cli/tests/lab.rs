//! The real executable: what it prints, what it refuses, and its exit codes.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `soloist lab` with these arguments, separated by spaces.
fn lab(arguments: &str) -> Output {
    lab_in(Path::new("."), arguments)
}

fn lab_in(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soloist"))
        .current_dir(folder)
        .arg("lab")
        .args(arguments.split_whitespace())
        .output()
        .expect("the executable starts")
}

#[track_caller]
fn json(arguments: &str) -> Value {
    let output = lab(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else")
}

/// One line on stderr that contains each of `words`; nothing on stdout; exit code 2.
#[track_caller]
fn refused(arguments: &str, words: &[&str]) {
    let output = lab(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments}");
    assert_eq!(stderr.lines().count(), 1, "{arguments}: {stderr}");
    for word in words {
        assert!(
            stderr.contains(word),
            "{arguments}: no '{word}' in {stderr}"
        );
    }
}

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
fn bad_input_is_refused_in_one_line() {
    refused("run --algorithm raymond --nodes 0", &["'0'", "1 to"]);
    refused("run --algorithm raymond --nodes -3", &["'-3'", "1 to"]);
    refused("run --algorithm raymond --nodes many", &["'many'", "1 to"]);
    refused(
        "run --algorithm raymnod --nodes 3",
        &["'raymnod'", "did you mean 'raymond'?"],
    );
    refused(
        "run --algorithm mesh --nodes 9 --shape 2x2x2",
        &["2x2x2", "8", "9"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --hold -1",
        &["'-1'", "0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --hold nan",
        &["'nan'", "use 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --delay constant:-1",
        &["'constant:-1'", "above 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --delay slow",
        &["'slow'", "constant", "uniform", "exponential"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --load think:-2",
        &["'think:-2'", "use 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --load poisson:0",
        &["'poisson:0'", "above 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --load busy",
        &["'busy'", "light", "heavy", "burst"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --entries 0",
        &["'0'", "from 1"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --load burst --entries 9",
        &["9", "3", "burst"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --variant gredy",
        &["'gredy'", "did you mean 'greedy'?"],
    );
    refused(
        "run --algorithm torus --nodes 4 --variant resting,as-published",
        &["resting", "as-published", "contradict"],
    );
    refused(
        "run --algorithm ra --nodes 3 --variant greedy",
        &["'greedy'", "as-published"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --shape file:no/such/file",
        &["no/such/file"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --shape ring",
        &["'ring'", "star:K", "line"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --inside 3",
        &["3", "numbered from 0"],
    );
    refused(
        "run --algorithm RAYMOND --nodes 3",
        &["'RAYMOND'", "did you mean 'raymond'?"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --seed -1",
        &["'-1'", "from 0 to"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --home -1",
        &["'-1'", "0"],
    );
    refused(
        "run --algorithm maekawa --nodes 3 --crashes 10",
        &["maekawa", "does not recover", "use raymond"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --crashes 0",
        &["'0'", "above 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --crashes 5:-1",
        &["'5:-1'", "use 0"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --crashes often",
        &["'often'", "not a number"],
    );
    refused("swarm --runs 0", &["'0'", "from 1"]);
    refused("swarm --minutes -1", &["'-1'", "above 0"]);
    refused("swarm --seed x", &["'x'", "from 0 to"]);
    refused(
        "swarm --algorithm raymnod",
        &["'raymnod'", "did you mean 'raymond'?"],
    );
    refused("run --algorithm ra --nodes 1000000", &["1000000", "8192"]);
    refused(
        "run --algorithm raymond --nodes 3 --delay constant:0.0000001",
        &["1e-6"],
    );
    refused(
        "compare --nodes 4 --load burst --entries 7",
        &["7", "burst"],
    );
    refused(
        "run --algorithm central --nodes 3 --hold 1e9 --entries 100000",
        &["virtual time ran out"],
    );
    refused(
        "run --algorithm raymond --nodes 3 --channels lifo",
        &["'lifo'", "fifo or any"],
    );
    refused(
        "compare --algorithms raymond,nobody --nodes 4",
        &["'nobody'"],
    );
    refused("compare --algorithms , --nodes 4", &["','"]);
    refused("compare --nodes 4,0", &["'0'", "1 to"]);
    refused(
        "compare --nodes 4 --plot no/such/folder/a.svg",
        &["no/such/folder"],
    );
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
fn compare_covers_every_algorithm_size_and_load() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "compare --algorithms all --nodes 3,8 --load light,heavy --entries 100";
    let output = lab_in(
        folder.path(),
        &format!("{arguments} --json --plot picture.svg"),
    );
    assert!(output.status.success(), "{output:?}");
    let reports: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let algorithms = json("list --json");
    let names: Vec<_> = algorithms
        .as_array()
        .unwrap()
        .iter()
        .map(|listed| listed["name"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 13, "{names:?}");
    for name in &names {
        let runs = reports
            .iter()
            .filter(|report| report["algorithm"] == **name);
        assert_eq!(runs.count(), 4, "{name}");
    }
    let svg = std::fs::read_to_string(folder.path().join("picture.svg")).unwrap();
    for name in names {
        assert!(svg.contains(name), "the picture does not name {name}");
    }
    let table = lab(arguments);
    assert_eq!(
        String::from_utf8(table.stdout).unwrap().lines().count(),
        reports.len() + 1
    );
    let csv = lab(&format!("{arguments} --csv"));
    assert_eq!(
        String::from_utf8(csv.stdout).unwrap().lines().count(),
        reports.len() + 1
    );
}

#[test]
fn compare_takes_variants_after_a_plus() {
    let reports = json(
        "compare --algorithms raymond,raymond+greedy+piggyback --nodes 5 --load heavy --entries 100 --json",
    );
    assert_eq!(reports[0]["variant"], "");
    assert_eq!(reports[1]["variant"], "piggyback,greedy");
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

/// Raymond's recovery by the letter of the paper: the swarm finds it, and what it prints finds it again.
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

#[test]
fn nothing_but_the_result_goes_into_a_pipe() {
    let output = lab("run --algorithm raymond --nodes 5 --entries 100 --json");
    assert!(output.stderr.is_empty(), "{output:?}");
    assert!(!output.stdout.contains(&0x1b), "no colours in a pipe");
}

/// The exit code says what came of the run also if nobody reads the figures.
#[test]
fn a_closed_pipe_does_not_hide_a_failed_run() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .args("lab run -a mesh --variant as-published -n 7 --load think:3 --json".split(' '))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn claims_of_one_paper_are_examined_with_their_verdicts() {
    let page = json("claims --paper tree --json");
    let claims = page["claims"].as_array().unwrap();
    assert!(claims.len() >= 10, "{page}");
    for claim in claims {
        assert_eq!(claim["paper"], "raymond");
        for field in ["section", "claimed", "found", "evidence"] {
            assert!(!claim[field].as_str().unwrap().is_empty(), "{claim}");
        }
    }
    let verdict = |section: &str| {
        let claim = claims.iter().find(|claim| claim["section"] == section);
        claim.unwrap()["verdict"].as_str().unwrap()
    };
    assert_eq!(verdict("§4.1"), "holds");
    assert_eq!(verdict("§8.1 to §8.3"), "holds-after-repair");
    assert_eq!(page["comparisons"], Value::Array(Vec::new()));
}

/// What `docs/claims.md` holds of the paper, and the same for people.
#[test]
fn claims_are_printed_as_a_page_and_as_text() {
    let print = |arguments| {
        let output = lab(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let kept = include_str!("../../../docs/claims.md");
    let page = print("claims --paper raymond --markdown");
    assert!(page.lines().all(|line| kept.lines().any(|l| l == line)));
    assert!(page.contains("| **holds after repair** |"), "{page}");
    let text = print("claims --paper raymond");
    assert!(text.contains("\n      holds after repair: "), "{text}");
}

#[test]
fn claims_of_no_paper_are_refused() {
    let papers = ["maekawa", "raymond", "lodha-kshemkalyani", "neamatollahi"];
    for given in ["central", "ra", "raymnd", "-1", "all"] {
        refused(&format!("claims --paper {given}"), &papers);
        refused(&format!("claims --paper {given}"), &[given]);
    }
    assert_eq!(lab("claims --json --markdown").status.code(), Some(2));
}
