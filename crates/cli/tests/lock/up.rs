//! `soloist up`, as a new user sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{Cluster, NodeProcess};
use crate::{Running, stderr, stdout};

/// A user with an empty home directory.
pub(crate) struct User {
    home: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        User { home }
    }

    /// The executable, without any setting of the node's address.
    pub(crate) fn soloist(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.current_dir(self.home.path());
        command.env("XDG_RUNTIME_DIR", self.home.path());
        command.env_remove("SOLOIST_API").env_remove("RUST_LOG");
        command.args(arguments.split_whitespace());
        command
    }

    /// The sockets that exist, and the links to them.
    fn sockets(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(User::folder(self.home.path())).unwrap();
        folder.map(|entry| entry.unwrap().path()).collect()
    }

    fn folder(home: &Path) -> PathBuf {
        home.join(format!("soloist-{}", rustix::process::getuid().as_raw()))
    }

    /// Starts a cluster and returns it with its output.
    pub(crate) fn up(&self, arguments: &str) -> (Running, String) {
        let mut running = Running::start(&mut self.soloist(arguments));
        let mut said = String::new();
        while !said.contains("Ctrl-C ends it.") {
            said += &running.line();
            said.push('\n');
        }
        (running, said)
    }
}

#[test]
fn the_printed_commands_work_without_arguments() {
    let user = User::new();
    let (mut up, said) = user.up("up --nodes 3");
    for word in [
        "3 nodes are up (raymond)",
        "soloist lock nightly",
        "soloist who nightly",
        "soloist watch",
        "/v1/cluster",
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert!(user.soloist("status").status().unwrap().success());

    let mut lock = user.soloist("lock --owner ann nightly -- sh -c");
    lock.arg("echo $SOLOIST_FENCE; exec sleep 1000");
    let mut holder = Running::start(&mut lock);
    let fence = holder.line();
    let who = user.soloist("who nightly --json").output().unwrap();
    assert_eq!(who.status.code(), Some(0), "{}", stderr(&who));
    let who: Value = serde_json::from_slice(&who.stdout).unwrap();
    assert_eq!(who["state"], "held");
    assert_eq!(who["holder"]["owner"], "ann");
    assert_eq!(who["holder"]["fence"], fence);

    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
    assert_eq!(user.sockets(), Vec::<PathBuf>::new());
    assert_eq!(holder.code(), Some(76), "its lock went with the cluster");
    let nobody = user.soloist("who nightly").output().unwrap();
    assert_eq!(nobody.status.code(), Some(69), "{}", stderr(&nobody));
}

#[test]
fn the_socket_that_it_names_for_another_node_works() {
    let user = User::new();
    let (mut up, said) = user.up("up --nodes 2 --algorithm maekawa");
    let api = said.split("use --api ").nth(1).unwrap();
    let api = api.lines().next().unwrap();
    let mut lock = user.soloist("lock --api");
    lock.args([api, "a", "--", "sh", "-c", "echo $SOLOIST_LOCK"]);
    assert_eq!(stdout(&lock.output().unwrap()), "a\n");
    up.signal(Signal::TERM);
    assert_eq!(up.code(), Some(0));
}

#[test]
fn json_names_every_socket() {
    let user = User::new();
    let mut up = Running::start(&mut user.soloist("up --nodes 2 --json"));
    let mut said = String::new();
    let made: Value = loop {
        said += &up.line();
        if let Ok(made) = serde_json::from_str(&said) {
            break made;
        }
    };
    assert_eq!(made["algorithm"], "raymond");
    assert_eq!(made["nodes"].as_array().unwrap().len(), 2);
    for socket in [&made["socket"], &made["nodes"][1]["socket"]] {
        let mut status = user.soloist("status --api");
        let status = status.arg(socket.as_str().unwrap()).output().unwrap();
        assert_eq!(status.status.code(), Some(0), "{}", stderr(&status));
    }
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
}

#[test]
fn a_second_cluster_is_refused_and_the_first_continues() {
    let user = User::new();
    let (mut up, _) = user.up("up --nodes 1");
    let second = user.soloist("up --nodes 1").output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("already up"), "{second:?}");
    assert!(user.soloist("lock a true").status().unwrap().success());
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
    // After the first one has ended, another one can start.
    let (mut up, _) = user.up("up --nodes 1");
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
}

