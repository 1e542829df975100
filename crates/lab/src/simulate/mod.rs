//! Discrete-event simulation: virtual time in message delays, seeded, repeatable bit for bit.
//!
//! Every run checks mutual exclusion at each step, and no node may be left waiting when it ends.
//! Without a warm-up, the number of requests equals the number of entries given, and the whole run
//! is measured. With one, the given number of entries after the warm-up is measured; the load
//! continues until then, and the run drains without being measured.
//!
//! How messages are counted: a hop over a logical link is one message; a node's messages to itself
//! count as none. A token that never rests moves even if no node wants it. Such a move, sent while
//! no node waits or is inside, is *idle*: it is not charged to any entry and is reported per
//! message delay of idle time.
//!
//! Nodes may crash and restart if the algorithm supports recovery: see [`Crashes`].

mod agenda;
mod crashes;
mod delay;
mod distribution;
mod meter;
mod overtaking;
mod random;
mod requesters;
mod run;
mod samples;
mod settings;
mod time;
mod trace;
mod window;

use std::sync::Arc;

use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{
    Algorithm, Channels, Choice, Config, Kind, NodeId, Place, ShapeError, Start, VariantSet,
};

pub(crate) use overtaking::Overtaking;

pub use delay::{Delay, DelayMatrix, MatrixError};
pub use distribution::Distribution;
pub use meter::{Distributions, Fairness, Measures, NodeLoad};
pub use random::Random;
pub use requesters::Requesters;
pub use samples::{DISTRIBUTION_STEPS, Summary};
pub use settings::{Crashes, Hold, Load, SettingError};
pub use time::Time;
pub use trace::{TraceEvent, TraceKind, Tracer};
pub use window::Doubled;

use crate::channels;
use crate::report::label;
use crate::shape_spec::ShapeSpec;
use crate::world::Fault;
use run::{Outcome, Simulation};

/// The run to simulate.
#[derive(Clone, Debug)]
pub struct Setup<C = Choice> {
    /// The algorithm and its variants, or only the variants for [`simulate_own`].
    pub choice: C,
    /// Number of nodes.
    pub nodes: usize,
    /// The shape of the cluster.
    pub shape: ShapeSpec,
    /// The initial state.
    pub start: Start,
    /// When nodes request.
    pub load: Load,
    /// Which nodes request.
    pub requesters: Requesters,
    /// How long messages are in flight.
    pub delay: Delay,
    /// Whether messages between two nodes arrive in the order sent. Defaults to the algorithm's
    /// assumption, or to what its recovery needs if nodes crash.
    pub channels: Option<Channels>,
    /// How long a node stays inside.
    pub hold: Hold,
    /// Number of entries that are measured. Without a warm-up, also the number of requests.
    pub entries: u64,
    /// Entries before the measurement starts, or `None` to measure the whole run. Bursts and
    /// crashes have no steady state, and so no warm-up.
    pub warm_up: Option<u64>,
    /// How often nodes crash, if they do.
    pub crashes: Option<Crashes>,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether the measurements include distributions, for which all durations are sorted.
    pub distributions: bool,
}

impl Setup {
    /// Default number of entries.
    pub const ENTRIES: u64 = 10_000;

    /// The same run, without the name of the algorithm.
    fn own(&self) -> Setup<VariantSet> {
        Setup {
            choice: self.choice.variants,
            nodes: self.nodes,
            shape: self.shape.clone(),
            start: self.start,
            load: self.load,
            requesters: self.requesters.clone(),
            delay: self.delay.clone(),
            channels: self.channels,
            hold: self.hold,
            entries: self.entries,
            warm_up: self.warm_up,
            crashes: self.crashes,
            seed: self.seed,
            distributions: self.distributions,
        }
    }
}

