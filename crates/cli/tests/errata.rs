//! Each `$ soloist lab ...` in docs/errata.md has the outcome that the line after it states: of a
//! search, a violation, the number of states or, with `--most`, the worst case; of a replay, its
//! messages and entries; of a reproduced figure or formula, its verdict and what was found.
//! Set `UPDATE_ERRATA=1` to rewrite those lines, and read the difference before you commit it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use soloist_lab::report::cost;

/// Limit of states for every search on the page.
const STATES_MAX: &str = "2000000";

/// Runs `soloist lab` with these arguments, in the folder that the page's files are named from.
fn lab(arguments: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .arg("lab")
        .args(arguments.split_whitespace())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("the executable starts");
    let code = output.status.code().expect("no signal");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert!(!stdout.is_empty(), "{arguments}: {stderr}");
    (code, stdout)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The outcome of a command, in the format of the page.
fn outcome(command: &str) -> String {
    let arguments = command.strip_prefix("soloist lab ");
    let arguments = arguments.unwrap_or_else(|| panic!("not of the lab: {command}"));
    let (what, _) = arguments.split_once(' ').expect("a command has options");
    let (code, found) = match what {
        "check" => searched(arguments),
        "replay" => replayed(arguments),
        "reproduce" => reproduced(arguments),
        _ => panic!("neither a search, a replay nor a reproduction: {command}"),
    };
    format!("exit {code}, {found}")
}

fn searched(arguments: &str) -> (i32, String) {
    let (code, text) = lab(&format!("{arguments} --json --max-states {STATES_MAX}"));
    let report = json(&text);
    let verdict = report["verdict"].as_str().expect("there is a verdict");
    let found = match (report["what"].as_str(), report["most"].as_u64()) {
        (Some(what), _) => what.to_owned(),
        (None, Some(most)) => cost(most, report["entries"].as_u64().expect("a count")),
        (None, None) => format!("{} states", report["states"]),
    };
    (code, format!("{verdict}: {found}"))
}

fn replayed(arguments: &str) -> (i32, String) {
    let (code, text) = lab(arguments);
    let count = |part: &str| text.lines().filter(|line| line.contains(part)).count() as u64;
    let cost = cost(count(" -> "), count(" enters"));
    (code, format!("replayed: {cost}"))
}

fn reproduced(arguments: &str) -> (i32, String) {
    let (code, text) = lab(&format!("{arguments} --json"));
    let report = &json(&text)[0];
    let [verdict, found] = ["verdict", "found"].map(|field| report[field].as_str().expect(field));
    (code, format!("{verdict}: {found}"))
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
        let outcome = outcome(command);
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
