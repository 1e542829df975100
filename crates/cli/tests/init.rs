//! `soloist init`: the real executable, what it makes and what it leaves alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use soloist_node::config::Config;
use soloist_node::identity::Authority;
use tempfile::tempdir;

const NODES: &str = "a=10.0.0.1:7401,b=db.example.org:7401,c=[fd00::3]:7401";

fn init(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soloist"))
        .current_dir(folder)
        .arg("init")
        .args(arguments.split_whitespace())
        .output()
        .expect("the executable starts")
}

#[track_caller]
fn made(folder: &Path, arguments: &str) -> String {
    let output = init(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// One line on stderr that has all words, exit code 2, and nothing changed.
#[track_caller]
fn refused(folder: &Path, arguments: &str, words: &[&str]) {
    let before = tree(folder);
    let output = init(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
    assert_eq!(tree(folder), before);
}

/// All files under a folder, hidden ones too.
fn tree(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.insert(format!("{name}/"));
            all.extend(
                tree(&entry.path())
                    .iter()
                    .map(|below| format!("{name}/{below}")),
            );
        } else {
            all.insert(name);
        }
    }
    all
}

fn expected(nodes: &[&str]) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = ["ca.pem", "ca.key"].map(str::to_owned).into();
    for node in nodes {
        for file in ["", "soloist.toml", "ca.pem", "node.pem", "node.key"] {
            all.insert(format!("{node}/{file}"));
        }
    }
    all
}

#[test]
fn every_node_can_start_from_what_is_made() {
    let folder = tempdir().unwrap();
    let text = made(
        folder.path(),
        &format!("--nodes {NODES} --out x --algorithm tree"),
    );
    for word in [
        "scp -rp x/a 10.0.0.1:soloist",
        "x/c [fd00::3]:",
        "soloist node --config",
        "x/ca.key",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let out = folder.path().join("x");
    assert_eq!(tree(&out), expected(&["a", "b", "c"]));
    let mut fingerprints = BTreeSet::new();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let config = Config::load(&out.join(name).join("soloist.toml")).unwrap();
        assert_eq!(config.name.as_str(), name);
        assert_eq!(config.me().index(), number);
        assert_eq!(config.identity().unwrap().unwrap().name(), name);
        assert_eq!(config.rules.rule("x").choice().name, "raymond");
        fingerprints.insert(config.rules.fingerprint());
    }
    assert_eq!(fingerprints.len(), 1, "all nodes agree");
    for key in ["ca.key", "a/node.key", "b/node.key", "c/node.key"] {
        let mode = out.join(key).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
    // The CA can make more later.
    assert!(Authority::load(&out.join("ca.pem"), &out.join("ca.key")).is_ok());
}

#[test]
fn json_names_the_files() {
    let folder = tempdir().unwrap();
    let text = made(
        folder.path(),
        "--nodes b=10.0.0.2:1,a=10.0.0.1:1 --cluster hall --json",
    );
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["cluster"], "hall");
    assert_eq!(made["algorithm"], "raymond");
    assert_eq!(made["nodes"][0]["name"], "a");
    assert_eq!(made["nodes"][1]["address"], "10.0.0.2:1");
    for file in [&made["ca"], &made["ca_key"], &made["nodes"][0]["config"]] {
        assert!(
            folder.path().join(file.as_str().unwrap()).is_file(),
            "{file}"
        );
    }
    assert_eq!(made["folder"], "soloist-cluster");
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    made(path, &format!("--nodes {NODES}"));
    let key = fs::read(path.join("soloist-cluster/ca.key")).unwrap();
    refused(
        path,
        &format!("--nodes {NODES}"),
        &["soloist-cluster/ca.pem", "--out"],
    );
    assert_eq!(fs::read(path.join("soloist-cluster/ca.key")).unwrap(), key);
    // Any one of them is enough, and is found before anything is made.
    for name in ["ca.key", "b", "c"] {
        let out = path.join(format!("with-{name}"));
        fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink("nowhere", out.join(name)).unwrap();
        let arguments = format!("--nodes {NODES} --out with-{name}");
        refused(path, &arguments, &[&format!("with-{name}/{name}")]);
    }
    fs::write(path.join("file"), "").unwrap();
    refused(
        path,
        &format!("--nodes {NODES} --out file"),
        &["file is a file"],
    );
}

#[test]
fn a_folder_with_other_things_keeps_them() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("notes"), "mine").unwrap();
    made(folder.path(), &format!("--nodes {NODES} --out ."));
    let mut all = expected(&["a", "b", "c"]);
    all.insert("notes".to_owned());
    assert_eq!(tree(folder.path()), all);
}

#[test]
fn wrong_input_makes_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    refused(path, "--nodes a", &["'a'", "NAME=HOST:PORT"]);
    refused(path, "--nodes a=10.0.0.1", &["10.0.0.1", "no port"]);
    refused(path, "--nodes a=10.0.0.1:0", &["10.0.0.1:0", "port 0"]);
    refused(path, "--nodes a=::1:1", &["brackets"]);
    refused(path, "--nodes A=10.0.0.1:1", &["'A'", "a-z"]);
    refused(path, "--nodes ../x=10.0.0.1:1", &["'.'"]);
    refused(
        path,
        "--nodes a=10.0.0.1:1,a=10.0.0.2:1",
        &["two nodes", "\"a\""],
    );
    refused(
        path,
        "--nodes a=10.0.0.1:1,b=10.0.0.1:1",
        &["10.0.0.1:1", "\"b\""],
    );
    refused(path, "--nodes a=10.0.0.1:1,", &["''"]);
    refused(
        path,
        "--nodes a=10.0.0.1:1 --algorithm tre",
        &["'tre'", "tree"],
    );
    refused(path, "--nodes a=10.0.0.1:1 --cluster The_Hall", &["'T'"]);
    refused(
        path,
        "--nodes a=10.0.0.1:1 --out no/such/folder",
        &["no/such"],
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = tempdir().unwrap();
    // A name longer than any file system takes: the move at the end fails, and nothing stays.
    let long = "x".repeat(300);
    refused(
        folder.path(),
        &format!("--nodes {NODES} --out {long}"),
        &["cannot make", "xxx"],
    );
}
