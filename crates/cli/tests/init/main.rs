//! `soloist init`: what the real executable creates and what it leaves alone.

mod clients;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use soloist_node::config::{Config, Members};
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

/// Expects one line on stderr that contains all words, exit code 2, and no changed files.
#[track_caller]
fn refused(folder: &Path, arguments: &str, words: &[&str]) {
    let stderr = nothing_made(folder, arguments, words);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

/// Like [`refused`], for conflicting options: there, stderr also shows the usage.
#[track_caller]
fn nothing_made(folder: &Path, arguments: &str, words: &[&str]) -> String {
    let before = tree(folder);
    let output = init(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
    assert_eq!(tree(folder), before);
    stderr.into_owned()
}

/// All files under a folder, including hidden ones.
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
    // The first keeper may bootstrap the cluster, once.
    all.extend(["a/data/", "a/data/first-start"].map(str::to_owned));
    all
}

fn members(config: &Config) -> &Members {
    &config.members
}

fn load(out: &Path, name: &str) -> Config {
    Config::load(&out.join(name).join("soloist.toml")).unwrap()
}

/// Names of the keepers in a node's configuration.
fn keepers(config: &Config) -> Vec<String> {
    let nodes = members(config).keepers.iter();
    nodes.map(|(_, name, _)| name.to_string()).collect()
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
        "a, b, c are the keepers: 2 of them must run",
        "soloist init --add NAME=HOST:PORT --out x",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let out = folder.path().join("x");
    assert_eq!(tree(&out), expected(&["a", "b", "c"]));
    let mut fingerprints = BTreeSet::new();
    for name in ["a", "b", "c"] {
        let config = Config::load(&out.join(name).join("soloist.toml")).unwrap();
        assert_eq!(config.name.as_str(), name);
        assert_eq!(config.identity().unwrap().unwrap().name(), name);
        assert_eq!(config.rules.rule("x").choice().name, "raymond");
        fingerprints.insert(config.fingerprint());
        // Other nodes create their data folder when they need it.
        assert_eq!(members(&config).data.exists(), name == "a");
    }
    assert_eq!(fingerprints.len(), 1, "all nodes agree");
    for key in ["ca.key", "a/node.key", "b/node.key", "c/node.key"] {
        let mode = out.join(key).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
    // The CA can issue further certificates later.
    assert!(Authority::load(&out.join("ca.pem"), &out.join("ca.key")).is_ok());
}

#[test]
fn settings_that_are_commented_out_are_valid() {
    let folder = tempdir().unwrap();
    let options = format!("--nodes {NODES} --out x --socket /run/soloist/soloist.sock");
    made(folder.path(), &options);
    let file = folder.path().join("x/a/soloist.toml");
    let text = fs::read_to_string(&file).unwrap();
    let is_setting = |line: &str| line.starts_with('[') || line.contains(" = ");
    let uncommented = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if is_setting(setting) => setting.replace("PORT", "7401"),
        Some(_) => String::new(),
        None => line.to_owned(),
    });
    let uncommented = uncommented.collect::<Vec<_>>().join("\n");
    let config = Config::parse(&uncommented, &file).unwrap();
    assert_eq!(config.api.socket, Path::new("/run/soloist/soloist.sock"));
    assert!(config.api.tcp.is_some());
    assert_eq!(
        config.rules.rule("billing/eu").choice().name,
        "lodha-kshemkalyani"
    );
    // What is commented out, apart from addresses, the group and the example, is the default.
    let plain = Config::load(&file).unwrap();
    assert_eq!(config.limits, plain.limits);
    assert_eq!(config.members.lease, plain.members.lease);
    assert_eq!(config.members.data, plain.members.data);
}

#[test]
fn every_setting_is_in_the_file() {
    const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");
    // Only for nodes without TLS. A keeper's address is in [keepers].
    const ELSEWHERE: [&str; 2] = ["insecure", "address"];
    let folder = tempdir().unwrap();
    made(folder.path(), &format!("--nodes {NODES} --out x"));
    let text = fs::read_to_string(folder.path().join("x/a/soloist.toml")).unwrap();
    let lines = text
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line));
    let written = lines.filter_map(|line| line.split_once(" = "));
    let written: BTreeSet<_> = written.map(|(key, _)| key).collect();
    let (_, example) = DOCUMENT.rsplit_once("```toml\n").unwrap();
    let settings = example.lines().filter_map(|line| line.split_once(" = "));
    for (key, _) in settings.filter(|(key, _)| !ELSEWHERE.contains(key)) {
        assert!(written.contains(key), "{key} is missing in {text}");
    }
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
    // With fewer than three nodes, the keeper is the first one on the command line.
    assert_eq!(made["keepers"], serde_json::json!(["b"]));
    assert_eq!(made["lease_ms"], 3000);
    assert_eq!(made["nodes"][0]["keeper"], false);
    assert_eq!(made["nodes"][1]["keeper"], true);
}

