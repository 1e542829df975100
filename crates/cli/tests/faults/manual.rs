//! Random runs that do only what the manual (docs/operations.md) allows. Keepers are killed and
//! replaced, and later their machines return, re-imaged or with their old disks. Workers and the
//! referee are active all the time.
//!
//! A failure prints the seed and the events; `SOLOIST_SEED=7` repeats that seed alone. The seed
//! determines the events and their order, but not the timing of processes and sockets, so it may
//! take several attempts to repeat a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;
use tokio::time::sleep;

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{LOCKS, TIMEOUT};

const LEASES_MS: [u64; 4] = [500, 750, 1000, 2000];
/// The longest pause between two steps of the operator, in milliseconds.
const PAUSE_MS_MAX: u64 = 1500;

/// How long each run lasts before everything is brought back, and the seeds to run.
struct Runs {
    lasts: Duration,
    seeds: std::ops::Range<u64>,
}

impl Runs {
    /// Uses these values unless the environment sets others: `SOLOIST_SEED` (one seed),
    /// `SOLOIST_SEEDS` (number of seeds) and `SOLOIST_SECONDS`.
    fn new(seconds: u64, seeds: std::ops::Range<u64>) -> Self {
        let seeds = match (number("SOLOIST_SEED"), number("SOLOIST_SEEDS")) {
            (Some(seed), _) => seed..seed + 1,
            (None, Some(count)) => seeds.start..seeds.start + count,
            (None, None) => seeds,
        };
        let seconds = number("SOLOIST_SECONDS").unwrap_or(seconds);
        let lasts = Duration::from_secs(seconds);
        Runs { lasts, seeds }
    }

    async fn run(self) {
        for seed in self.seeds {
            Run::start(seed).await.last(self.lasts).await;
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}={text:?} is not a number")))
}

#[tokio::test(flavor = "multi_thread")]
async fn keepers_are_replaced_and_return() {
    Runs::new(10, 3..4).run().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: SOLOIST_SECONDS for each of SOLOIST_SEEDS runs"]
async fn keepers_are_replaced_and_return_for_long() {
    Runs::new(50, 1..6).run().await;
}

/// A seeded random generator.
struct Random(Pcg64);

impl Random {
    /// A random number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("it fits");
        usize::try_from(self.0.next_u64() % limit).expect("it fits")
    }

    fn one_of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// The events so far. They are printed if the run fails.
struct Story {
    seed: u64,
    began: Instant,
    events: Vec<String>,
}

impl Story {
    fn tell(&mut self, event: String) {
        let at = self.began.elapsed().as_secs_f64();
        self.events.push(format!("{at:7.3} s  {event}"));
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, events) = (self.seed, self.events.join("\n"));
            eprintln!("{events}\nSOLOIST_SEED={seed} repeats this run");
        }
    }
}

struct Run {
    random: Random,
    story: Story,
    lease: Duration,
    workers: Workers,
    names: Vec<String>,
    keepers: BTreeSet<usize>,
    /// Ordinary nodes that are not running.
    away: BTreeSet<usize>,
    /// The keepers that each node's configuration lists.
    files: BTreeMap<usize, BTreeSet<usize>>,
    cluster: Cluster,
}

impl Run {
    async fn start(seed: u64) -> Self {
        let mut random = Random(Pcg64::new(u128::from(seed), 0x0501_0157));
        let (nodes, keepers) = random.one_of(&[(5, 3), (9, 3), (9, 5)]);
        let lease = Duration::from_millis(random.one_of(&LEASES_MS));
        let mut story = Story {
            seed,
            began: Instant::now(),
            events: Vec::new(),
        };
        story.tell(format!("{nodes} nodes, {keepers} keepers, lease {lease:?}"));
        let cluster = Cluster::start(Plan {
            nodes,
            keepers,
            lease,
            ..Plan::default()
        })
        .await;
        let mut workers = Workers::new();
        let all: Vec<usize> = (0..nodes).collect();
        let names = workers.start(&cluster, &all, &LOCKS[..2]);
        let keepers: BTreeSet<usize> = (0..keepers).collect();
        Run {
            random,
            story,
            lease,
            workers,
            names,
            files: all.iter().map(|&node| (node, keepers.clone())).collect(),
            keepers,
            away: BTreeSet::new(),
            cluster,
        }
    }

    async fn last(mut self, lasts: Duration) {
        let began = Instant::now();
        while began.elapsed() < lasts {
            match self.random.below(8) {
                0..3 => self.replace_a_keeper().await,
                3 => self.reimage_a_keeper().await,
                4 => self.lose_a_member(),
                5 => self.restart_a_node().await,
                _ => self.bring_one_back(),
            }
            self.check();
            self.pause().await;
        }
        while !self.away.is_empty() {
            self.bring_one_back();
        }
        self.end().await;
    }

