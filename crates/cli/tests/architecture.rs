//! What ARCHITECTURE.md, README.md and docs/guarantees.md name exists: functions, files and tests.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What stands between backticks in a document, outside of blocks.
fn quoted(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).expect("the document");
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let prose = prose.concat();
    prose
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn defines(source: &str, function: &str) -> bool {
    ["(", "<"]
        .map(|next| format!("fn {function}{next}"))
        .iter()
        .any(|it| source.contains(it))
}

/// The file, by its path below `crates` or below the sources of a node.
fn read(path: &str) -> Option<String> {
    let below = ["crates", "crates/node/src"].map(|folder| root().join(folder).join(path));
    below.iter().find_map(|path| fs::read_to_string(path).ok())
}

#[test]
fn functions_named_in_the_architecture_exist() {
    let quoted = quoted("ARCHITECTURE.md");
    let functions = quoted.iter().filter_map(|it| it.split_once(".rs::"));
    let mut checked = 0;
    for (path, function) in functions {
        let path = format!("{path}.rs");
        let source = read(&path).unwrap_or_else(|| panic!("there is no {path}"));
        let is_defined = defines(&source, function);
        assert!(is_defined, "{path} has no function {function}");
        checked += 1;
    }
    assert!(checked > 30, "only {checked} functions were found");
}

/// All sources below `crates`, in one text.
fn sources() -> String {
    let mut text = String::new();
    let mut open = vec![root().join("crates")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(path).expect("text");
            }
        }
    }
    text
}

#[test]
fn tests_named_in_the_guarantees_exist() {
    let sources = sources();
    let (mut paths, mut tests) = (0, 0);
    for name in quoted("docs/guarantees.md") {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"_/.0123456789".contains(&byte);
        if !name.bytes().all(is_plain) || name == "crates/" {
            continue;
        }
        if name.contains('/') {
            let path = root().join("crates").join(&name);
            assert!(path.exists(), "there is no {name}");
            paths += 1;
        } else if is_test(&name) {
            assert!(defines(&sources, &name), "there is no test {name}");
            tests += 1;
        }
    }
    assert!(paths > 30 && tests > 10, "{paths} paths, {tests} tests");
}

#[test]
fn tests_named_in_the_readme_exist() {
    let sources = sources();
    let tests: Vec<_> = quoted("README.md")
        .into_iter()
        .filter(|name| is_test(name))
        .collect();
    for name in &tests {
        assert!(defines(&sources, name), "there is no test {name}");
    }
    assert!(tests.len() > 5, "{tests:?}");
}

/// Tests are named by sentences.
fn is_test(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    name.bytes().all(is_plain) && name.matches('_').count() > 2
}