#[test]
fn keepers_and_lease_follow_the_options() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    let nodes = "--nodes e=10.0.0.5:1,a=10.0.0.1:1,c=10.0.0.3:1,b=10.0.0.2:1";
    made(path, &format!("{nodes} --out first"));
    let out = path.join("first");
    for name in ["a", "b", "c", "e"] {
        let config = load(&out, name);
        assert_eq!(keepers(&config), ["a", "c", "e"]);
        assert_eq!(members(&config).lease.length, Duration::from_secs(3));
        assert_eq!(config.address().to_string(), {
            let last = 1 + name.as_bytes()[0] - b'a';
            format!("10.0.0.{last}:1")
        });
    }
    made(
        path,
        &format!("{nodes} --keepers b --lease 1500ms --out one"),
    );
    let config = load(&path.join("one"), "a");
    assert_eq!(keepers(&config), ["b"]);
    assert_eq!(members(&config).lease.length, Duration::from_millis(1500));
    let text = made(path, &format!("{nodes} --keepers c,a,b --out three"));
    assert!(text.contains("a, b, c are the keepers"), "{text}");
    assert_eq!(keepers(&load(&path.join("three"), "e")), ["a", "b", "c"]);
    for (more, words) in [
        ("--keepers a,x,b", &["--keepers", "\"x\"", "--nodes"][..]),
        ("--keepers a,a,b", &["--keepers", "two nodes", "\"a\""]),
        ("--keepers a,b", &["--keepers", "2 keepers", "than 1:"]),
        ("--keepers a,b,c,e", &["4 keepers", "than 3:"]),
        ("--lease 499ms", &["--lease", "499ms", "500ms", "1h"]),
        ("--lease 3x", &["--lease", "'3x'", "unit"]),
    ] {
        refused(path, &format!("{nodes} --out no {more}"), words);
    }
    let arguments = format!("{nodes} --out no --add x=10.0.0.9:1");
    nothing_made(path, &arguments, &["--nodes", "--add"]);
    nothing_made(path, "--out no", &["--nodes"]);
}

#[test]
fn one_node_is_its_own_keeper() {
    let folder = tempdir().unwrap();
    let text = made(folder.path(), "--nodes a=127.0.0.1:7401 --out x");
    assert!(text.contains("a is the only keeper"), "{text}");
    // The node is on this machine, so there is nothing to copy.
    assert!(!text.contains("scp"), "{text}");
    assert!(
        text.contains("soloist node --config x/a/soloist.toml"),
        "{text}"
    );
    let config = load(&folder.path().join("x"), "a");
    assert_eq!(keepers(&config), ["a"]);
    assert!(config.members.data.join("first-start").exists());
}

#[test]
fn added_nodes_have_the_same_settings() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    made(path, &format!("--nodes {NODES} --lease 2s --out x"));
    let out = path.join("x");
    // Edit the same setting in all files, as an administrator would.
    for name in ["a", "b", "c"] {
        let file = out.join(name).join("soloist.toml");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("[locks]", "[locks] # ours\nmax_local_turns = 3");
        fs::write(&file, text).unwrap();
    }
    let before = fs::read(out.join("ca.key")).unwrap();
    let text = made(path, "--add e=10.0.0.5:7401,d=10.0.0.4:7401 --out x");
    for word in ["x/d 10.0.0.4:soloist", "they join", "2 further nodes"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert_eq!(tree(&out), expected(&["a", "b", "c", "d", "e"]));
    assert_eq!(fs::read(out.join("ca.key")).unwrap(), before);
    let a = load(&out, "a");
    for (name, address) in [("d", "10.0.0.4:7401"), ("e", "10.0.0.5:7401")] {
        let config = load(&out, name);
        assert_eq!(config.name.as_str(), name);
        assert_eq!(config.address().to_string(), address);
        assert_eq!(config.identity().unwrap().unwrap().name(), name);
        assert_eq!(config.fingerprint(), a.fingerprint());
        assert_eq!(keepers(&config), ["a", "b", "c"]);
        assert_eq!(config.rules.rule("x").max_local_turns(), 3);
        let text = fs::read_to_string(out.join(name).join("soloist.toml")).unwrap();
        assert!(text.contains("[locks] # ours"), "{text}");
        let mode = out.join(name).join("node.key").metadata().unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }
    let text = made(path, "--add f=10.0.0.6:7401 --out x --json");
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["nodes"][0]["name"], "f");
    assert_eq!(made["nodes"][0]["keeper"], false);
    assert_eq!(made["keepers"], serde_json::json!(["a", "b", "c"]));
    assert_eq!(made["lease_ms"], 2000);
    assert_eq!(made.get("cluster"), None);
}

