//! `soloist fence`: exit codes and output of the real executable.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

fn fence(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soloist"))
        .current_dir(folder)
        .arg("fence")
        .args(arguments)
        .output()
        .expect("the executable starts")
}

#[track_caller]
fn ends(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_eq!(stderr.lines().count(), usize::from(code != 0), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
}

#[test]
fn lower_fences_are_refused() {
    let folder = tempdir().unwrap();
    ends(&fence(&folder, &["gate", "33"]), 0, &[]);
    ends(&fence(&folder, &["gate", "33"]), 0, &[]);
    ends(&fence(&folder, &["gate", "34"]), 0, &[]);
    ends(
        &fence(&folder, &["gate", "33"]),
        1,
        &["gate", "33 is lower than 34"],
    );
    ends(&fence(&folder, &["other", "1"]), 0, &[]);
}

#[test]
fn json_says_the_same() {
    let folder = tempdir().unwrap();
    let answer = |given: &str, code| {
        let output = fence(&folder, &["gate", given, "--json"]);
        assert_eq!(output.status.code(), Some(code));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let highest = "18446744073709551615";
    assert_eq!(
        answer(highest, 0),
        json!({"file": "gate", "fence": highest, "admitted": true, "highest": highest})
    );
    assert_eq!(
        answer("7", 1),
        json!({"file": "gate", "fence": "7", "admitted": false, "highest": highest})
    );
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let folder = tempdir().unwrap();
    for given in ["", "-1", "+1", "1.5", "abc", "18446744073709551616", " 1"] {
        let output = fence(&folder, &["gate", given]);
        ends(
            &output,
            2,
            &[&format!("'{given}'"), "0 to 18446744073709551615"],
        );
    }
    assert!(
        fs::read_dir(&folder).unwrap().next().is_none(),
        "nothing is made"
    );
    ends(&fence(&folder, &["no/gate", "1"]), 2, &["no"]);
    ends(&fence(&folder, &[".", "1"]), 2, &[]);
    for text in ["", "33\n"] {
        fs::write(folder.path().join("gate"), text).unwrap();
        ends(
            &fence(&folder, &["gate", "1"]),
            2,
            &["gate", "no fence is admitted"],
        );
    }
    let missing = fence(&folder, &["gate"]);
    assert_eq!(missing.status.code(), Some(2));
}

/// The shell example of docs/fencing.md.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fencing.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("```sh\n").expect("an example");
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_pages_example_works() {
    let folder = tempdir().unwrap();
    let executable = Path::new(env!("CARGO_BIN_EXE_soloist"));
    let path = std::env::join_paths(
        [executable.parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let write = |fence: &str, orders: &str| {
        fs::write(folder.path().join("new-orders.csv"), orders).unwrap();
        let status = Command::new("sh")
            .args(["-c", &page()])
            .current_dir(&folder)
            .env("PATH", &path)
            .env("SOLOIST_FENCE", fence)
            .stderr(Stdio::null())
            .status();
        let code = status.unwrap().code();
        (
            code,
            fs::read_to_string(folder.path().join("orders.csv")).unwrap(),
        )
    };
    assert_eq!(write("34", "of b"), (Some(0), "of b".to_owned()));
    assert_eq!(write("33", "of a"), (Some(1), "of b".to_owned()));
    assert_eq!(write("34", "more of b"), (Some(0), "more of b".to_owned()));
    assert_eq!(write("", "of no holder"), (Some(2), "more of b".to_owned()));
}

#[test]
fn processes_at_once_leave_the_highest() {
    let folder = tempdir().unwrap();
    let started: Vec<_> = (0..16)
        .map(|fence| {
            Command::new(env!("CARGO_BIN_EXE_soloist"))
                .current_dir(&folder)
                .args(["fence", "gate", &(fence * 7 % 16).to_string()])
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut process in started {
        let code = process.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
    }
    ends(&fence(&folder, &["gate", "14"]), 1, &["lower than 15"]);
}
