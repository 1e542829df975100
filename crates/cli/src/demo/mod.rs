//! `soloist demo`: a cluster with workers on all nodes, which share a file that only one of them
//! may change at a time.

mod kill;
mod shared_file;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use soloist_api::parse_duration;
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleSettings;
use soloist_node::Lock;
use soloist_node::local::{LocalCluster, LocalKeepers, LocalSettings};
use tokio::sync::mpsc;

use crate::{Verdict, output};
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
/// restarted and joins again.
#[derive(clap::Args)]
pub struct Args {
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

    /// Time without contact after which a node is evicted, from 500ms to 60s
    #[arg(long, value_name = "D", default_value = "3s", value_parser = parse_duration)]
    lease: Duration,

    /// Print only the summary, as JSON
    #[arg(long)]
    json: bool,
}

/// One turn of a worker, as the worker saw it.
struct Turn {
    worker: String,
    fence: u64,
    number: u64,
    waited: Duration,
    inside: Duration,
}

#[derive(Serialize)]
struct Summary {
    algorithm: String,
    nodes: u16,
    workers: usize,
    seconds: f64,
    entries: usize,
    /// The number in the shared file at the end.
    counter: u64,
    /// Number of entries, according to the journal, while another worker was inside.
    overlaps: usize,
    fences_rise: bool,
    fewest_turns: usize,
    most_turns: usize,
    longest_wait_ms: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    kill: Option<kill::Killed>,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        if self.lease < Lease::LEAST || self.lease > Duration::from_secs(60) {
            bail!("--lease {:?}: use {:?} to 60s", self.lease, Lease::LEAST);
        }
        let runtime = super::runtime()?;
        match self.kill {
            true => runtime.block_on(kill::show(&self)),
            false => runtime.block_on(self.show()),
        }
    }

    async fn show(&self) -> Result<Verdict> {
        let folder = tempfile::tempdir().context("no place for the shared file")?;
        let settings = LocalSettings {
            nodes: self.nodes.into(),
            rule: RuleSettings {
                algorithm: self.algorithm.clone(),
                ..RuleSettings::default()
            },
            tls: true,
            folder: folder.path().to_owned(),
            keepers: LocalKeepers {
                lease: Lease {
                    length: self.lease,
                    ..Lease::default()
                },
                data: folder.path().join("data"),
            },
        };
        let cluster = LocalCluster::start(settings).await?;
        let shared_file = SharedFile::new(folder.path())?;
        self.introduce("nodes")?;
        let begin = Instant::now();
        let end = begin + Duration::from_secs(self.seconds);
        let (sender, mut turns) = mpsc::unbounded_channel();
        let mut workers = Vec::new();
        for node in &cluster.nodes {
            for number in 1..=self.workers {
                let worker = Worker {
                    name: format!("{}/{number}", node.name()),
                    lock: node.lock("demo/counter")?,
                    shared_file: shared_file.clone(),
                    turns: sender.clone(),
                };
                workers.push(tokio::spawn(worker.work(end)));
            }
        }
        drop(sender);
        let mut seen = Vec::new();
        while let Some(turn) = turns.recv().await {
            if !self.json {
                tell(begin.elapsed(), &turn)?;
            }
            seen.push(turn);
        }
        for worker in workers {
            worker.await??;
        }
        let seconds = begin.elapsed().as_secs_f64();
        cluster.stop().await;
        self.conclude(self.sum_up(&seen, &shared_file, seconds)?)
    }

    fn introduce(&self, nodes: &str) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let workers = self.nodes * self.workers;
        output::text(&format!(
            "{} {nodes} with TLS links, {workers} workers, one lock ({}), {} s\n",
            self.nodes, self.algorithm, self.seconds
        ))
    }

    fn conclude(&self, summary: Summary) -> Result<Verdict> {
        self.print(&summary)?;
        let counted = summary.counter == summary.entries as u64;
        Ok(Verdict::of(
            counted && summary.overlaps == 0 && summary.fences_rise,
        ))
    }

    fn sum_up(&self, seen: &[Turn], shared_file: &SharedFile, seconds: f64) -> Result<Summary> {
        let workers = usize::from(self.nodes) * usize::from(self.workers);
        let mut turns = std::collections::HashMap::new();
        for turn in seen {
            *turns.entry(turn.worker.as_str()).or_insert(0_usize) += 1;
        }
        let waits = seen.iter().map(|turn| turn.waited.as_millis());
        let (overlaps, fences_rise) = shared_file.judge()?;
        Ok(Summary {
            algorithm: self.algorithm.clone(),
            nodes: self.nodes,
            workers,
            seconds,
            entries: seen.len(),
            counter: shared_file.counter()?,
            overlaps,
            fences_rise,
            fewest_turns: if turns.len() < workers {
                0
            } else {
                turns.values().copied().min().unwrap_or(0)
            },
            most_turns: turns.values().copied().max().unwrap_or(0),
            longest_wait_ms: waits.max().unwrap_or(0),
            kill: None,
        })
    }

    fn print(&self, summary: &Summary) -> Result<()> {
        if self.json {
            return output::json(summary);
        }
        let fences = if summary.fences_rise {
            "fences rise"
        } else {
            "FENCES DO NOT RISE"
        };
        output::text(&format!(
            "\n{} entries in {:.1} s; the number in the file is {}; {} overlapped; {fences}\n\
             each worker had {} to {} turns and waited {} ms at most\n",
            summary.entries,
            summary.seconds,
            summary.counter,
            match summary.overlaps {
                0 => "nothing".to_owned(),
                overlaps => format!("{overlaps} ENTRIES"),
            },
            summary.fewest_turns,
            summary.most_turns,
            summary.longest_wait_ms,
        ))?;
        match &summary.kill {
            Some(killed) => output::text(&killed.to_string()),
            None => Ok(()),
        }
    }
}

fn tell(at: Duration, turn: &Turn) -> Result<()> {
    let Turn {
        worker,
        fence,
        number,
        ..
    } = turn;
    output::text(&format!(
        "{:>7.3} s  {worker:<7} wrote {number:>3}  fence {fence}  waited {:>4} ms, inside {:>3} ms\n",
        at.as_secs_f64(),
        turn.waited.as_millis(),
        turn.inside.as_millis(),
    ))
}

struct Worker {
    name: String,
    lock: Lock,
    shared_file: SharedFile,
    turns: mpsc::UnboundedSender<Turn>,
}

impl Worker {
    async fn work(self, end: Instant) -> Result<()> {
        while Instant::now() < end {
            let asked = Instant::now();
            let guard = self.lock.acquire().await?;
            let entered = Instant::now();
            let number = self
                .shared_file
                .add_one(&self.name, guard.fence().number())
                .await?;
            let turn = Turn {
                worker: self.name.clone(),
                fence: guard.fence().number(),
                number,
                waited: entered - asked,
                inside: entered.elapsed(),
            };
            guard.release().await?;
            let _ = self.turns.send(turn);
        }
        Ok(())
    }
}
