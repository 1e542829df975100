//! `soloist node` processes, configured by `soloist init`.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use soloist_client::api::{self, NodeState};
use soloist_client::{Client, Target};
use soloist_testing::free;
use tempfile::TempDir;

use crate::network::{Namespace, Network};
use crate::{LEASE, LOCKS, until};

/// Parameters of a cluster.
pub(crate) struct Plan {
    pub nodes: usize,
    /// Number of keepers, which are the first nodes.
    pub keepers: usize,
    pub lease: Duration,
    /// Whether each node has a network namespace of its own.
    pub network: bool,
    /// Whether they are on one machine there.
    pub is_one_machine: bool,
    /// Whether other nodes know each node by a host name (see `Cluster::set_hosts`).
    pub named: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            nodes: 5,
            keepers: 3,
            lease: LEASE,
            network: false,
            is_one_machine: false,
            named: false,
        }
    }
}

/// Nodes `n0`, `n1` and so on, running or not. Running ones are killed on drop.
pub(crate) struct Cluster {
    folder: TempDir,
    addresses: Vec<String>,
    processes: Vec<Option<Child>>,
    /// Namespace of a node, if it was given one.
    homes: Vec<Option<Namespace>>,
    /// Limit of open files of a node, if it has one.
    files_max: Vec<Option<usize>>,
    pub network: Option<Network>,
}

impl Cluster {
    /// Creates the nodes with `soloist init`, without starting them.
    pub(crate) fn init(plan: &Plan) -> Self {
        let network = plan.network.then(|| match plan.is_one_machine {
            true => Network::on_one_machine(plan.nodes),
            false => Network::new(plan.nodes),
        });
        let addresses = (0..plan.nodes).map(|node| match &network {
            Some(network) => format!("{}:7401", network.host(node)),
            None if plan.named => format!("{}:7401", host_name(node)),
            None => free::address(),
        });
        let cluster = Cluster {
            folder: tempfile::tempdir().unwrap(),
            addresses: addresses.collect(),
            processes: (0..plan.nodes).map(|_| None).collect(),
            homes: (0..plan.nodes).map(|_| None).collect(),
            files_max: vec![None; plan.nodes],
            network,
        };
        let all: Vec<usize> = (0..plan.nodes).collect();
        let keepers = (0..plan.keepers).map(|keeper| format!("n{keeper}"));
        let output = cluster
            .soloist()
            .args(["init", "--out", ".", "--nodes", &cluster.listed(&all)])
            .args(["--keepers", &keepers.collect::<Vec<_>>().join(",")])
            .args(["--lease", &format!("{}ms", plan.lease.as_millis())])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        for node in all {
            cluster.spread_algorithms(node);
        }
        cluster
    }

    /// Starts a cluster and waits until all nodes are members.
    pub(crate) async fn start(plan: Plan) -> Self {
        let mut cluster = Self::init(&plan);
        for node in 0..plan.nodes {
            cluster.spawn(node);
        }
        let all: Vec<usize> = (0..plan.nodes).collect();
        cluster.together(&all).await;
        cluster
    }

    /// Adds nodes with `soloist init --add`, without starting them.
    pub(crate) fn add(&mut self, count: usize) {
        let before = self.addresses.len();
        for _ in 0..count {
            self.addresses.push(free::address());
            self.processes.push(None);
            self.homes.push(None);
            self.files_max.push(None);
        }
        let added: Vec<usize> = (before..before + count).collect();
        let output = self
            .soloist()
            .args(["init", "--out", ".", "--add", &self.listed(&added)])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }

    /// Gives each lock the algorithm that its name begins with.
    fn spread_algorithms(&self, node: usize) {
        let file = self.file(node, "soloist.toml");
        let mut text = fs::read_to_string(&file).unwrap();
        for lock in LOCKS {
            let (algorithm, _) = lock.split_once('/').unwrap();
            let pattern = format!("pattern = \"{algorithm}/**\"");
            text += &format!("[[lock]]\n{pattern}\nalgorithm = \"{algorithm}\"\n");
        }
        fs::write(file, text).unwrap();
    }