#[test]
fn nodes_that_cannot_be_added_are_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    refused(path, "--add d=10.0.0.4:1 --out x", &["cannot read x"]);
    fs::create_dir(path.join("empty")).unwrap();
    let words = ["empty", "soloist.toml", "--out"];
    refused(path, "--add d=10.0.0.4:1 --out empty", &words);
    made(path, &format!("--nodes {NODES},g=10.0.0.7:7401 --out x"));
    let out = path.join("x");
    for (add, words) in [
        ("a=10.0.0.4:1", &["two nodes", "\"a\""][..]),
        ("d=10.0.0.1:7401", &["10.0.0.1:7401", "\"a\""]),
        ("d=10.0.0.7:7401", &["10.0.0.7:7401", "\"g\""]),
        ("d=10.0.0.4:1,d=10.0.0.5:1", &["two nodes", "\"d\""]),
        ("d=10.0.0.4:0", &["port 0"]),
        ("d", &["'d'", "NAME=HOST:PORT"]),
    ] {
        refused(path, &format!("--add {add} --out x"), words);
    }
    for option in ["--cluster y", "--algorithm fair", "--lease 1s"] {
        let arguments = format!("--add d=10.0.0.4:1 --out x {option}");
        let key = option.split(' ').next().unwrap();
        nothing_made(path, &arguments, &["--add", key]);
    }
    // A keeper whose folder is gone still exists.
    fs::rename(out.join("a"), path.join("away")).unwrap();
    refused(path, "--add a=10.0.0.9:1 --out x", &["two nodes", "\"a\""]);
    fs::rename(path.join("away"), out.join("a")).unwrap();
    std::os::unix::fs::symlink("nowhere", out.join("d")).unwrap();
    refused(path, "--add d=10.0.0.4:1 --out x", &["x/d", "overwritten"]);
    fs::remove_file(out.join("d")).unwrap();

    let add = "--add d=10.0.0.4:1 --out x";
    let file = out.join("c/soloist.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"3s\"", "\"4s\"")).unwrap();
    refused(
        path,
        add,
        &["x/a/soloist.toml", "x/c/soloist.toml", "differ"],
    );
    fs::write(&file, "nonsense").unwrap();
    refused(path, add, &["x/c/soloist.toml:1"]);
    fs::write(&file, text).unwrap();
    made(path, add);
}

#[test]
fn without_the_clusters_ca_no_node_is_added() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    made(path, &format!("--nodes {NODES} --out x"));
    made(path, &format!("--nodes {NODES} --out y"));
    let add = "--add d=10.0.0.4:1 --out x";
    for file in ["ca.pem", "ca.key"] {
        let (here, away) = (path.join("x").join(file), path.join("away"));
        fs::rename(&here, &away).unwrap();
        let named = format!("x/{file}");
        refused(
            path,
            add,
            &["needs the cluster's CA", "cannot read", &named],
        );
        // A file of another cluster does not match.
        fs::copy(path.join("y").join(file), &here).unwrap();
        refused(path, add, &["x/ca.key", "does not match", "x/ca.pem"]);
        fs::rename(&away, &here).unwrap();
    }
    for file in ["ca.pem", "ca.key"] {
        fs::copy(path.join("y").join(file), path.join("x").join(file)).unwrap();
    }
    refused(path, add, &["x/ca.pem", "not the CA", "x/a/ca.pem"]);
}

#[test]
fn the_help_shows_first_and_next_steps() {
    let folder = tempdir().unwrap();
    let text = made(folder.path(), "--help");
    for word in [
        "--keepers <NAME,...>",
        "--lease <D>",
        "--add <NAME=HOST:PORT,...>",
        "[default: 3s]",
        "soloist init --nodes a=10.0.0.1:7401",
        "soloist init --add d=10.0.0.4:7401",
        "A majority of them must run",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
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
    // One existing entry is enough, and it is found before anything is created.
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
fn other_files_in_the_folder_are_kept() {
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
fn a_folder_that_cannot_be_written_is_reported() {
    let folder = tempdir().unwrap();
    // The name is longer than any file system allows: the final move fails, and nothing is left
    // behind.
    let long = "x".repeat(300);
    refused(
        folder.path(),
        &format!("--nodes {NODES} --out {long}"),
        &["cannot create", "xxx"],
    );
}
