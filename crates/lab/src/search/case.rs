//! A search as specified by a user, and its report.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Choice, Kind, NodeId, ShapeError, Start};

use super::plan::Plan;
use super::{Bounds, ENDLESS, Limits, Outcome, Watch};
use crate::report::label;
use crate::{ShapeSpec, scenario};

/// The search to run, by names.
#[derive(Clone, Debug)]
pub struct Case {
    /// The algorithm and its variants.
    pub choice: Choice,
    /// Number of nodes.
    pub nodes: usize,
    /// The shape of the cluster.
    pub shape: ShapeSpec,
    /// The initial state.
    pub start: Start,
    /// How often each node may request; [`ENDLESS`] for no limit.
    pub requests: u8,
    /// The nodes that request; the others only serve. Defaults to all.
    pub requesters: Option<Vec<NodeId>>,
    /// What may happen, what is checked, and how far the search goes.
    pub limits: Limits,
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The algorithm, or the preset that stands for it.
    pub algorithm: &'static str,
    /// The variants in use, separated by commas.
    pub variant: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The shape of the cluster.
    pub shape: String,
    /// Whether messages arrive in the order sent.
    pub channels: String,
    /// How often each node may request; `None` for no limit.
    pub requests: Option<u8>,
    /// The nodes that request.
    pub requesters: Vec<usize>,
    /// Where the token starts.
    pub home: usize,
    /// The node that starts inside, if any.
    pub inside: Option<usize>,
    /// How many crashes there may be.
    pub crashes: u8,
    /// Whether quiescent nodes may be forgotten.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Description of the violation, or of the limit that was reached; `None` if everything holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Number of states visited; `None` if a violation was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<usize>,
    /// Whether endless runs were searched for as well.
    pub endless_runs: bool,
    /// Number of steps that were not followed because too many messages would be in flight.
    pub cut: usize,
    /// A scenario that reproduces the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

impl Report {
    /// The algorithm with its variants for display: "raymond (greedy)".
    pub fn label(&self) -> String {
        label(self.algorithm, &self.variant)
    }
}

/// The verdict of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every state was visited, and everything holds.
    Holds,
    /// A safety property is violated.
    Broken,
    /// A node waits, and nothing more can happen.
    Deadlock,
    /// A node may wait forever while others continue.
    Starvation,
    /// No node wants to enter, and yet messages continue forever.
    Unrest,
    /// Not every state was visited; no violation so far.
    NotExhausted,
}

/// Why a case cannot be searched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// An invalid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// More nodes than a search supports.
    #[error("{0} nodes are too many for a search (maximum: {most})", most = Limits::NODES_MAX)]
    Nodes(usize),
    /// A node that the cluster does not have.
    #[error("no node {node}: the {nodes} nodes are numbered 0 to {last}", last = .nodes - 1)]
    NoSuchNode {
        /// The node given.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// Crashes with an algorithm that does not support recovery.
    #[error("{0} does not support crashes: leave them out, or use raymond")]
    NoRecovery(&'static str),
    /// Unlimited requests with an algorithm that counts them, so that no search ends.
    #[error(
        "{algorithm} counts requests, so it has infinitely many states with endless ones: \
         use a number of requests, or one of {able}"
    )]
    Endless {
        /// The algorithm.
        algorithm: &'static str,
        /// The algorithms that do not count, separated by commas.
        able: String,
    },
    /// Too many crashes to count.
    #[error("{0} crashes are too many for a search (maximum: {most})", most = Limits::CRASHES_MAX)]
    Crashes(u8),
}

impl Case {
    /// Default limit on the number of states.
    pub const STATES_MAX: usize = 50_000_000;

    /// Limit on the number of states when searching for two nodes inside after a less severe
    /// result.
    pub const WORSE_MAX: usize = 5_000_000;

    /// The paper's own shape, the token at node 0, `requests` per node, the algorithm's own
    /// channels, and the other limits of [`Limits::new`], with more states.
    pub fn new(choice: Choice, nodes: usize, requests: u8) -> Self {
        Case {
            choice,
            nodes,
            shape: ShapeSpec::Default,
            start: Start::idle(NodeId::new(0)),
            requests,
            requesters: None,
            limits: Limits {
                states_max: Self::STATES_MAX,
                ..Limits::new(choice.kind.info().channels)
            },
        }
    }

    /// Searches with one request per node first, then two, four and so on: see
    /// [`check`](super::check()).
    pub fn run(&self, watch: &mut Watch) -> Result<Report, CaseError> {
        let requests = self.requests_per_node()?;
        let Planned { plan, shape } = self.choice.kind.visit(Prepare {
            case: self,
            requests,
        })?;
        Ok(self.report(shape, plan.deepen(Self::WORSE_MAX, watch)))
    }

    fn requesters(&self) -> Vec<NodeId> {
        let all = || NodeId::all(self.nodes).collect();
        self.requesters.clone().unwrap_or_else(all)
    }

    /// Checks what does not depend on the algorithm, and returns how often each node may request.
    fn requests_per_node(&self) -> Result<Vec<u8>, CaseError> {
        let nodes = self.nodes;
        if nodes > Limits::NODES_MAX {
            return Err(CaseError::Nodes(nodes));
        }
        let crashes = self.limits.crashes.most;
        if crashes > Limits::CRASHES_MAX {
            return Err(CaseError::Crashes(crashes));
        }
        let mut requests = vec![0; nodes];
        for node in self.requesters() {
            match requests.get_mut(node.index()) {
                Some(requests) => *requests = self.requests,
                None => return Err(CaseError::NoSuchNode { node, nodes }),
            }
        }
        let mut named = [Some(self.start.home), self.start.inside]
            .into_iter()
            .flatten();
        match named.find(|node| node.index() >= nodes) {
            Some(node) => Err(CaseError::NoSuchNode { node, nodes }),
            None => Ok(requests),
        }
    }

