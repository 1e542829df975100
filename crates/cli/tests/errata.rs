//! Each `$ soloist lab check ...` in docs/errata.md has the outcome that the line after it states.
//! Set `UPDATE_ERRATA=1` to rewrite those lines, and read the difference before you commit it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Limit of states for every search on the page.
const STATES_MAX: &str = "2000000";

/// The outcome of a command, in the format of the page.
fn outcome(arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .args(["lab", "check"])
        .args(arguments.split_whitespace())
        .args(["--json", "--max-states", STATES_MAX])
        // The page names files of the repository.
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("the executable starts");
    let code = output.status.code().expect("no signal");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{arguments}: {error}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let verdict = report["verdict"].as_str().expect("there is a verdict");
    match report["what"].as_str() {
        Some(what) => format!("exit {code}, {verdict}: {what}"),
        None => format!("exit {code}, {verdict}: {} states", report["states"]),
    }
}

#[test]
fn each_command_gives_what_the_page_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errata.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let mut codes = Vec::new();
    for at in 0..lines.len() {
        let Some(command) = lines[at].strip_prefix("$ ") else {
            continue;
        };
        let arguments = command
            .strip_prefix("soloist lab check ")
            .unwrap_or_else(|| panic!("no search: {command}"));
        let outcome = outcome(arguments);
        assert!(
            !outcome.contains("not-exhausted"),
            "{command}: nothing is claimed beyond {STATES_MAX} states"
        );
        codes.push(outcome[.."exit 0".len()].to_owned());
        if std::env::var("UPDATE_ERRATA").is_ok_and(|value| value == "1") {
            lines[at + 1] = outcome;
        } else {
            assert_eq!(lines[at + 1], outcome, "{command}");
        }
    }
    // The page has rules as printed that fail, and repaired ones that hold.
    for code in ["exit 0", "exit 1"] {
        assert!(codes.iter().any(|given| given == code), "no {code}");
    }
    if std::env::var("UPDATE_ERRATA").is_ok_and(|value| value == "1") {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
}