    /// Sets the lease of a node, from its next start on.
    pub(crate) fn set_lease(&self, node: usize, lease: Duration) {
        let file = self.file(node, "soloist.toml");
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().map(|line| match line.starts_with("lease =") {
            true => format!("lease = \"{}ms\"\n", lease.as_millis()),
            false => format!("{line}\n"),
        });
        let changed: String = lines.collect();
        assert_ne!(changed, text, "it had another lease");
        fs::write(file, changed).unwrap();
    }

    fn listed(&self, nodes: &[usize]) -> String {
        let listed = nodes
            .iter()
            .map(|&node| format!("n{node}={}", self.addresses[node]));
        listed.collect::<Vec<_>>().join(",")
    }

    /// The executable, in the cluster's folder.
    pub(crate) fn soloist(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command
            .current_dir(self.folder.path())
            .env_remove("RUST_LOG");
        command
    }

    /// Runs the executable, connected to a node.
    pub(crate) fn soloist_at(&self, node: usize, arguments: &str) -> Output {
        let mut command = self.soloist();
        command.env("SOLOIST_API", self.file(node, "soloist.sock"));
        command.args(arguments.split_whitespace()).output().unwrap()
    }

    /// Number of nodes, running or not.
    pub(crate) fn size(&self) -> usize {
        self.addresses.len()
    }

    /// Returns whether a node's process was started and not yet ended.
    pub(crate) fn runs(&self, node: usize) -> bool {
        self.processes[node].is_some()
    }

    /// The address that other nodes dial.
    pub(crate) fn address(&self, node: usize) -> &str {
        &self.addresses[node]
    }

    /// The cluster's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in a node's folder.
    pub(crate) fn file(&self, node: usize, name: &str) -> PathBuf {
        self.folder.path().join(format!("n{node}")).join(name)
    }

