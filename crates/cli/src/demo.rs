//! `soloist demo`: a cluster, workers on all nodes, and a file that only one may touch at a time.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use soloist_node::config::RuleSettings;
use soloist_node::local::{LocalCluster, LocalSettings};
use soloist_node::{Guard, Lock};
use tokio::sync::mpsc;

use crate::{Verdict, output};

/// Show the main job in a few seconds: one at a time, whoever asks
///
/// Starts a cluster on this machine (real sockets, TLS) with workers on all nodes. Each adds 1 to a number in a file
/// that they share: reads it, takes its time, and writes it back, which goes wrong as soon as two do it at once. So each
/// does it under the lock. In the end the file is held against what the workers say.
#[derive(clap::Args)]
pub struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    nodes: u16,

    /// How many workers on each node
    #[arg(long, value_name = "W", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    workers: u16,

    /// For how long
    #[arg(long, value_name = "S", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// The algorithm; `soloist lab list` shows them all
    #[arg(long, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Print the summary as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// One turn of a worker, as it saw it.
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
    /// What the shared file says in the end.
    counter: u64,
    /// Entries while somebody else was inside, by the shared journal.
    overlaps: usize,
    fences_rise: bool,
    fewest_turns: usize,
    most_turns: usize,
    longest_wait_ms: u128,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        super::runtime()?.block_on(self.show())
    }

    async fn show(self) -> Result<Verdict> {
        let folder = tempfile::tempdir().context("no place for the shared file")?;
        let settings = LocalSettings {
            nodes: self.nodes.into(),
            rule: RuleSettings {
                algorithm: self.algorithm.clone(),
                ..RuleSettings::default()
            },
            tls: true,
            folder: folder.path().to_owned(),
        };
        let cluster = LocalCluster::start(settings).await?;
        let desk = Desk::new(folder.path())?;
        if !self.json {
            let (nodes, workers) = (self.nodes, self.nodes * self.workers);
            output::text(&format!(
                "{nodes} nodes with TLS links, {workers} workers, one lock ({}), {} s\n",
                self.algorithm, self.seconds
            ))?;
        }
        let begin = Instant::now();
        let end = begin + Duration::from_secs(self.seconds);
        let (sender, mut turns) = mpsc::unbounded_channel();
        let mut workers = Vec::new();
        for node in &cluster.nodes {
            for number in 1..=self.workers {
                let worker = Worker {
                    name: format!("{}/{number}", node.name()),
                    lock: node.lock("demo/counter")?,
                    desk: desk.clone(),
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
        let summary = self.sum_up(&seen, &desk, seconds)?;
        self.print(&summary)?;
        let counted = summary.counter == summary.entries as u64;
        Ok(Verdict::of(
            counted && summary.overlaps == 0 && summary.fences_rise,
        ))
    }

    fn sum_up(&self, seen: &[Turn], desk: &Desk, seconds: f64) -> Result<Summary> {
        let workers = usize::from(self.nodes) * usize::from(self.workers);
        let mut turns = std::collections::HashMap::new();
        for turn in seen {
            *turns.entry(turn.worker.as_str()).or_insert(0_usize) += 1;
        }
        let waits = seen.iter().map(|turn| turn.waited.as_millis());
        let (overlaps, fences_rise) = desk.judge()?;
        Ok(Summary {
            algorithm: self.algorithm.clone(),
            nodes: self.nodes,
            workers,
            seconds,
            entries: seen.len(),
            counter: desk.counter()?,
            overlaps,
            fences_rise,
            fewest_turns: if turns.len() < workers {
                0
            } else {
                turns.values().copied().min().unwrap_or(0)
            },
            most_turns: turns.values().copied().max().unwrap_or(0),
            longest_wait_ms: waits.max().unwrap_or(0),
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
        ))
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
    desk: Desk,
    turns: mpsc::UnboundedSender<Turn>,
}

impl Worker {
    async fn work(self, end: Instant) -> Result<()> {
        while Instant::now() < end {
            let asked = Instant::now();
            let guard = self.lock.acquire().await?;
            let entered = Instant::now();
            let number = self.desk.add_one(&self.name, &guard).await?;
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

/// What the workers share: a number in a file, and a journal.
#[derive(Clone)]
struct Desk {
    counter: PathBuf,
    journal: PathBuf,
}

impl Desk {
    fn new(folder: &Path) -> Result<Self> {
        let desk = Desk {
            counter: folder.join("counter"),
            journal: folder.join("journal"),
        };
        fs::write(&desk.counter, "0")?;
        File::create(&desk.journal)?;
        Ok(desk)
    }

    async fn add_one(&self, worker: &str, guard: &Guard) -> Result<u64> {
        let fence = guard.fence();
        self.note(&format!("enter {worker} {fence}"))?;
        let number = self.counter()? + 1;
        // A different time each turn, without a dice: 20 to 179 ms.
        let pause = fence.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        tokio::time::sleep(Duration::from_millis(20 + pause % 160)).await;
        fs::write(&self.counter, number.to_string())?;
        self.note(&format!("leave {worker} {fence}"))?;
        Ok(number)
    }

    fn note(&self, line: &str) -> Result<()> {
        let mut journal = OpenOptions::new().append(true).open(&self.journal)?;
        journal.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    fn counter(&self) -> Result<u64> {
        let text = fs::read_to_string(&self.counter)?;
        text.parse()
            .with_context(|| format!("the shared file says {text:?}"))
    }

    /// How many entered while somebody else was inside, and whether fences rose.
    fn judge(&self) -> Result<(usize, bool)> {
        let journal = fs::read_to_string(&self.journal)?;
        let mut inside: Option<&str> = None;
        let (mut overlaps, mut rise, mut last) = (0, true, 0_u64);
        for line in journal.lines() {
            let Some((what, who)) = line.split_once(' ') else {
                bail!("the journal has the line {line:?}");
            };
            if what == "leave" {
                ensure!(
                    overlaps > 0 || inside == Some(who),
                    "{line:?} before its entry"
                );
                inside = None;
                continue;
            }
            overlaps += usize::from(inside.replace(who).is_some());
            let fence = who.rsplit(' ').next().and_then(|fence| fence.parse().ok());
            let fence = fence.context("a fence is a number")?;
            rise &= last < fence;
            last = fence;
        }
        Ok((overlaps, rise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_shows_what_overlaps() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path()).unwrap();
        for line in ["enter a 1", "leave a 1", "enter b 2", "leave b 2"] {
            desk.note(line).unwrap();
        }
        assert_eq!(desk.judge().unwrap(), (0, true));
        for line in ["enter a 3", "enter b 3", "leave a 3", "leave b 3"] {
            desk.note(line).unwrap();
        }
        assert_eq!(desk.judge().unwrap(), (1, false));
    }
}