#[test]
fn sockets_of_a_killed_cluster_are_replaced() {
    let user = User::new();
    let (mut up, _) = user.up("up --nodes 2");
    up.signal(Signal::KILL);
    assert_eq!(up.code(), None);
    assert!(!user.sockets().is_empty());
    let (mut up, _) = user.up("up --nodes 2");
    assert!(user.soloist("lock a true").status().unwrap().success());
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
    assert_eq!(user.sockets(), Vec::<PathBuf>::new());
}

#[test]
fn wrong_input_is_reported() {
    let user = User::new();
    for (arguments, word) in [
        ("up --nodes 0", "0"),
        ("up --nodes 101", "101"),
        ("up --algorithm raymnod", "did you mean 'raymond'?"),
    ] {
        let output = user.soloist(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    let folder = User::folder(user.home.path());
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let output = user.soloist("up").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("chmod 700"), "{}", stderr(&output));
}

#[test]
fn ending_it_logs_no_error() {
    let user = User::new();
    let log = user.home.path().join("log");
    let mut command = user.soloist("up --nodes 3");
    command.stderr(fs::File::create(&log).unwrap());
    let mut up = Running::start(&mut command);
    while !up.line().contains("Ctrl-C ends it.") {}
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
    let said = fs::read_to_string(log).unwrap();
    assert!(!said.contains("ERROR"), "{said}");
}

/// A cluster of `soloist up`, and a node of another cluster. The tests run commands in that node's
/// folder.
fn beside_a_node() -> (User, Running, Cluster, NodeProcess) {
    let user = User::new();
    let (up, _) = user.up("up --nodes 1");
    let cluster = Cluster::init(1, "raymond");
    let mut node = cluster.start(0, "");
    node.ready();
    node.says("joined the epoch");
    (user, up, cluster, node)
}

#[test]
fn the_node_of_the_current_folder_comes_before_a_cluster_of_up() {
    let (user, mut up, _cluster, node) = beside_a_node();
    let here = |arguments: &str| {
        let mut command = user.soloist(arguments);
        command.current_dir(node.socket.parent().unwrap());
        command.output().unwrap()
    };
    let mut lock = node.lock("nightly", "echo in; exec sleep 1000");
    let mut holder = Running::start(&mut lock);
    holder.line();
    let asked = here("lock -n nightly true");
    assert_eq!(asked.status.code(), Some(75), "it is held on this node");
    // The cluster of `soloist up` is used on request.
    let asked = here("lock --api up -n nightly true");
    assert_eq!(asked.status.code(), Some(0), "{}", stderr(&asked));
    assert_eq!(stderr(&asked), "", "it was asked for");
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
}

#[test]
fn a_cluster_of_up_does_not_replace_a_node_that_is_down() {
    let (user, mut up, cluster, mut node) = beside_a_node();
    node.running.signal(Signal::KILL);
    node.running.code();
    assert!(node.socket.exists(), "it is left behind");
    let here = |arguments: &str| {
        let mut command = user.soloist(arguments);
        command.current_dir(cluster.file(0, ""));
        command.output().unwrap()
    };
    let asked = here("lock -n nightly true");
    assert_eq!(asked.status.code(), Some(2), "{}", stderr(&asked));
    for word in ["unix:soloist.sock", "up.sock", "--api", "SOLOIST_API"] {
        assert!(stderr(&asked).contains(word), "{}", stderr(&asked));
    }
    // If no socket of a node exists, the cluster of `soloist up` is used, with a note on stderr.
    fs::remove_file(&node.socket).unwrap();
    let asked = here("lock -n nightly true");
    assert_eq!(asked.status.code(), Some(0), "{}", stderr(&asked));
    assert!(
        stderr(&asked).contains("`soloist up`"),
        "{}",
        stderr(&asked)
    );
    up.signal(Signal::INT);
    assert_eq!(up.code(), Some(0));
}