    fn report(&self, shape: String, outcome: Outcome) -> Report {
        let variant = self.choice.variants.names(self.choice.kind.info());
        let mut report = Report {
            algorithm: self.choice.name,
            variant,
            nodes: self.nodes,
            shape,
            channels: self.limits.channels.to_string(),
            requests: (self.requests != ENDLESS).then_some(self.requests),
            requesters: self.requesters().iter().map(|node| node.index()).collect(),
            home: self.start.home.index(),
            inside: self.start.inside.map(NodeId::index),
            crashes: self.limits.crashes.most,
            forgets: self.limits.forgets,
            verdict: Verdict::of(&outcome),
            what: None,
            states: None,
            endless_runs: self.limits.endless_runs,
            cut: 0,
            transcript: None,
        };
        let (what, trace, cycle) = match outcome {
            Outcome::Holds { states, cut } => {
                report.states = Some(states);
                report.cut = cut;
                report.what = (cut > 0).then(|| {
                    format!(
                        "{cut} steps would put too many messages in flight and were not followed"
                    )
                });
                return report;
            }
            Outcome::NotExhausted { states, limit } => {
                report.what = Some(limit.text().to_owned());
                report.states = Some(states);
                return report;
            }
            Outcome::Broken { fault, trace } => (fault.to_string(), trace, Vec::new()),
            Outcome::Starved { node, trace, cycle } => {
                (format!("{node} waits forever"), trace, cycle)
            }
            Outcome::Restless { trace, cycle } => {
                let what = "no node requests, and yet messages never stop";
                (what.to_owned(), trace, cycle)
            }
        };
        report.transcript = Some(transcript(&self.head(), &what, &trace, &cycle));
        report.what = Some(what);
        report
    }

    /// The head of this case's scenario.
    fn head(&self) -> String {
        let mut head = format!("algorithm {}\n", self.choice.kind);
        let variants = self.choice.variants.names(self.choice.kind.info());
        if !variants.is_empty() {
            let _ = writeln!(head, "variant {variants}");
        }
        let _ = writeln!(head, "nodes {}", self.nodes);
        match &self.shape {
            ShapeSpec::Default => {}
            ShapeSpec::Form(form) => {
                let _ = writeln!(head, "shape {form}");
            }
            ShapeSpec::Listing(listing) => {
                let lines = listing
                    .lines()
                    .map(|line| line.split('#').next().unwrap_or(""));
                let lines: Vec<_> = lines
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect();
                let _ = writeln!(head, "listing {}", lines.join("; "));
            }
        }
        let _ = writeln!(head, "home {}", self.start.home);
        if let Some(inside) = self.start.inside {
            let _ = writeln!(head, "inside {inside}");
        }
        let _ = writeln!(head, "channels {}", self.limits.channels);
        head
    }
}

struct Prepare<'a> {
    case: &'a Case,
    requests: Vec<u8>,
}

struct Planned {
    plan: Plan,
    shape: String,
}

impl Visitor for Prepare<'_> {
    type Output = Result<Planned, CaseError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let case = self.case;
        let bounds = Bounds {
            shape: Arc::new(case.shape.build(case.nodes)?),
            start: case.start,
            variants: case.choice.variants,
            requests: self.requests,
            limits: case.limits,
        };
        if case.limits.crashes.most > 0 && A::recovering(&bounds.config(), 1).is_none() {
            return Err(CaseError::NoRecovery(A::INFO.name));
        }
        if A::COUNTS_REQUESTS && bounds.requests.contains(&ENDLESS) {
            return Err(CaseError::Endless {
                algorithm: case.choice.name,
                able: without_counters(),
            });
        }
        Ok(Planned {
            plan: Plan::of::<A>(&bounds),
            shape: bounds.shape.to_string(),
        })
    }
}

fn without_counters() -> String {
    struct Counts;
    impl Visitor for Counts {
        type Output = bool;

        fn visit<A: Algorithm>(self) -> bool {
            A::COUNTS_REQUESTS
        }
    }
    let kinds = Kind::ALL.iter().filter(|kind| !kind.visit(Counts));
    let names: Vec<_> = kinds.map(|kind| kind.info().name).collect();
    names.join(", ")
}

impl Verdict {
    /// Text for users.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Broken => "broken",
            Verdict::Deadlock => "deadlock",
            Verdict::Starvation => "starvation",
            Verdict::Unrest => "unrest",
            Verdict::NotExhausted => "not exhausted",
        }
    }

    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Holds { cut: 0, .. } => Verdict::Holds,
            Outcome::Holds { .. } => Verdict::NotExhausted,
            Outcome::NotExhausted { .. } => Verdict::NotExhausted,
            Outcome::Broken { fault, .. } if fault.is_deadlock() => Verdict::Deadlock,
            Outcome::Starved { cycle, .. } if cycle.is_empty() => Verdict::Deadlock,
            Outcome::Broken { .. } => Verdict::Broken,
            Outcome::Starved { .. } => Verdict::Starvation,
            Outcome::Restless { .. } => Verdict::Unrest,
        }
    }
}

/// Builds the scenario of a trace, with the transcript of each step.
fn transcript(head: &str, what: &str, trace: &[String], cycle: &[String]) -> String {
    let mut script = format!("# {what}\n{head}\n> start\n");
    for step in trace {
        let _ = writeln!(script, "> {step}");
    }
    if !cycle.is_empty() {
        script.push_str("# from here on, repeated forever:\n");
        for step in cycle {
            let _ = writeln!(script, "> {step}");
        }
    }
    let _ = writeln!(script, "# {what}");
    scenario::replay(&script).expect("a trace can be replayed")
}
