//! `soloist demo --kill`: a node is killed while its worker holds the lock.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use soloist_client::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::shared_file::SharedFile;
use super::{Args, Turn, tell};
use crate::processes::{Processes, name};
use crate::{Verdict, output};

/// Measurements of the kill.
#[derive(Serialize)]
pub struct Killed {
    node: String,
    lease_ms: u128,
    /// Fence of the worker that was inside.
    fence: u64,
    /// Time from the kill to the next entry.
    takeover_ms: u128,
    next_worker: String,
    next_fence: u64,
    /// Time from the restart until the node was a member again.
    back_after_ms: u128,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} was killed inside (fence {}); {} entered {} ms later (fence {}; the lease is {} ms); \
             started again, it took part after {} ms",
            self.node,
            self.fence,
            self.next_worker,
            self.takeover_ms,
            self.next_fence,
            self.lease_ms,
            self.back_after_ms
        )
    }
}

/// Messages from the workers.
enum News {
    Turn(Turn, Instant),
    /// The worker is inside, on the node that will be killed.
    Inside {
        worker: String,
        fence: u64,
    },
}

/// Everything that a worker needs.
#[derive(Clone)]
struct Job {
    shared_file: SharedFile,
    news: mpsc::UnboundedSender<News>,
    end: Instant,
    /// The node to kill, once it is time to kill it.
    doomed: watch::Receiver<Option<usize>>,
}

pub async fn show(args: &Args) -> Result<Verdict> {
    let nodes = usize::from(args.nodes);
    ensure!(
        nodes >= 2,
        "--kill needs at least 2 nodes, and --nodes says 1"
    );
    let mut processes = Processes::start(nodes, args.lease, &args.algorithm).await?;
    let shared_file = SharedFile::new(processes.folder())?;
    args.introduce("node processes")?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs(args.seconds) + args.lease;
    let (doom, doomed) = watch::channel(None);
    let (news, mut heard) = mpsc::unbounded_channel();
    let job = Job {
        shared_file: shared_file.clone(),
        news,
        end,
        doomed,
    };
    let mut workers = Vec::new();
    for number in 1..=nodes {
        workers.push(job.start(&processes, number, args.workers).await?);
    }
    // The last node: not a keeper, if there are enough nodes.
    let victim = nodes;
    let mut show = Show {
        args,
        begin,
        seen: Vec::new(),
        killed: None,
        killed_at: None,
    };
    let doom_at = begin + Duration::from_secs(args.seconds) / 4;
    while Instant::now() < end || workers.iter().flatten().any(|worker| !worker.is_finished()) {
        let timeout = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            Some(news) = heard.recv() => match news {
                News::Inside { worker, fence } => {
                    let killed_at = Instant::now();
                    processes.kill(victim)?;
                    shared_file.note(&format!("killed {worker} {fence}"))?;
                    workers[victim - 1].drain(..).for_each(|worker| worker.abort());
                    doom.send_replace(None);
                    show.die(&worker, fence, killed_at)?;
                }
                News::Turn(turn, entered) => {
                    let is_next = show.turn(turn, entered)?;
                    if is_next {
                        let started = Instant::now();
                        processes.start_node(victim)?;
                        processes.takes_part(victim, nodes).await?;
                        show.back(&name(victim), started.elapsed())?;
                        workers[victim - 1] = job.start(&processes, victim, args.workers).await?;
                    }
                }
            },
            () = timeout => {}
        }
        if Instant::now() >= doom_at && show.killed_at.is_none() && doom.borrow().is_none() {
            doom.send_replace(Some(victim));
        }
    }
    for worker in workers.into_iter().flatten() {
        worker.await??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut summary = args.sum_up(&show.seen, &shared_file, seconds)?;
    ensure!(
        show.killed.is_some(),
        "nobody entered after the kill: give it more time with --seconds"
    );
    summary.kill = show.killed;
    args.conclude(summary)
}

/// Progress of the demo.
struct Show<'a> {
    args: &'a Args,
    begin: Instant,
    seen: Vec<Turn>,
    killed: Option<Killed>,
    /// The killed node, the fence of its worker, and the time of the kill.
    killed_at: Option<(String, u64, Instant)>,
}

impl Show<'_> {
    fn say(&self, text: &str) -> Result<()> {
        match self.args.json {
            true => Ok(()),
            false => output::text(&format!(
                "{:>7.3} s  {text}\n",
                self.begin.elapsed().as_secs_f64()
            )),
        }
    }

    fn die(&mut self, worker: &str, fence: u64, at: Instant) -> Result<()> {
        self.say(&format!(
            "{worker:<7} is inside with fence {fence}: its node is killed (kill -9)"
        ))?;
        let node = worker.split('/').next().unwrap_or_default();
        self.killed_at = Some((node.to_owned(), fence, at));
        Ok(())
    }

    /// Records a turn of a worker. Returns whether it is the first one after the kill.
    fn turn(&mut self, turn: Turn, entered: Instant) -> Result<bool> {
        let mut is_next = false;
        if let Some((node, fence, at)) = &self.killed_at
            && self.killed.is_none()
            && turn.fence > *fence
        {
            let takeover = entered.saturating_duration_since(*at);
            is_next = true;
            self.say(&format!(
                "{:<7} entered {} ms after the kill",
                turn.worker,
                takeover.as_millis()
            ))?;
            self.killed = Some(Killed {
                node: node.clone(),
                lease_ms: self.args.lease.as_millis(),
                fence: *fence,
                takeover_ms: takeover.as_millis(),
                next_worker: turn.worker.clone(),
                next_fence: turn.fence,
                back_after_ms: 0,
            });
        }
        if !self.args.json {
            tell(self.begin.elapsed(), &turn)?;
        }
        self.seen.push(turn);
        Ok(is_next)
    }

    fn back(&mut self, node: &str, after: Duration) -> Result<()> {
        if let Some(killed) = &mut self.killed {
            killed.back_after_ms = after.as_millis();
        }
        self.say(&format!(
            "{node:<7} was started again and takes part, {} ms later",
            after.as_millis()
        ))
    }
}

impl Job {
    /// Starts the workers of a node.
    async fn start(
        &self,
        processes: &Processes,
        number: usize,
        count: u16,
    ) -> Result<Vec<JoinHandle<Result<()>>>> {
        let mut workers = Vec::new();
        for worker in 1..=count {
            let client = Client::connect(processes.target(number)).await?;
            let worker = format!("{}/{worker}", name(number));
            workers.push(tokio::spawn(self.clone().work(client, number, worker)));
        }
        Ok(workers)
    }

    async fn work(self, client: Client, node: usize, worker: String) -> Result<()> {
        while Instant::now() < self.end {
            let asked = Instant::now();
            let guard = client.acquire("demo/counter").owner(&worker).await?;
            let (entered, fence) = (Instant::now(), guard.fence());
            if *self.doomed.borrow() == Some(node) {
                self.shared_file.note(&format!("enter {worker} {fence}"))?;
                let _ = self.news.send(News::Inside { worker, fence });
                // Its node is killed while it waits here.
                return std::future::pending().await;
            }
            let number = self.shared_file.add_one(&worker, fence).await?;
            let turn = Turn {
                worker: worker.clone(),
                fence,
                number,
                waited: entered - asked,
                inside: entered.elapsed(),
            };
            guard.release().await?;
            let _ = self.news.send(News::Turn(turn, entered));
        }
        Ok(())
    }
}
