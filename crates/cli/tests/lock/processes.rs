//! `soloist node` processes, configured by `soloist init`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use soloist_client::{Client, Target};
use soloist_testing::free;
use tempfile::TempDir;

use crate::{Running, stderr, until};

/// Nodes that are configured but not necessarily running.
pub(crate) struct Cluster {
    folder: TempDir,
    addresses: Vec<String>,
}

/// A running node.
pub(crate) struct NodeProcess {
    pub running: Running,
    pub socket: PathBuf,
    log: PathBuf,
}

impl Cluster {
    /// Creates nodes `n0`, `n1` and so on with `soloist init`.
    pub(crate) fn init(nodes: usize, algorithm: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses: Vec<String> = (0..nodes).map(|_| free::address()).collect();
        let numbered = addresses.iter().enumerate();
        let listed = numbered.map(|(node, address)| format!("n{node}={address}"));
        let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
            .current_dir(folder.path())
            .args(["init", "--out", ".", "--algorithm", algorithm])
            .arg("--nodes")
            .arg(listed.collect::<Vec<_>>().join(","))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        Cluster { folder, addresses }
    }

    pub(crate) fn address(&self, node: usize) -> &str {
        &self.addresses[node]
    }

    /// The path of a file in a node's folder.
    pub(crate) fn file(&self, node: usize, name: &str) -> PathBuf {
        self.folder.path().join(format!("n{node}")).join(name)
    }

    /// Replaces a text in a node's configuration, which must contain it.
    pub(crate) fn change(&self, node: usize, from: &str, to: &str) {
        let file = self.file(node, "soloist.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "no {from:?} in {text}");
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
    }

    fn command(&self, node: usize) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.env_remove("RUST_LOG").arg("node");
        command.arg("--config").arg(self.file(node, "soloist.toml"));
        command
    }

    /// Starts a node, with options separated by spaces. It may not be ready when this returns.
    pub(crate) fn start(&self, node: usize, options: &str) -> NodeProcess {
        self.start_with(node, options, |_| {})
    }

    /// Starts a node whose command is changed before.
    pub(crate) fn start_with(
        &self,
        node: usize,
        options: &str,
        change: impl FnOnce(&mut Command),
    ) -> NodeProcess {
        let log = self.file(node, "log");
        let mut command = self.command(node);
        command.args(options.split_whitespace());
        command.stderr(File::create(&log).unwrap());
        change(&mut command);
        NodeProcess {
            running: Running::start(&mut command),
            socket: self.file(node, "soloist.sock"),
            log,
        }
    }

    /// Starts all nodes and waits until they are ready.
    pub(crate) fn start_all(&self) -> Vec<NodeProcess> {
        let all = (0..self.addresses.len()).map(|node| self.start(node, ""));
        let mut all: Vec<NodeProcess> = all.collect();
        all.iter_mut().for_each(NodeProcess::ready);
        all
    }

    /// Expects that a node does not start: one line on stderr with all these words, and exit code
    /// 2.
    #[track_caller]
    pub(crate) fn refused(&self, node: usize, words: &[&str]) {
        let output: Output = self.command(node).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "no {word:?} in {said}");
        }
    }
}

impl NodeProcess {
    /// Waits until the node logs that it is ready.
    #[track_caller]
    pub(crate) fn ready(&mut self) {
        until("the node is ready", || self.log().contains("ready"));
    }

    /// The node's log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log contains these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        until(words, || self.log().contains(words));
    }

    pub(crate) fn target(&self) -> Target {
        Target::socket(&self.socket)
    }

    pub(crate) async fn client_with_ttl(&self, ttl: Duration) -> Client {
        let client = Client::builder().ttl(ttl);
        client.connect(self.target()).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.target()).await.unwrap()
    }

    /// The executable, connected to this node.
    pub(crate) fn soloist(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.env("SOLOIST_API", &self.socket);
        command
    }

    /// `soloist lock` around a shell script. Options and lock name are separated by spaces.
    pub(crate) fn lock(&self, options: &str, script: &str) -> Command {
        let mut command = self.soloist();
        command.arg("lock").args(options.split_whitespace());
        command.args(["--", "sh", "-c", script]);
        command
    }

    /// Sends SIGTERM.
    pub(crate) fn end(&self) {
        self.running.signal(Signal::TERM);
    }

    /// Expects that the node exits with code 0 and leaves no socket behind.
    #[track_caller]
    pub(crate) fn ended_well(&mut self) {
        let code = self.running.code();
        assert_eq!(code, Some(0), "{}", self.log());
        assert!(!self.socket.exists(), "{} is left", self.socket.display());
    }
}
