//! Random runs: a phase with faults, then one without, in which all requests must be served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::RngExt;
use serde::Serialize;
use soloist_algorithms::Choice;
use soloist_core::Tuning;
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleError;

use super::fault::Fault;
use super::referee::Clock;
use super::setup::rules;
use super::world::{LEASE, World};
use crate::report::label;
use crate::seeds::run_each;

const SECOND: u64 = 1_000_000;

/// Length of the phase with faults, unless another one is given.
const LENGTH: Duration = Duration::from_secs(60);

/// How long all requests may take once the faults are over.
const SERVED_WITHIN: u64 = 120 * SECOND;

/// Maximum delay of most messages while nothing is slow, in microseconds.
const SLOWEST: u64 = 5_000;

/// A run. The seed decides everything that is left to chance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The algorithm of all locks.
    pub choice: Choice,
    /// Number of nodes.
    pub nodes: usize,
    /// The seed.
    pub seed: u64,
    /// The lease.
    pub lease: Lease,
    /// The faults that may happen.
    pub faults: BTreeSet<Fault>,
    /// Length of the phase with faults.
    pub length: Duration,
    /// How many of its own clients a node serves in a row. `None` for one to three, depending on
    /// the seed.
    pub turns: Option<u32>,
    /// Changes for tests.
    pub tuning: Tuning,
}

/// What happened in a run, or in several.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Number of runs.
    pub runs: u64,
    /// Number of faults that were injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Number of epochs.
    pub epochs: u64,
    /// Number of leaders.
    pub leaders: u64,
    /// Number of members that were evicted.
    pub evictions: u64,
    /// Number of members that left in an orderly way.
    pub departures: u64,
    /// Number of times a lock was acquired.
    pub acquisitions: u64,
    /// Number of those that followed a holder whose node crashed or lost its lease.
    pub takeovers: u64,
    /// Number of holds that were lost with their node's lease, or because it stopped.
    pub holds_lost: u64,
    /// The longest time from a request to its grant, in milliseconds.
    pub wait_ms_max: u64,
    /// Number of acquisitions while another client relied on the lock. 0 unless clocks run wildly.
    pub overlaps: u64,
    /// Number of acquisitions with a fence that a resource would refuse. 0 likewise.
    pub stale_fences: u64,
    /// Simulated time in milliseconds.
    pub simulated_ms: u64,
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What happened.
    #[serde(flatten)]
    pub tally: Tally,
    /// What went wrong.
    pub failure: Option<String>,
    /// The command that repeats the run.
    pub command: String,
}

impl Run {
    /// The largest number of nodes.
    pub const NODES_MAX: usize = 200;

    /// Without [`turns`](Run::turns), the seed chooses a number up to this.
    pub const TURNS_MAX: u64 = 3;

    /// A run of a minute with all faults that epochs tolerate. The error is why a node would not
    /// take the rules.
    pub fn new(choice: Choice, nodes: usize, seed: u64) -> Result<Self, RuleError> {
        rules(choice, nodes, 1)?;
        Ok(Run {
            choice,
            nodes,
            seed,
            lease: LEASE,
            faults: Fault::tolerated().collect(),
            length: LENGTH,
            turns: None,
            tuning: Tuning::default(),
        })
    }

    /// Runs to the end, or until something goes wrong.
    pub fn run(&self) -> Report {
        self.run_in(self.world())
    }

    /// Like [`run`](Run::run), and returns a line for everything that happened.
    pub fn traced(&self) -> (Report, Vec<String>) {
        let mut world = self.world();
        world.record();
        let (report, mut world) = self.play(world);
        (report, world.take_lines())
    }

    /// The cluster at the start.
    pub fn world(&self) -> World {
        let turns = self.turns.unwrap_or(1 + (self.seed % 3) as u32);
        let mut world = World::tuned(
            self.tuning,
            self.lease,
            self.choice,
            self.nodes,
            turns,
            self.seed,
        );
        if !self.faults.contains(&Fault::Lost) {
            world.loss = 0.0;
        }
        if self.faults.contains(&Fault::Clocks) {
            world.clocks_keep_the_margin = false;
            for (index, node) in world.nodes.iter_mut().enumerate() {
                let faster_by = [-500_000, 0, 1_000_000][(index + self.seed as usize) % 3];
                node.clock = Clock { faster_by };
            }
        }
        world
    }

    /// Like [`run`](Run::run), from a cluster that the caller has changed.
    pub fn run_in(&self, world: World) -> Report {
        self.play(world).0
    }

