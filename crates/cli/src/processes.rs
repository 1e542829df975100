//! A cluster of `soloist node` processes on this machine, which can be killed and restarted.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use soloist_bench::Usage;
use soloist_client::{Client, Target};
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleSettings;
use soloist_node::config::Config;
use tempfile::TempDir;

/// Maximum time for a node to join.
const READY_MAX: Duration = Duration::from_secs(60);

/// Nodes `n1`, `n2` and so on, one process each. The first three are keepers, or only the first if
/// there are fewer than three. All of them are killed on drop.
pub(crate) struct Processes {
    folder: TempDir,
    executable: PathBuf,
    running: Vec<Option<Child>>,
}

/// Settings of all nodes.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub nodes: usize,
    pub lease: Duration,
    pub algorithm: &'a str,
    pub max_local_turns: u32,
    pub io_threads: usize,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            nodes: 5,
            lease: Lease::default().length,
            algorithm: RuleSettings::ALGORITHM,
            max_local_turns: RuleSettings::LOCAL_TURNS,
            io_threads: Config::IO_THREADS,
        }
    }
}

impl Processes {
    /// Creates the nodes with `soloist init`, starts them, and waits until all are members.
    pub(crate) async fn start(settings: Settings<'_>) -> Result<Self> {
        let Settings {
            nodes,
            lease,
            algorithm,
            ..
        } = settings;
        let folder = tempfile::tempdir().context("cannot create a folder for the nodes' files")?;
        let executable = std::env::current_exe().context("cannot find this executable")?;
        let listed = free_addresses(nodes)?.into_iter().zip(1..);
        let listed = listed.map(|(address, number)| format!("{}={address}", name(number)));
        let made = Command::new(&executable)
            .args(["init", "--out", ".", "--algorithm", algorithm, "--lease"])
            .arg(format!("{}ms", lease.as_millis()))
            .arg("--nodes")
            .arg(listed.collect::<Vec<_>>().join(","))
            .current_dir(folder.path())
            .output()
            .context("cannot run `soloist init`")?;
        ensure!(
            made.status.success(),
            "`soloist init` failed: {}",
            String::from_utf8_lossy(&made.stderr).trim()
        );
        let mut processes = Processes {
            folder,
            executable,
            running: (0..nodes).map(|_| None).collect(),
        };
        processes.configure(&settings)?;
        for number in 1..=nodes {
            processes.start_node(number)?;
        }
        for number in 1..=nodes {
            processes.takes_part(number, nodes).await?;
        }
        Ok(processes)
    }

    /// Writes the settings that `soloist init` has no option for.
    fn configure(&self, settings: &Settings<'_>) -> Result<()> {
        for number in 1..=self.len() {
            let file = self.folder.path().join(name(number)).join("soloist.toml");
            let text = std::fs::read_to_string(&file)?;
            let usual = format!("# max_local_turns = {}", RuleSettings::LOCAL_TURNS);
            ensure!(text.contains(&usual), "{} lacks {usual:?}", file.display());
            let turns = format!("max_local_turns = {}", settings.max_local_turns);
            let text = text.replace(&usual, &turns);
            let text = format!("io_threads = {}\n{text}", settings.io_threads);
            std::fs::write(&file, text)?;
        }
        Ok(())
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// CPU time and context switches of all running nodes.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let mut sum = Usage::default();
        for child in self.running.iter().flatten() {
            sum += Usage::of_process(child.id())?;
        }
        Ok(sum)
    }

    /// Starts a node that is not running.
    pub(crate) fn start_node(&mut self, number: usize) -> Result<()> {
        let folder = self.folder.path().join(name(number));
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join("log"))
            .context("cannot write a node's log")?;
        let child = Command::new(&self.executable)
            .args(["node", "--drain", "0s", "--config"])
            .arg(folder.join("soloist.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start a node")?;
        self.running[number - 1] = Some(child);
        Ok(())
    }

    /// Waits until a node is a member of an epoch with this many members.
    pub(crate) async fn takes_part(&mut self, number: usize, members: usize) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < READY_MAX {
            if let Some(child) = &mut self.running[number - 1]
                && let Some(status) = child.try_wait()?
            {
                let log = self.log(number);
                bail!("{} ended with {status}:\n{log}", name(number));
            }
            if self.members(number).await == Some(members) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let log = self.log(number);
        bail!("{} did not join within {READY_MAX:?}:\n{log}", name(number))
    }

    async fn members(&self, number: usize) -> Option<usize> {
        use soloist_client::api::NodeState;
        let client = Client::connect(self.target(number)).await.ok()?;
        let cluster = client.cluster().await.ok()?;
        let members = cluster.nodes.iter();
        let members = members.filter(|node| node.lease_ms.is_some()).count();
        (cluster.state == NodeState::Member).then_some(members)
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) -> Result<()> {
        let child = self.running[number - 1].as_ref();
        let child = child.with_context(|| format!("{} is not running", name(number)))?;
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    /// Kills a node with SIGKILL and waits until its process has ended.
    pub(crate) fn kill(&mut self, number: usize) -> Result<()> {
        self.signal(number, Signal::KILL)?;
        self.ended(number)
    }

    /// Waits until a node's process has ended.
    pub(crate) fn ended(&mut self, number: usize) -> Result<()> {
        if let Some(mut child) = self.running[number - 1].take() {
            child.wait()?;
        }
        Ok(())
    }

    /// The address of a node's API.
    pub(crate) fn target(&self, number: usize) -> Target {
        Target::socket(self.folder.path().join(name(number)).join("soloist.sock"))
    }

    /// A folder for files that all nodes share.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn log(&self, number: usize) -> String {
        let file = self.folder.path().join(name(number)).join("log");
        std::fs::read_to_string(file).unwrap_or_default()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn name(number: usize) -> String {
    format!("n{number}")
}

/// Addresses with ports that are free now.
fn free_addresses(count: usize) -> Result<Vec<String>> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    let addresses = addresses.map(|address| Ok(address?.to_string()));
    addresses.collect()
}
