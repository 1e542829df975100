//! Searches for trouble from where a scenario ends.

use std::fmt::Write as _;

use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, NodeId};

use super::record::Recorder;
use super::types::PlayFault;
use super::{perform, run};
use crate::scenario::{self, Head, ScenarioError};
use crate::search::{CaseError, FromHere, Limit, Limits, Trouble};

/// How far a search goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchLimits {
    /// Maximum number of states.
    pub states: usize,
    /// How often each node may request from here on.
    pub requests: u8,
    /// How many more crashes there may be, if the algorithm recovers from them.
    pub crashes: u8,
}

impl Default for SearchLimits {
    fn default() -> Self {
        SearchLimits {
            states: 200_000,
            requests: 1,
            crashes: 0,
        }
    }
}

/// Progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Progress {
    /// Number of states visited.
    pub states: usize,
    /// The number of steps up to which all states were visited.
    pub depth: usize,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// A fault.
    Found {
        /// The scenario, with the steps to the fault appended.
        text: String,
        /// Number of steps that were appended.
        steps: usize,
        /// The fault.
        fault: PlayFault,
    },
    /// No fault.
    Nothing {
        /// Every run of up to this many more steps is without a fault.
        depth: usize,
        /// Number of states visited.
        states: usize,
        /// Whether all states were visited, so that no run has a fault.
        complete: bool,
        /// Why the search ended before.
        reason: Option<&'static str>,
    },
}

/// Searches all runs that continue a scenario, breadth-first. Reports a shortest way to a fault.
/// Calls `progress` from time to time; it returns whether to continue.
///
/// ```
/// use soloist_lab::play::{Search, SearchLimits, search};
///
/// let text = "algorithm ricart-agrawala\nvariant as-published\nnodes 2\n> request 1\n";
/// let found = search(text, SearchLimits::default(), &mut |_| true).unwrap();
/// assert!(matches!(found, Search::Found { fault, .. } if fault.kind == "two-inside"));
/// ```
pub fn search(
    text: &str,
    limits: SearchLimits,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Search, ScenarioError> {
    let head = Head::read(text)?;
    let nodes = head.names.len();
    if nodes > Limits::NODES_MAX {
        return Err(CaseError::Nodes(nodes).into());
    }
    let trouble = head.choice.kind.visit(Continue {
        text,
        head: &head,
        limits,
        progress,
    })?;
    let (what, trace, cycle) = match trouble {
        Trouble::Nothing {
            states,
            depth,
            limit,
        } => {
            return Ok(Search::Nothing {
                depth,
                states,
                complete: limit.is_none(),
                reason: limit.map(Limit::text),
            });
        }
        Trouble::Broken { trace } => (None, trace, Vec::new()),
        Trouble::Endless { node, trace, cycle } => {
            let what = match node {
                Some(node) => ("starvation", format!("{} waits forever", head.name(node))),
                None => (
                    "unrest",
                    "no node requests, and yet messages never stop".to_owned(),
                ),
            };
            (Some(what), trace, cycle)
        }
    };
    found(text, what, &trace, &cycle)
}

/// Appends what was found to the scenario.
fn found(
    text: &str,
    what: Option<(&'static str, String)>,
    trace: &[String],
    cycle: &[String],
) -> Result<Search, ScenarioError> {
    let mut script = text.trim_end().to_owned() + "\n";
    for step in trace {
        let _ = writeln!(script, "> {step}");
    }
    if !cycle.is_empty() {
        script.push_str("# from here on, repeated forever:\n");
    }
    for step in cycle {
        let _ = writeln!(script, "> {step}");
    }
    let fault = match what {
        Some((kind, text)) => {
            let _ = writeln!(script, "# {text}");
            let ring = Vec::new();
            PlayFault { kind, text, ring }
        }
        None => run(&script, 0)?
            .last_fault()
            .expect("the search found a fault"),
    };
    Ok(Search::Found {
        text: scenario::replay(&script)?,
        steps: trace.len() + cycle.len(),
        fault,
    })
}

struct Continue<'a> {
    text: &'a str,
    head: &'a Head,
    limits: SearchLimits,
    progress: &'a mut dyn FnMut(Progress) -> bool,
}

impl Visitor for Continue<'_> {
    type Output = Result<Trouble, ScenarioError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Continue { text, head, .. } = self;
        let (stage, _) = perform::<A>(text, head, Recorder::new(head, text))?;
        let config = stage.config(NodeId::new(0));
        let recovers = A::recovering(&config, 1).is_some();
        let (recorder, _) = stage.close();
        let follower = recorder.follower.expect("the cluster is small enough");
        let from_here = FromHere {
            states_max: self.limits.states,
            requests: self.limits.requests.min(Limits::REQUESTS_MAX),
            crashes: if recovers { self.limits.crashes } else { 0 },
        };
        let names = head.names.clone();
        let name = Box::new(move |node: NodeId| names[node.index()].clone());
        Ok(follower.trouble(&from_here, name, &mut |progress| {
            (self.progress)(Progress {
                states: progress.states,
                depth: progress.depth,
            })
        }))
    }
}