impl<C> Setup<C> {
    /// 10,000 entries under heavy load, exponential delays of mean 1, one delay inside, seed 1, the
    /// paper's own shape, the token at node 0, no warm-up and no crashes.
    pub fn new(choice: C, nodes: usize) -> Self {
        Setup {
            choice,
            nodes,
            shape: ShapeSpec::Default,
            start: Start::idle(NodeId::new(0)),
            load: Load::Heavy,
            requesters: Requesters::All,
            delay: Delay::Same(Distribution::Exponential(1.0)),
            channels: None,
            hold: Hold::ONE,
            entries: Setup::ENTRIES,
            warm_up: None,
            crashes: None,
            seed: 1,
            distributions: false,
        }
    }
}

/// The parameters and the results of a run, or with other measurements, of several.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report<M = Measures> {
    /// The algorithm, or the preset that stands for it.
    pub algorithm: &'static str,
    /// The variants in use, separated by commas.
    pub variant: String,
    /// The shape of the cluster.
    pub shape: String,
    /// Number of nodes.
    pub nodes: usize,
    /// When nodes request.
    pub load: String,
    /// Which nodes request.
    pub requesters: String,
    /// How long messages are in flight.
    pub delay: String,
    /// Whether messages arrive in the order sent.
    pub channels: String,
    /// How long a node stays inside.
    pub hold: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// The measurements.
    #[serde(flatten)]
    pub measures: M,
    /// With a warm-up: the means after twice as much of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubled: Option<Doubled>,
    /// Number of safety violations: two nodes inside, a message refused.
    pub violations: u64,
    /// The first violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_violation: Option<String>,
    /// Number of requests still waiting when nothing more could happen, at nodes and in their
    /// backlogs, plus nodes whose recovery never ended.
    pub unserved: u64,
    /// Number of crashes.
    pub crashes: u64,
    /// Duration of the run in virtual time, in message delays.
    pub time: f64,
    /// Number of events: requests, deliveries, releases, crashes and restarts.
    pub events: u64,
}

impl<M> Report<M> {
    /// Returns whether there was no violation and every request was served.
    pub fn is_well(&self) -> bool {
        self.violations == 0 && self.unserved == 0
    }

    /// The algorithm with its variants for display: "raymond (greedy)".
    pub fn label(&self) -> String {
        label(self.algorithm, &self.variant)
    }
}

/// Why a run cannot be simulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// An invalid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// More nodes than fit into memory with this algorithm.
    #[error(
        "{algorithm} supports at most {most} nodes, not {nodes}: each node keeps state about \
         every other"
    )]
    Nodes {
        /// The algorithm.
        algorithm: &'static str,
        /// The number of nodes given.
        nodes: usize,
        /// The maximum.
        most: usize,
    },
    /// Nodes are to crash, but the algorithm does not support recovery.
    #[error("crashes: {algorithm} does not recover crashed nodes; leave them out, or use {able}")]
    NoRecovery {
        /// The algorithm.
        algorithm: &'static str,
        /// The algorithms that do, separated by commas.
        able: String,
    },
    /// The delays do not fit the cluster.
    #[error("delay: {0}")]
    Delay(String),
    /// The nodes that are to request do not fit the cluster or the load.
    #[error("requesters: {0}")]
    Requesters(String),
    /// Virtual time overflowed.
    #[error(
        "virtual time ran out after {0} entries: use shorter holds, delays and pauses, or fewer entries"
    )]
    Time(u64),
}

/// Simulates one run. Calls `progress` from time to time with the number of entries so far.
///
/// ```
/// use soloist_algorithms::Choice;
/// use soloist_lab::simulate::{Setup, simulate};
///
/// let setup = Setup::new(Choice::parse("ricart-agrawala", "").unwrap(), 10);
/// let report = simulate(&setup, &mut |_| ()).unwrap();
/// assert_eq!(report.measures.messages_per_entry, 18.0); // 2(N-1), exactly
/// ```
pub fn simulate(setup: &Setup, progress: &mut dyn FnMut(u64)) -> Result<Report, SimulateError> {
    run_choice(setup, progress, None)
}

/// Simulates one run like [`simulate`], and calls `tracer` with every event.
pub fn simulate_traced(
    setup: &Setup,
    progress: &mut dyn FnMut(u64),
    tracer: Tracer<'_>,
) -> Result<Report, SimulateError> {
    run_choice(setup, progress, Some(tracer))
}

