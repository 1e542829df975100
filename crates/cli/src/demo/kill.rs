//! `soloist demo --kill`: a node is killed while its worker holds the lock.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use soloist_client::{Client, Fence, Guard, Lock, Locks, Target};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::shared_file::SharedFile;
use super::{Args, LOCK, Log, Turn, show_page, stay};
use crate::Verdict;
use crate::processes::{Processes, Settings, name};
use crate::signals::Termination;
use crate::ui::Beside;

/// Measurements of the kill.
#[derive(Serialize)]
pub(super) struct Killed {
    node: String,
    lease_ms: u128,
    /// Fence of the worker that was inside.
    fence: Fence,
    /// Time from the kill to the next entry.
    takeover_ms: u128,
    next_worker: String,
    next_fence: Fence,
    /// Time from the restart until the node was a member again.
    back_after_ms: u128,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} was killed while it held the lock; {} entered {} ms after the kill\n\
             (the lease of {} ms counts from its last renewal, shortly before the kill)\n\
             {} was restarted and was a member again after {} ms",
            self.node,
            self.next_worker,
            self.takeover_ms,
            self.lease_ms,
            self.node,
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
        fence: Fence,
    },
}

/// What the workers are to do.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Work,
    /// The next worker of this node that enters waits inside until the node is killed.
    Linger(usize),
    Stop,
}

/// Everything that a worker needs.
#[derive(Clone)]
struct Job {
    shared_file: SharedFile,
    news: mpsc::UnboundedSender<News>,
    order: watch::Receiver<Order>,
}

/// Maximum time for the takeover, in addition to two leases.
const TAKEOVER_MAX: Duration = Duration::from_secs(10);

/// Shows the kill. If a signal ends this early, the node processes end with it.
pub(super) async fn show(args: &Args) -> Result<Verdict> {
    let mut signals = Termination::new()?;
    let (verdict, _processes, page) = tokio::select! {
        shown = run(args) => shown?,
        () = signals.next() => return Ok(Verdict::Failed),
    };
    stay(page).await?;
    Ok(verdict)
}

/// Runs the demo. The node processes and the page of `--ui` last as long as what it returns.
async fn run(args: &Args) -> Result<(Verdict, Processes, Option<Beside>)> {
    let nodes = usize::from(args.nodes);
    ensure!(
        nodes >= 2,
        "--kill needs at least 2 nodes, and --nodes says 1"
    );
    let settings = Settings {
        nodes,
        lease: args.lease.0,
        algorithm: &args.algorithm,
        ..Settings::default()
    };
    let mut processes = Processes::start(settings).await?;
    let shared_file = SharedFile::new(processes.folder())?;
    let mut show = Show {
        log: Log::start(args, &shared_file, "node processes")?,
        lease: args.lease.0,
        dead: None,
        killed: None,
    };
    let page = match args.ui {
        true => {
            let targets = (1..=nodes).map(|number| processes.target(number));
            Some(show_page(&Target::any_of(targets)).await?)
        }
        false => None,
    };
    let begin = show.log.begin();
    let (kill_at, end) = (begin + args.duration() / 4, begin + args.duration());
    let give_up_at = end.max(kill_at + 2 * args.lease.0 + TAKEOVER_MAX);
    let (order, orders) = watch::channel(Order::Work);
    let (news, mut heard) = mpsc::unbounded_channel();
    let job = Job {
        shared_file: shared_file.clone(),
        news,
        order: orders,
    };
    let mut workers = Vec::new();
    for number in 1..=nodes {
        workers.push(job.start(&processes, number, args.workers).await?);
    }
    // The last node: not a keeper, if there are enough nodes.
    let victim = nodes;
    while workers.iter().flatten().any(|worker| !worker.is_finished()) {
        let timeout = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            Some(news) = heard.recv() => match news {
                News::Inside { worker, fence } => {
                    let killed_at = Instant::now();
                    processes.kill(victim)?;
                    shared_file.note(&format!("killed {worker} {fence}"))?;
                    workers[victim - 1].drain(..).for_each(|worker| worker.abort());
                    order.send_replace(Order::Work);
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
        show.progress()?;
        let now = Instant::now();
        if now >= kill_at && show.dead.is_none() && *order.borrow() == Order::Work {
            order.send_replace(Order::Linger(victim));
        }
        if now >= end && (show.killed.is_some() || now >= give_up_at) {
            order.send_replace(Order::Stop);
        }
    }
    for worker in workers.into_iter().flatten() {
        worker.await??;
    }
    while let Ok(News::Turn(turn, entered)) = heard.try_recv() {
        show.turn(turn, entered)?;
    }
    let killed = show.killed;
    ensure!(
        killed.is_some(),
        "no worker entered after the kill: the machine may be overloaded"
    );
    let verdict = show.log.conclude(killed)?;
    Ok((verdict, processes, page))
}

/// Progress of the demo.
struct Show<'a> {
    log: Log<'a>,
    lease: Duration,
    /// The killed node, the fence of its worker, and the time of the kill.
    dead: Option<(String, Fence, Instant)>,
    killed: Option<Killed>,
}

impl Show<'_> {
    fn progress(&mut self) -> Result<()> {
        let (dead, lease) = (&self.dead, self.lease);
        let is_over = self.killed.is_some();
        self.log.progress(|| {
            let (node, ..) = dead.as_ref().filter(|_| !is_over)?;
            Some(format!("waiting for the lease of {node} ({lease:?})"))
        })
    }

    fn die(&mut self, worker: &str, fence: Fence, at: Instant) -> Result<()> {
        let node = worker.split('/').next().unwrap_or_default();
        self.log.headline(&format!(
            "KILL      {node} (kill -9) while {worker} holds the lock, fence {fence}"
        ))?;
        self.dead = Some((node.to_owned(), fence, at));
        Ok(())
    }

    /// Records a turn of a worker. Returns whether it is the first one after the kill.
    fn turn(&mut self, turn: Turn, entered: Instant) -> Result<bool> {
        let mut is_next = false;
        if let Some((node, fence, at)) = &self.dead
            && self.killed.is_none()
            && turn.fence > *fence
        {
            let takeover = entered.saturating_duration_since(*at);
            is_next = true;
            self.log.headline(&format!(
                "TAKEOVER  {} entered {} ms after the kill, fence {}",
                turn.worker,
                takeover.as_millis(),
                turn.fence
            ))?;
            self.killed = Some(Killed {
                node: node.clone(),
                lease_ms: self.lease.as_millis(),
                fence: *fence,
                takeover_ms: takeover.as_millis(),
                next_worker: turn.worker.clone(),
                next_fence: turn.fence,
                back_after_ms: 0,
            });
        }
        self.log.turn(turn)?;
        Ok(is_next)
    }

    fn back(&mut self, node: &str, after: Duration) -> Result<()> {
        if let Some(killed) = &mut self.killed {
            killed.back_after_ms = after.as_millis();
        }
        self.log.headline(&format!(
            "RETURN    {node} was restarted and is a member again after {} ms",
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
            let lock = client.lock(LOCK)?.owner(&worker);
            workers.push(tokio::spawn(self.clone().work(lock, number, worker)));
        }
        Ok(workers)
    }

    async fn work(self, lock: Lock<Client>, node: usize, worker: String) -> Result<()> {
        loop {
            let asked = Instant::now();
            let guard = lock.acquire().await?;
            let (entered, fence) = (Instant::now(), guard.fence());
            let order = *self.order.borrow();
            if order == Order::Stop {
                return Ok(guard.release().await?);
            }
            if order == Order::Linger(node) {
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
    }
}