    /// The command that runs a node: in its namespaces if it has any, otherwise with its limit of
    /// open files.
    pub(crate) fn node_command(&self, node: usize) -> Command {
        let network = self.network.as_ref().map(|network| network.of(node));
        let homes: Vec<_> = network.into_iter().chain(&self.homes[node]).collect();
        let mut command = match (homes.is_empty(), self.files_max[node]) {
            (true, None) => self.soloist(),
            (true, Some(files)) => {
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={files}:{files}"));
                command.arg(env!("CARGO_BIN_EXE_soloist"));
                command.env_remove("RUST_LOG");
                command
            }
            (false, _) => {
                let mut command = Command::new("nsenter");
                homes.iter().for_each(|home| {
                    command.args(home.enter());
                });
                command.arg(env!("CARGO_BIN_EXE_soloist"));
                command.env_remove("RUST_LOG");
                command
            }
        };
        command.args(["node", "--drain", "0s", "--config"]);
        command.arg(self.file(node, "soloist.toml"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the node in this namespace, from its next start on.
    pub(crate) fn give_home(&mut self, node: usize, home: Namespace) {
        self.homes[node] = Some(home);
    }

    /// Sets the address of each node's host name as this node sees it, from its next start on.
    pub(crate) fn set_hosts(&mut self, node: usize, hosts: &[String]) {
        let named = hosts.iter().enumerate();
        let lines = named.map(|(other, host)| format!("{host} {}\n", host_name(other)));
        let file = self.file(node, "hosts");
        fs::write(&file, lines.collect::<String>()).unwrap();
        let home = Namespace::new("mnt");
        home.run(&format!("mount --bind {} /etc/hosts", file.display()));
        self.give_home(node, home);
    }

    /// Limits the open files of a node, from its next start on. The node cannot raise this limit.
    pub(crate) fn limit_files(&mut self, node: usize, files: usize) {
        self.files_max[node] = Some(files);
    }

    /// The namespace that a node was given.
    pub(crate) fn home(&self, node: usize) -> &Namespace {
        self.homes[node].as_ref().expect("it has a home")
    }

    /// Starts a node that is not running.
    pub(crate) fn spawn(&mut self, node: usize) {
        assert!(self.processes[node].is_none(), "n{node} runs");
        let log = self.file(node, "log");
        let log = File::options().create(true).append(true).open(log);
        let mut command = self.node_command(node);
        command.stdout(Stdio::null()).stderr(log.unwrap());
        self.processes[node] = Some(command.spawn().unwrap());
    }

    /// Starts a node that is not running, and waits until it is a member.
    pub(crate) async fn restart(&mut self, node: usize) {
        self.spawn(node);
        self.takes_part(node).await;
    }

    pub(crate) fn signal(&self, node: usize, signal: Signal) {
        let child = self.processes[node].as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Kills a node with SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        self.signal(node, Signal::KILL);
        let mut child = self.processes[node].take().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "n{node}");
    }

    /// Stops a node with SIGTERM, waits until it has exited, and returns how long that took.
    pub(crate) async fn end(&mut self, node: usize) -> Duration {
        let began = Instant::now();
        self.signal(node, Signal::TERM);
        let mut child = self.processes[node].take().unwrap();
        let mut code = None;
        until("the node ends", async || {
            code = child.try_wait().unwrap();
            code.is_some()
        })
        .await;
        let code = code.and_then(|status| status.code());
        assert_eq!(code, Some(0), "n{node}: {}", self.log(node));
        began.elapsed()
    }

    /// The node's log so far.
    pub(crate) fn log(&self, node: usize) -> String {
        fs::read_to_string(self.file(node, "log")).unwrap_or_default()
    }

    /// Number of elections that a node has won.
    pub(crate) fn elections_won(&self, node: usize) -> usize {
        self.log(node)
            .matches("this keeper became the leader term")
            .count()
    }

    /// Waits until the log of a node contains these words.
    pub(crate) async fn says(&self, node: usize, words: &str) {
        let what = format!("n{node} logs {words:?}");
        until(&what, async || self.log(node).contains(words)).await;
    }

    /// The address of a node's API.
    pub(crate) fn target(&self, node: usize) -> Target {
        Target::socket(self.file(node, "soloist.sock"))
    }

    pub(crate) async fn client(&self, node: usize) -> Client {
        Client::connect(self.target(node)).await.unwrap()
    }

    /// The cluster as a node sees it, or `None` if the node does not answer.
    pub(crate) async fn view(&self, node: usize) -> Option<api::Cluster> {
        let client = Client::connect(self.target(node)).await.ok()?;
        client.cluster().await.ok()
    }

    /// Waits until a node is a member.
    pub(crate) async fn takes_part(&self, node: usize) {
        let what = format!("n{node} is a member");
        until(&what, async || self.is_member(node).await).await;
    }

    /// Returns whether a node is a member.
    pub(crate) async fn is_member(&self, node: usize) -> bool {
        let view = self.view(node).await;
        view.is_some_and(|view| view.state == NodeState::Member)
    }

    /// Waits until exactly these nodes are members of one epoch.
    pub(crate) async fn together(&self, nodes: &[usize]) {
        let names: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
        until("the nodes are together", async || {
            let mut epochs = Vec::new();
            for &node in nodes {
                let Some(view) = self.view(node).await else {
                    return false;
                };
                let members = view.nodes.iter().filter(|node| node.lease_ms.is_some());
                let members: Vec<_> = members.map(|node| node.name.clone()).collect();
                if view.state != NodeState::Member || members != names {
                    return false;
                }
                epochs.push(view.epoch);
            }
            epochs.iter().all(|epoch| *epoch == epochs[0])
        })
        .await;
    }

    /// The keepers' leader, as `soloist cluster` reports it on a node, or `None` if it knows of
    /// none.
    pub(crate) fn leader(&self, asked: usize) -> Option<usize> {
        let output = self.soloist_at(asked, "cluster --json");
        let view: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        view["leader"].as_str()?.strip_prefix('n')?.parse().ok()
    }

    /// Waits until one of the candidates leads the keepers, as a node sees it.
    pub(crate) async fn led_by(&self, asked: usize, candidates: &[usize]) -> usize {
        let mut leader = None;
        until("the keepers have a leader", async || {
            leader = self.leader(asked);
            leader.is_some_and(|leader| candidates.contains(&leader))
        })
        .await;
        leader.unwrap()
    }
}

fn host_name(node: usize) -> String {
    format!("n{node}.test")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.processes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if !std::thread::panicking() {
            return;
        }
        for node in 0..self.addresses.len() {
            let log = self.log(node);
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(40)..];
            eprintln!("--- the last log lines of n{node}:\n{}", last.join("\n"));
        }
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
