//! The program that was extracted from the proofs.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::{Case, Totals};

/// Set by `./check`, under which no test is left out.
const ALL_TESTS: &str = "SOLOIST_ALL_TESTS";

/// Everything that a model does in one cluster.
#[derive(Debug)]
pub struct Model {
    pub(crate) lines: HashSet<String>,
    pub(crate) totals: Totals,
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("model/build/model")
}

/// Returns whether a test that needs the extracted program has to be left out, and says so. Under
/// `./check` the test fails instead.
pub fn is_missing() -> bool {
    if program().exists() {
        return false;
    }
    let how = "`apt-get install coq ocaml-findlib && make -C proofs comparison`";
    assert!(
        std::env::var_os(ALL_TESTS).is_none(),
        "the program extracted from the proofs is missing: run {how}"
    );
    let line = format!("left out: the tests of the proofs; to run them: {how}\n");
    // Not `eprintln!`, which is captured while a test passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    true
}

impl Model {
    /// What the model visited.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Runs the model of this name on a case. `tables` are the further arguments of the model, such
    /// as the shape of the cluster.
    pub fn run(name: &str, case: &Case, tables: &[String]) -> Model {
        let output = Command::new(program())
            .arg(format!("algorithm={name}"))
            .args(case.arguments())
            .args(tables)
            .output()
            .expect("the program extracted from the proofs starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the model of {name}: {errors}");
        let mut lines: HashSet<String> = text.lines().map(str::to_owned).collect();
        let last = text.lines().next_back().expect("a line with totals");
        lines.remove(last);
        let mut numbers = last
            .split(' ')
            .skip(1)
            .map(|n| n.parse().expect("a number"));
        let totals = Totals {
            calls: lines.len(),
            states: numbers.next().expect("the number of states"),
            steps: numbers.next().expect("the number of steps"),
        };
        Model { lines, totals }
    }
}