    fn play(&self, mut world: World) -> (Report, World) {
        let mut faults = BTreeMap::new();
        let disturbances = self.disturbances();
        let end = self.length.as_micros() as u64;
        while world.now < end && world.failure.is_none() {
            let pause = world.rng.random_range(SECOND / 20..3 * SECOND);
            let until = (world.now + pause).min(end);
            world.run_until(until);
            if !disturbances.is_empty() && world.failure.is_none() {
                let injected = disturb(&mut world, &disturbances);
                if let Some(fault) = injected {
                    *faults.entry(fault.name()).or_default() += 1;
                }
            }
        }
        // From here on there are no faults.
        world.slowest = SLOWEST;
        world.heal();
        for node in &mut world.nodes {
            node.clients.calm = true;
        }
        let limit = world.now + SERVED_WITHIN;
        let waits = |world: &World| {
            let mut nodes = world.nodes.iter();
            nodes.any(|node| !node.clients.waiting.is_empty())
        };
        while waits(&world) && world.failure.is_none() {
            if world.now >= limit {
                let states = world.member_states();
                world.failure = Some(format!("a request waits forever: {states:?}"));
            }
            let next = world.now + SECOND;
            world.run_until(next);
        }
        (self.report(&world, faults), world)
    }

    fn report(&self, world: &World, faults: BTreeMap<&'static str, u64>) -> Report {
        let referee = &world.referee;
        let tally = Tally {
            runs: 1,
            faults,
            epochs: world.roster.begun().map_or(0, |change| change.epoch),
            leaders: world.leaders_elected(),
            evictions: world.counts.evictions,
            departures: world.counts.departures,
            acquisitions: referee.entries as u64,
            takeovers: referee.takeovers as u64,
            holds_lost: referee.lost as u64,
            wait_ms_max: referee.longest_wait.as_millis() as u64,
            overlaps: referee.overlaps as u64,
            stale_fences: referee.stale as u64,
            simulated_ms: world.now / 1000,
        };
        Report {
            seed: self.seed,
            tally,
            failure: world.failure.clone(),
            command: self.command(),
        }
    }

    /// The command that repeats the run.
    pub fn command(&self) -> String {
        let mut command = format!("soloist lab epochs run --algorithm {}", self.choice.name);
        let variant = self.choice.variants.names(self.choice.kind.info());
        if !variant.is_empty() && self.choice.name == self.choice.kind.info().name {
            command += &format!(" --variant {variant}");
        }
        command += &format!(" --nodes {} --seed {}", self.nodes, self.seed);
        if !self.faults.iter().copied().eq(Fault::tolerated()) {
            let names: Vec<_> = self.faults.iter().map(|fault| fault.name()).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(","),
            };
            command += &format!(" --fault {names}");
        }
        if self.lease != LEASE {
            command += &format!(" --lease {}ms", self.lease.length.as_millis());
        }
        if let Some(turns) = self.turns {
            command += &format!(" --turns {turns}");
        }
        if self.length != LENGTH {
            command += &format!(" --length {}ms", self.length.as_millis());
        }
        command
    }

    /// What may happen between two pauses. Repairs are drawn like faults.
    fn disturbances(&self) -> Vec<Disturbance> {
        let all = DISTURBANCES.iter();
        let allowed = all.filter(|(faults, _)| faults.iter().any(|it| self.faults.contains(it)));
        allowed.map(|(_, disturbance)| *disturbance).collect()
    }
}

#[derive(Clone, Copy)]
enum Disturbance {
    Crash,
    Start,
    Pause,
    GoOn,
    CutLink,
    HealLink,
    HealLinks,
    CutToKeepers,
    CutFromKeepers,
    Elect,
    Stop,
    Suspend,
    IsolateLeader,
    MoveAway,
    SlowDown,
}

/// Everything that may happen, with the faults that it needs. Repairs that occur twice are twice as
/// likely.
const DISTURBANCES: [(&[Fault], Disturbance); 17] = [
    (&[Fault::Crash], Disturbance::Crash),
    (&[Fault::Crash, Fault::Leave], Disturbance::Start),
    (&[Fault::Crash, Fault::Leave], Disturbance::Start),
    (&[Fault::Pause], Disturbance::Pause),
    (&[Fault::Pause], Disturbance::GoOn),
    (&[Fault::Pause], Disturbance::GoOn),
    (&[Fault::Apart], Disturbance::CutLink),
    (&[Fault::Apart], Disturbance::HealLink),
    (&[Fault::Apart], Disturbance::HealLinks),
    (&[Fault::Cut], Disturbance::CutToKeepers),
    (&[Fault::Cut], Disturbance::CutFromKeepers),
    (&[Fault::Depose], Disturbance::Elect),
    (&[Fault::Leave], Disturbance::Stop),
    (&[Fault::Suspend], Disturbance::Suspend),
    (&[Fault::Depose], Disturbance::IsolateLeader),
    (&[Fault::Slow], Disturbance::MoveAway),
    (&[Fault::Slow], Disturbance::SlowDown),
];

