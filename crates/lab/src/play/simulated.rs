//! Runs of the simulator as scenarios.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use soloist_algorithms::{Channels, Choice, NameError};

use super::{NODES_MAX, Run, STEPS_MAX, run};
use crate::report;
use crate::scenario::{self, ScenarioError};
use crate::search::{Case, Limits};
use crate::simulate::{
    Load, SettingError, Setup, SimulateError, TraceEvent, TraceKind, simulate_traced,
};

/// Maximum number of entries times nodes in a comparison: an entry may take some messages for each
/// node, and the simulator does not stop where the player does.
const DEMANDS_MAX: u64 = (NODES_MAX * NODES_MAX) as u64;

/// Why a run of the simulator cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It cannot be simulated.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// Too many nodes crash.
    #[error(
        "the run has {0} crashes, and a search can judge at most {most}: use a longer time between \
         crashes, or fewer entries",
        most = Limits::CRASHES_MAX
    )]
    Crashes(usize),
    /// The run is too long.
    #[error("the run is longer than {STEPS_MAX} steps: use fewer entries or nodes")]
    TooLong,
    /// A comparison would take too long.
    #[error(
        "{entries} entries on {nodes} nodes are too many to compare (maximum: {NODES_MAX} nodes, \
         and {DEMANDS_MAX} for their product): use fewer entries or nodes"
    )]
    TooMany {
        /// The number of entries.
        entries: u64,
        /// The number of nodes.
        nodes: usize,
    },
    /// The demands of these loads depend on the algorithm.
    #[error("load '{0}' depends on the algorithm: compare with burst or poisson:RATE")]
    Closed(Load),
    /// An unknown name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An invalid load.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// It cannot be replayed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Simulates a run and writes it down as a scenario, with the times of its steps. Messages keep
/// their order, also if the algorithm does not need that, unless the setup says otherwise.
///
/// ```
/// use soloist_algorithms::Choice;
/// use soloist_lab::simulate::Setup;
///
/// let choice = Choice::parse("raymond", "").unwrap();
/// let setup = Setup { entries: 3, ..Setup::new(choice, 4) };
/// let text = soloist_lab::play::scenario_of(&setup).unwrap();
/// let run = soloist_lab::play::run(&text, 0).unwrap();
/// assert_eq!(run.steps.iter().filter(|step| step.enter).count(), 3);
/// ```
pub fn scenario_of(setup: &Setup) -> Result<String, RecordError> {
    let channels = setup.channels.unwrap_or(Channels::Fifo);
    let setup = &Setup {
        channels: Some(channels),
        ..setup.clone()
    };
    let mut steps = Vec::new();
    let mut incarnations = vec![0; setup.nodes];
    simulate_traced(setup, &mut |_| (), &mut |event| {
        if steps.len() <= STEPS_MAX {
            let step = step(event, channels, &mut incarnations);
            steps.extend(step.map(|step| (event.time, step)));
        }
    })?;
    if steps.len() > STEPS_MAX {
        return Err(RecordError::TooLong);
    }
    let crashes = incarnations.iter().sum();
    if crashes > usize::from(Limits::CRASHES_MAX) && setup.nodes <= Limits::NODES_MAX {
        return Err(RecordError::Crashes(crashes));
    }
    let mut case = Case::new(setup.choice, setup.nodes, 0);
    case.shape = setup.shape.clone();
    case.start = setup.start;
    case.limits = Limits::new(channels);
    let info = setup.choice.kind.info();
    let label = report::label(setup.choice.name, &setup.choice.variants.names(info));
    let mut script = format!(
        "# {label}, {} nodes, {} load, seed {}.\n{}\n",
        setup.nodes,
        setup.load,
        setup.seed,
        case.head()
    );
    let mut now = None;
    for (at, step) in steps {
        if now != Some(at) {
            let _ = writeln!(script, "> at {at:.3}");
            now = Some(at);
        }
        let _ = writeln!(script, "> {step}");
    }
    Ok(scenario::replay(&script)?)
}

/// An event of a run as a step of a scenario. Others follow from these. `incarnations` counts the
/// crashes of each node.
fn step(event: &TraceEvent, channels: Channels, incarnations: &mut [usize]) -> Option<String> {
    let node = event.node;
    match event.event {
        TraceKind::Request => Some(format!("request {node}")),
        TraceKind::Leave => Some(format!("release {node}")),
        TraceKind::Receive => {
            let from = event.peer?;
            // Messages in order need no name, which keeps the scenario short.
            let message = event.text.as_deref().filter(|_| channels == Channels::Any);
            let step = format!("deliver {from} {node} {}", message.unwrap_or_default());
            Some(step.trim_end().to_owned())
        }
        TraceKind::Crash => {
            let incarnation = &mut incarnations[node as usize];
            *incarnation += 1;
            Some(format!("crash {node} {incarnation}"))
        }
        TraceKind::Restart => Some(format!("restart {node}")),
        TraceKind::Settled => Some(format!("settled {node}")),
        TraceKind::Enter | TraceKind::Send => None,
    }
}

/// Two algorithms under the same demands.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Comparison {
    /// The names of the algorithms.
    pub algorithms: [String; 2],
    /// Number of nodes.
    pub nodes: usize,
    /// Which nodes request, and when: burst or poisson:RATE.
    pub load: String,
    /// Number of requests.
    pub entries: u64,
    /// The seed of the demands and of the message delays.
    pub seed: u64,
}

/// Two runs on one axis of time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The runs, in the order of the names.
    pub runs: [Run; 2],
}

/// Plays two algorithms under the same demands: the same nodes request at the same times.
pub fn compare(comparison: &Comparison) -> Result<Compared, RecordError> {
    let load: Load = comparison.load.parse()?;
    if !matches!(load, Load::Burst | Load::Poisson(_)) {
        return Err(RecordError::Closed(load));
    }
    let nodes = comparison.nodes;
    let entries = match load {
        Load::Burst => nodes as u64,
        _ => comparison.entries,
    };
    if nodes > NODES_MAX || entries.saturating_mul(nodes as u64) > DEMANDS_MAX {
        return Err(RecordError::TooMany { entries, nodes });
    }
    let play = |name: &String| -> Result<Run, RecordError> {
        let setup = Setup {
            load,
            entries,
            seed: comparison.seed,
            ..Setup::new(Choice::parse(name, "")?, nodes)
        };
        Ok(run(&scenario_of(&setup)?, 0)?)
    };
    let [one, other] = &comparison.algorithms;
    Ok(Compared {
        runs: [play(one)?, play(other)?],
    })
}
