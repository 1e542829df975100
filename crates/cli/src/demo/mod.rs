//! `soloist demo`: a cluster with workers on all nodes, which share a file that only one of them
//! may change at a time.

mod kill;
mod log;
mod shared_file;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use soloist_client::Target;
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleSettings;
use soloist_node::local::{LocalCluster, LocalSettings};
use soloist_node::{Guard, Lock, Locks, Node, http};
use tokio::sync::mpsc;

use crate::duration::{self, Given};
use crate::runtime::block_on_all_cores;
use crate::ui::Beside;
use crate::{Verdict, output, signals};
use log::{Log, Turn};
use shared_file::SharedFile;

/// Show mutual exclusion at work, in a few seconds
///
/// Starts a cluster on this machine, with real sockets and TLS, and workers on all nodes. Each
/// worker increments a number in a shared file: it reads the number, pauses, and writes it back.
/// Two workers that did this at the same time would lose an update, so each of them takes the lock
/// first. At the end, the number in the file is compared with the turns that the workers report.
///
/// With --kill, each node is a process of its own, and one of them is killed while its worker holds
/// the lock. The next worker enters when the lease of the dead node has expired. Then the node is
/// restarted and joins again. The demo takes longer than --seconds if the lease requires it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    nodes: u16,

    /// Number of workers per node
    #[arg(long, value_name = "W", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    workers: u16,

    /// Duration in seconds
    #[arg(long, value_name = "S", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Algorithm of the lock; `soloist lab list` lists them
    #[arg(long, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Kill a node while its worker holds the lock (needs at least 2 nodes)
    #[arg(long)]
    kill: bool,

    #[arg(
        long,
        value_name = "D",
        default_value_t = Given(Lease::default().length),
        value_parser = lease,
        help = format!(
            "Time without contact after which a node is evicted, from {}",
            duration::range(Lease::LEAST, LEASE_MAX)
        )
    )]
    lease: Given,

    /// Print a link to a page that shows the cluster, as by `soloist ui`, and stay until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    ui: bool,

    /// Print a line for every entry
    #[arg(short, long)]
    verbose: bool,

    /// Print only the summary, as JSON
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

/// The longest lease that a demo of seconds has a use for.
const LEASE_MAX: Duration = Duration::from_secs(60);

fn lease(text: &str) -> Result<Given, String> {
    duration::parse_within(text, Lease::LEAST, LEASE_MAX)
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        match self.kill {
            true => block_on_all_cores(kill::show(&self)),
            false => block_on_all_cores(self.show()),
        }
    }

    async fn show(&self) -> Result<Verdict> {
        let folder = tempfile::tempdir().context("cannot create a folder for the shared file")?;
        let mut settings = LocalSettings::new(self.nodes.into(), folder.path());
        settings.rule.algorithm = self.algorithm.clone();
        settings.lease.length = self.lease.0;
        let cluster = LocalCluster::start(settings).await?;
        let shared_file = SharedFile::new(folder.path())?;
        let mut log = Log::start(self, &shared_file, "nodes")?;
        let api = match self.ui {
            true => Some(http::serve(&cluster.nodes[0]).await?),
            false => None,
        };
        let page = match &api {
            Some(api) => Some(show_page(&Target::socket(api.socket())).await?),
            None => None,
        };
        let end = log.begin() + self.duration();
        let (sender, mut turns) = mpsc::unbounded_channel();
        let mut workers = Vec::new();
        for node in &cluster.nodes {
            for number in 1..=self.workers {
                let worker = Worker {
                    name: format!("{}/{number}", node.name()),
                    lock: node.lock(LOCK)?,
                    shared_file: shared_file.clone(),
                    turns: sender.clone(),
                };
                workers.push(tokio::spawn(worker.work(end)));
            }
        }
        drop(sender);
        while let Some(turn) = turns.recv().await {
            log.turn(turn)?;
            log.progress(|| None)?;
        }
        for worker in workers {
            worker.await??;
        }
        let verdict = log.conclude(None)?;
        stay(page).await?;
        cluster.stop().await;
        Ok(verdict)
    }

    /// How long the workers work.
    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Starts the page of `--ui` and prints its link.
async fn show_page(target: &Target) -> Result<Beside> {
    let page = Beside::start(target).await?;
    output::text(&format!("in the browser: {}\n", page.link()))?;
    Ok(page)
}

/// Keeps the cluster for the page, if there is one.
async fn stay(page: Option<Beside>) -> Result<()> {
    if page.is_some() {
        let mut signals = signals::Termination::new()?;
        output::text("The page shows the cluster until Ctrl-C.\n")?;
        signals.next().await;
    }
    Ok(())
}

/// The lock that guards the shared file.
const LOCK: &str = "demo/counter";

struct Worker {
    name: String,
    lock: Lock<Node>,
    shared_file: SharedFile,
    turns: mpsc::UnboundedSender<Turn>,
}

impl Worker {
    async fn work(self, end: Instant) -> Result<()> {
        loop {
            let asked = Instant::now();
            let guard = self.lock.acquire().await?;
            let entered = Instant::now();
            if entered >= end {
                return Ok(guard.release().await?);
            }
            let number = self.shared_file.add_one(&self.name, guard.fence()).await?;
            let turn = Turn {
                worker: self.name.clone(),
                fence: guard.fence(),
                number,
                waited: entered - asked,
                inside: entered.elapsed(),
            };
            guard.release().await?;
            let _ = self.turns.send(turn);
        }
    }
}