/// Injects a fault, or repairs one. Returns the fault that was injected.
fn disturb(world: &mut World, disturbances: &[Disturbance]) -> Option<Fault> {
    let nodes = world.nodes.len();
    let node = world.rng.random_range(0..nodes);
    let other = world.rng.random_range(0..nodes);
    let is_up = world.nodes[node].participant.is_some();
    match disturbances[world.rng.random_range(0..disturbances.len())] {
        Disturbance::Crash => {
            world.crash(node);
            is_up.then_some(Fault::Crash)
        }
        Disturbance::Start => {
            world.start(node);
            None
        }
        Disturbance::Pause => {
            world.pause(node);
            is_up.then_some(Fault::Pause)
        }
        Disturbance::GoOn => {
            world.go_on(node);
            None
        }
        Disturbance::CutLink => {
            world.cuts.push((node, other));
            world.note(|| format!("the link from n{node} to n{other} is cut"));
            (node != other).then_some(Fault::Apart)
        }
        Disturbance::HealLink => {
            world.cuts.retain(|cut| *cut != (node, other));
            world.release_held_back();
            None
        }
        Disturbance::HealLinks => {
            world.cuts.clear();
            world.release_held_back();
            world.note(|| "no link is cut".to_owned());
            None
        }
        Disturbance::CutToKeepers => {
            let is_cut = !world.nodes[node].to_keepers_cut;
            world.nodes[node].to_keepers_cut = is_cut;
            let state = if is_cut { "lost" } else { "delivered" };
            world.note(|| format!("messages from n{node} to the keepers are {state}"));
            is_cut.then_some(Fault::Cut)
        }
        Disturbance::CutFromKeepers => {
            let is_cut = !world.nodes[node].from_keepers_cut;
            world.nodes[node].from_keepers_cut = is_cut;
            let state = if is_cut { "lost" } else { "delivered" };
            world.note(|| format!("messages from the keepers to n{node} are {state}"));
            is_cut.then_some(Fault::Cut)
        }
        Disturbance::Elect => {
            world.elect();
            Some(Fault::Depose)
        }
        Disturbance::Stop => {
            world.stop(node);
            is_up.then_some(Fault::Leave)
        }
        Disturbance::Suspend => {
            world.suspend(node);
            is_up.then_some(Fault::Suspend)
        }
        Disturbance::IsolateLeader => {
            world.isolate_leader();
            Some(Fault::Depose)
        }
        Disturbance::MoveAway => {
            let away = [0, 0, 300_000, 1_200_000][world.rng.random_range(0..4)];
            world.nodes[node].away = away;
            let ms = away / 1000;
            world.note(|| format!("messages between n{node} and the keepers take {ms} ms longer"));
            (away > 0).then_some(Fault::Slow)
        }
        Disturbance::SlowDown => {
            world.slowest = [500, SLOWEST, 50_000][world.rng.random_range(0..3)];
            let ms = world.slowest as f64 / 1000.0;
            world.note(|| format!("most messages take up to {ms} ms"));
            (world.slowest > SLOWEST).then_some(Fault::Slow)
        }
    }
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        for (fault, number) in &other.faults {
            *self.faults.entry(fault).or_default() += number;
        }
        self.runs += other.runs;
        self.epochs += other.epochs;
        self.leaders += other.leaders;
        self.evictions += other.evictions;
        self.departures += other.departures;
        self.acquisitions += other.acquisitions;
        self.takeovers += other.takeovers;
        self.holds_lost += other.holds_lost;
        self.wait_ms_max = self.wait_ms_max.max(other.wait_ms_max);
        self.overlaps += other.overlaps;
        self.stale_fences += other.stale_fences;
        self.simulated_ms += other.simulated_ms;
    }
}

/// What came of several runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Its variants.
    pub variant: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The lease in milliseconds.
    pub lease_ms: u64,
    /// Length of the phase with faults in milliseconds.
    pub length_ms: u64,
    /// The faults that might happen.
    pub faults: Vec<Fault>,
    /// The first seed.
    pub seed: u64,
    /// What happened in all runs.
    pub total: Tally,
    /// The runs in which something went wrong.
    pub failures: Vec<Report>,
}

impl Summary {
    /// The algorithm with its variants.
    pub fn label(&self) -> String {
        label(self.algorithm, &self.variant)
    }

    /// Whether nothing went wrong.
    pub fn is_well(&self) -> bool {
        self.failures.is_empty()
    }

    /// The summary of these reports of runs that differ from `run` in their seeds only.
    pub fn of(run: &Run, reports: Vec<Report>) -> Self {
        let mut total = Tally::default();
        reports.iter().for_each(|report| total.add(&report.tally));
        let failures = reports.into_iter();
        let failures = failures.filter(|report| report.failure.is_some());
        Summary {
            algorithm: run.choice.name,
            variant: run.choice.variants.names(run.choice.kind.info()),
            nodes: run.nodes,
            lease_ms: run.lease.length.as_millis() as u64,
            length_ms: run.length.as_millis() as u64,
            faults: run.faults.iter().copied().collect(),
            seed: run.seed,
            total,
            failures: failures.collect(),
        }
    }
}

/// Repeats a run with this many consecutive seeds, on all cores. `done` is called after each. The
/// result does not depend on the number of cores.
pub fn run_seeds(run: &Run, seeds: u64, done: &(dyn Fn() + Sync)) -> Summary {
    let reports = run_each(run.seed, 0..seeds, done, |seed| {
        let run = Run {
            seed,
            ..run.clone()
        };
        run.run()
    });
    Summary::of(run, reports)
}