    /// Expects that all nodes become members under one leader and that every worker is served.
    async fn end(mut self) {
        self.story.tell("everything is brought back".to_owned());
        let all: Vec<usize> = (0..self.cluster.size()).collect();
        let keepers: Vec<usize> = self.keepers.iter().copied().collect();
        let referee = &self.workers.referee;
        self.cluster.settles(referee, &all, &keepers).await;
        let served = referee.serves(&self.names, 4 * self.lease + TIMEOUT).await;
        self.cluster.settles(referee, &all, &keepers).await;
        let (entries, events) = (referee.entries().len(), self.story.events.len());
        println!(
            "seed {}: {events} events, {entries} entries; all were served within {served:?}",
            self.story.seed
        );
        self.workers.end().await;
    }

    /// A keeper's machine dies. Another node is promoted, then the dead one is demoted.
    async fn replace_a_keeper(&mut self) {
        let spare: Vec<usize> = self
            .running()
            .filter(|node| !self.keepers.contains(node))
            .collect();
        if spare.len() < 2 {
            return self.bring_one_back();
        }
        let old = self.any_keeper();
        let new = self.random.one_of(&spare);
        self.kill(old);
        self.pause().await;
        self.promote(new).await;
        self.pause().await;
        self.demote(old).await;
        self.away.insert(old);
    }

    /// A keeper loses its disk and returns with a new one. It is demoted and promoted again.
    async fn reimage_a_keeper(&mut self) {
        let keeper = self.any_keeper();
        self.kill(keeper);
        self.pause().await;
        self.reimage(keeper);
        self.spawn(keeper);
        self.pause().await;
        self.demote(keeper).await;
        self.pause().await;
        self.promote(keeper).await;
    }

    fn lose_a_member(&mut self) {
        let members: Vec<usize> = self
            .running()
            .filter(|node| !self.keepers.contains(node))
            .collect();
        if members.len() > 1 {
            let member = self.random.one_of(&members);
            self.kill(member);
            self.away.insert(member);
        }
    }

    async fn restart_a_node(&mut self) {
        let running: Vec<usize> = self.running().collect();
        let node = self.random.one_of(&running);
        self.story.tell(format!("n{node} is restarted"));
        self.cluster.end(node).await;
        self.cluster.spawn(node);
    }

    /// A machine returns, with a new disk or with its old one.
    fn bring_one_back(&mut self) {
        let away: Vec<usize> = self.away.iter().copied().collect();
        if away.is_empty() {
            return;
        }
        let node = self.random.one_of(&away);
        self.away.remove(&node);
        if self.random.flip() {
            self.reimage(node);
        }
        self.spawn(node);
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.cluster.size()).filter(|&node| self.cluster.runs(node))
    }

    fn any_keeper(&mut self) -> usize {
        let keepers: Vec<usize> = self.keepers.iter().copied().collect();
        self.random.one_of(&keepers)
    }

    fn kill(&mut self, node: usize) {
        self.story.tell(format!("n{node} is killed"));
        self.cluster.kill(node);
    }

    fn reimage(&mut self, node: usize) {
        match self.random.flip() {
            true => {
                self.story.tell(format!("n{node} is re-imaged"));
                self.cluster.reimage(node);
            }
            false => {
                self.story
                    .tell(format!("n{node} is deployed from the folder of `init`"));
                self.cluster.redeploy(node);
            }
        }
    }

    /// Starts a node. Its configuration is updated if it lists none of the current keepers,
    /// otherwise at random.
    fn spawn(&mut self, node: usize) {
        let is_usable = !self.files[&node].is_disjoint(&self.keepers);
        if !is_usable || self.random.flip() {
            let keepers: Vec<usize> = self.keepers.iter().copied().collect();
            self.cluster.list_keepers(node, &keepers);
            self.files.insert(node, self.keepers.clone());
        }
        let files = &self.files[&node];
        self.story
            .tell(format!("n{node} is started; its file lists {files:?}"));
        self.cluster.spawn(node);
    }

    async fn promote(&mut self, node: usize) {
        self.story.tell(format!("promote n{node}"));
        // A node that was just started may not be a member yet.
        self.cluster.takes_part(node).await;
        let asked = self.somebody_but(node);
        self.cluster.promote(asked, node).await;
        self.keepers.insert(node);
    }

    async fn demote(&mut self, node: usize) {
        self.story.tell(format!("demote n{node}"));
        let asked = self.somebody_but(node);
        self.cluster.demote(asked, node).await;
        self.keepers.remove(&node);
    }

    fn somebody_but(&mut self, node: usize) -> usize {
        let others: Vec<usize> = self.running().filter(|&other| other != node).collect();
        self.random.one_of(&others)
    }

    async fn pause(&mut self) {
        let limit = usize::try_from(PAUSE_MS_MAX).expect("it fits");
        let pause = u64::try_from(self.random.below(limit)).expect("it fits");
        sleep(Duration::from_millis(pause)).await;
    }

    /// Ends the run at the first violation.
    fn check(&self) {
        let found = self.workers.referee.violations();
        let first = &found[..found.len().min(5)];
        assert!(found.is_empty(), "{} violations: {first:#?}", found.len());
    }
}