fn run_choice(
    setup: &Setup,
    progress: &mut dyn FnMut(u64),
    tracer: Option<Tracer<'_>>,
) -> Result<Report, SimulateError> {
    let mut report = setup.choice.kind.visit(Simulate {
        setup: &setup.own(),
        progress,
        tracer: tracer.map(|tracer| tracer as Tracer<'_>),
    })?;
    report.algorithm = setup.choice.name;
    Ok(report)
}

/// Simulates one run of an algorithm that the caller names by its type. It may be one of the
/// caller's own: `crates/lab/examples/own_algorithm.rs` shows how.
pub fn simulate_own<A: Algorithm>(
    setup: &Setup<VariantSet>,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, SimulateError> {
    Simulate {
        setup,
        progress,
        tracer: None,
    }
    .visit::<A>()
}

struct Simulate<'a> {
    setup: &'a Setup<VariantSet>,
    progress: &'a mut dyn FnMut(u64),
    tracer: Option<Tracer<'a>>,
}

impl Visitor for Simulate<'_> {
    type Output = Result<Report, SimulateError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let setup = self.setup;
        if setup.nodes > A::NODES_MAX {
            return Err(SimulateError::Nodes {
                algorithm: A::INFO.name,
                nodes: setup.nodes,
                most: A::NODES_MAX,
            });
        }
        setup.requesters.check(setup.nodes, setup.load)?;
        if let Some(misfit) = setup.delay.misfit(setup.nodes) {
            return Err(SimulateError::Delay(misfit));
        }
        let shape: Arc<A::Shape> = Arc::new(setup.shape.build(setup.nodes)?);
        let config = Config {
            place: Place {
                me: setup.start.token(),
                shape: Arc::clone(&shape),
            },
            start: setup.start,
            variants: setup.choice,
        };
        if setup.crashes.is_some() && A::recovering(&config, 0).is_none() {
            let able = Kind::ALL.iter().filter(|kind| kind.visit(Recovers));
            let able: Vec<_> = able.map(|kind| kind.info().name).collect();
            return Err(SimulateError::NoRecovery {
                algorithm: A::INFO.name,
                able: able.join(","),
            });
        }
        let channels = setup
            .channels
            .unwrap_or_else(|| channels::assumed::<A>(setup.choice, setup.crashes.is_some()));
        assert!(
            setup.warm_up.is_none() || setup.load != Load::Burst && setup.crashes.is_none(),
            "bursts and crashes have no warm-up"
        );
        let outcome =
            Simulation::<A>::new(setup, &config, channels, self.tracer).run(self.progress);
        let Outcome {
            measures,
            doubled,
            violations,
            first_fault,
            unserved,
            crashes,
            time_ran_out,
            events,
            ended_at,
        } = outcome;
        if time_ran_out {
            return Err(SimulateError::Time(measures.entries));
        }
        let stopped = violations > 0 || unserved > 0;
        assert!(
            stopped || measures.entries == setup.entries,
            "a run ends when all requests were served"
        );
        Ok(Report {
            algorithm: A::INFO.name,
            variant: setup.choice.names(&A::INFO),
            shape: shape.to_string(),
            nodes: setup.nodes,
            load: setup.load.to_string(),
            requesters: setup.requesters.to_string(),
            delay: setup.delay.to_string(),
            channels: channels.to_string(),
            hold: setup.hold.to_string(),
            seed: setup.seed,
            measures,
            doubled,
            violations,
            first_violation: first_fault.as_ref().map(Fault::to_string),
            unserved,
            crashes,
            time: ended_at.delays(),
            events,
        })
    }
}

/// Returns whether the algorithm, without variants, recovers crashed nodes over FIFO channels.
struct Recovers;

impl Visitor for Recovers {
    type Output = bool;

    fn visit<A: Algorithm>(self) -> bool {
        A::recovers(VariantSet::default(), Channels::Fifo)
    }
}
