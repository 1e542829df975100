//! `soloist lab`: output, errors and exit codes of the real executable.

mod check;
mod claims;
mod compare;
mod epochs;
mod play;
mod reproduce;
mod run;
mod swarm;

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

/// Expects one line on stderr that contains all `words`, no output, and exit code 2.
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
        "run --algorithm raymond --nodes 3 --delay file:no/such/file",
        &["cannot read no/such/file: No such file"],
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
        "compare --algorithms raymond,no-such --nodes 4",
        &["'no-such'"],
    );
    refused("compare --algorithms , --nodes 4", &["','"]);
    refused("compare --nodes 4,0", &["'0'", "1 to"]);
    refused(
        "compare --nodes 4 --plot no/such/folder/a.svg",
        &["no/such/folder"],
    );
    for name in ["compare.png", "compare", ".svg", "a.svg/b"] {
        refused(&format!("compare --nodes 4 --plot {name}"), &[name, ".svg"]);
        refused(
            &format!("run --algorithm raymond --nodes 4 --plot {name}"),
            &[name, ".svg"],
        );
    }
    refused(
        "compare --nodes 4 --plot a.svg --metric speed",
        &["'speed'", "messages, bytes, response"],
    );
    refused(
        "compare --algorithms raymond,maekawa --nodes 4 --shape line",
        &["'line'", "singer"],
    );
}

#[test]
fn only_the_result_goes_into_a_pipe() {
    let output = lab("run --algorithm raymond --nodes 5 --entries 100 --json");
    assert!(output.stderr.is_empty(), "{output:?}");
    assert!(!output.stdout.contains(&0x1b), "no colours in a pipe");
}

/// The exit code reports the outcome of the run even if nothing reads the output.
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
