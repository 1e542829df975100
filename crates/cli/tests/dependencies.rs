//! Every package in Cargo.lock has a licence and a source that deny.toml allows, and builds with
//! the oldest supported compiler.
//!
//! `cargo deny check licenses bans sources` checks the first two with the same lists, and more.
//! This test needs nothing but cargo.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The parts of deny.toml that are checked here.
#[derive(Deserialize)]
struct Deny {
    graph: Graph,
    licenses: Licenses,
    sources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    rust_version: Option<String>,
    source: Option<String>,
}

fn deny() -> Deny {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    toml::from_str(&text).expect("deny.toml has these parts")
}

/// All packages that are built on a supported system, with all features.
fn packages() -> Vec<Package> {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root())
        .args(["metadata", "--format-version", "1"])
        .args(["--locked", "--all-features"]);
    for target in deny().graph.targets {
        command.args(["--filter-platform", &target]);
    }
    let output = command.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).expect("cargo's metadata");
    assert!(metadata.packages.len() > 100, "they are all there");
    metadata.packages
}

/// An SPDX expression, and what is left of it.
struct Expression<'a> {
    words: Vec<&'a str>,
    allowed: &'a [String],
}

impl<'a> Expression<'a> {
    /// Returns whether the allowed licences are enough for this expression. Panics if it cannot be
    /// read.
    fn holds(text: &'a str, allowed: &'a [String]) -> bool {
        // Some packages still use the slash of old, which means OR.
        let spaced = text.split('/').collect::<Vec<_>>();
        if spaced.len() > 1 {
            return spaced.iter().any(|part| Self::holds(part.trim(), allowed));
        }
        let mut words = Vec::new();
        for word in text.split_whitespace() {
            let opened = word.trim_start_matches('(');
            let inner = opened.trim_end_matches(')');
            words.extend(std::iter::repeat_n("(", word.len() - opened.len()));
            words.push(inner);
            words.extend(std::iter::repeat_n(")", opened.len() - inner.len()));
        }
        words.reverse();
        let mut expression = Expression { words, allowed };
        let holds = expression.any();
        assert!(expression.words.is_empty(), "cannot read {text:?}");
        holds
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.last() == Some(&word);
        if is_next {
            self.words.pop();
        }
        is_next
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.take("OR") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.one();
        while self.take("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let holds = self.any();
            assert!(self.take(")"), "a parenthesis is not closed");
            return holds;
        }
        let licence = self.words.pop().expect("a licence");
        // An exception is a licence of its own, as in cargo-deny.
        let has_exception = self.take("WITH");
        if has_exception {
            self.words.pop();
        }
        !has_exception && self.allowed.iter().any(|allowed| allowed == licence)
    }
}

#[test]
fn licences_are_allowed() {
    let allowed = deny().licenses.allow;
    let mut used = vec![false; allowed.len()];
    for package in packages() {
        let Package { name, version, .. } = &package;
        let licence = package.license.as_deref();
        let licence = licence.unwrap_or_else(|| panic!("{name} {version} has no licence"));
        assert!(
            Expression::holds(licence, &allowed),
            "{name} {version} has the licence {licence}, which deny.toml does not allow"
        );
        for (allowed, used) in allowed.iter().zip(&mut used) {
            *used |= licence.contains(allowed);
        }
    }
    for (allowed, used) in allowed.iter().zip(used) {
        assert!(
            used,
            "no package has the licence {allowed}: remove it from deny.toml"
        );
    }
}

#[test]
fn sources_are_allowed() {
    let sources = deny().sources;
    for kind in ["unknown-registry", "unknown-git"] {
        assert_eq!(sources[kind], "deny");
    }
    let mut registries = BTreeMap::new();
    for package in packages() {
        let label = format!("{} {}", package.name, package.version);
        match package.source {
            None => assert!(package.name.starts_with("soloist"), "{label} is a folder"),
            Some(source) => {
                assert!(source.starts_with("registry+"), "{label} is from {source}");
                registries.insert(source, label);
            }
        }
    }
    assert_eq!(registries.len(), 1, "one registry: {registries:?}");
}

/// `1.90` or `1.90.0`.
fn rust(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version
        .split('.')
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.resize(3, 0);
    numbers
}

#[test]
fn packages_build_with_the_oldest_supported_rust() {
    let oldest = rust(env!("CARGO_PKG_RUST_VERSION"));
    for package in packages() {
        let Package { name, version, .. } = &package;
        if let Some(needed) = &package.rust_version {
            assert!(
                rust(needed) <= oldest,
                "{name} {version} needs Rust {needed}, and {oldest:?} is promised"
            );
        }
    }
}

#[test]
fn licence_expressions_are_read() {
    let allowed = ["MIT", "ISC"].map(str::to_owned);
    for good in [
        "MIT",
        "Apache-2.0 OR MIT",
        "MIT/Apache-2.0",
        "MIT AND ISC",
        "(MIT OR GPL-3.0) AND ISC",
        "Apache-2.0 WITH LLVM-exception OR MIT",
    ] {
        assert!(Expression::holds(good, &allowed), "{good}");
    }
    for bad in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND GPL-3.0",
        "MIT WITH some-exception",
        "MIT AND Apache-2.0 OR GPL-3.0",
    ] {
        assert!(!Expression::holds(bad, &allowed), "{bad}");
    }
}
