//! A search as specified by a user, and its report.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Channels, Choice, NodeId, ShapeError, Start};

use super::{Bounds, Crashes, ENDLESS, Outcome, Watch, deepen};
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
    /// Whether messages between two nodes arrive in the order sent. Defaults to the algorithm's
    /// assumption.
    pub channels: Option<Channels>,
    /// How often each node may request; [`ENDLESS`] for no limit.
    pub requests: u8,
    /// The nodes that request; the others only serve. Defaults to all.
    pub requesters: Option<Vec<NodeId>>,
    /// How many crashes there may be.
    pub crashes: Crashes,
    /// Whether quiescent nodes may be forgotten: see [`Bounds::forgets`].
    pub forgets: bool,
    /// Whether to check the order of entries, and that fences increase.
    pub keep_history: bool,
    /// Whether to search for endless runs as well.
    pub endless_runs: bool,
    /// Steps that put more messages in flight than this are not followed.
    pub messages_max: Option<usize>,
    /// The search stops beyond this many states.
    pub states_max: usize,
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
    #[error("{0} nodes: a search can tell at most {most} apart", most = 64)]
    Nodes(usize),
    /// A node that the cluster does not have.
    #[error("node {node}: a cluster of {nodes} has 0 to {last}", last = .nodes - 1)]
    NoSuchNode {
        /// The node given.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// Crashes with an algorithm that does not support recovery.
    #[error("{0} knows no recovery from crashes: leave them out, or use raymond")]
    NoRecovery(&'static str),
    /// Too many crashes to count.
    #[error("{0} crashes: at most 15 can be searched")]
    Crashes(u8),
}

impl Case {
    /// Default limit on the number of states.
    pub const STATES_MAX: usize = 50_000_000;

    /// Limit on the number of states when searching for two nodes inside after a less severe
    /// result.
    const WORSE_MAX: usize = 5_000_000;

    /// The paper's own shape, the token at node 0, `requests` per node, no crashes, no forgetting.
    pub fn new(choice: Choice, nodes: usize, requests: u8) -> Self {
        Case {
            choice,
            nodes,
            shape: ShapeSpec::Default,
            start: Start::idle(NodeId::new(0)),
            channels: None,
            requests,
            requesters: None,
            crashes: Crashes::default(),
            forgets: false,
            keep_history: true,
            endless_runs: true,
            messages_max: None,
            states_max: Self::STATES_MAX,
        }
    }

    /// Searches with one request per node first, then two, four and so on: see
    /// [`check`](super::check()).
    pub fn run(&self, watch: &mut Watch) -> Result<Report, CaseError> {
        self.choice.kind.visit(Run { case: self, watch })
    }

    fn requesters(&self) -> Vec<NodeId> {
        let all = || NodeId::all(self.nodes).collect();
        self.requesters.clone().unwrap_or_else(all)
    }

    fn bounds<A: Algorithm>(&self) -> Result<Bounds<A::Shape>, CaseError> {
        if self.nodes > Bounds::<A::Shape>::NODES_MAX {
            return Err(CaseError::Nodes(self.nodes));
        }
        let shape = Arc::new(self.shape.build(self.nodes)?);
        let mut requests = vec![0; self.nodes];
        let named = [Some(self.start.home), self.start.inside];
        for node in self
            .requesters()
            .into_iter()
            .chain(named.into_iter().flatten())
        {
            if node.index() >= self.nodes {
                let nodes = self.nodes;
                return Err(CaseError::NoSuchNode { node, nodes });
            }
        }
        for node in self.requesters() {
            requests[node.index()] = self.requests;
        }
        if self.crashes.most > 15 {
            return Err(CaseError::Crashes(self.crashes.most));
        }
        let bounds = Bounds {
            shape,
            start: self.start,
            variants: self.choice.variants,
            channels: self.channels.unwrap_or(A::INFO.channels),
            crashes: self.crashes,
            forgets: self.forgets,
            keep_history: self.keep_history,
            endless_runs: self.endless_runs,
            messages_max: self.messages_max.unwrap_or(usize::MAX),
            states_max: self.states_max,
            ..Bounds::of::<A>(&requests)
        };
        if self.crashes.most > 0 && A::recovering(&bounds.config(), 1).is_none() {
            return Err(CaseError::NoRecovery(A::INFO.name));
        }
        Ok(bounds)
    }

    /// The head of this case's scenario.
    fn head<A: Algorithm>(&self, bounds: &Bounds<A::Shape>) -> String {
        let mut head = format!("algorithm {}\n", self.choice.kind);
        let variants = self.choice.variants.names(&A::INFO);
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
        let _ = writeln!(head, "channels {}", bounds.channels);
        head
    }
}

struct Run<'a, 'w> {
    case: &'a Case,
    watch: &'a mut Watch<'w>,
}

impl Visitor for Run<'_, '_> {
    type Output = Result<Report, CaseError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let case = self.case;
        let bounds = case.bounds::<A>()?;
        let outcome = deepen::<A>(&bounds, Case::WORSE_MAX, self.watch);
        let mut report = Report {
            algorithm: case.choice.name,
            variant: case.choice.variants.names(&A::INFO),
            nodes: case.nodes,
            shape: bounds.shape.to_string(),
            channels: bounds.channels.to_string(),
            requests: (case.requests != ENDLESS).then_some(case.requests),
            requesters: case.requesters().iter().map(|node| node.index()).collect(),
            home: case.start.home.index(),
            inside: case.start.inside.map(NodeId::index),
            crashes: case.crashes.most,
            forgets: case.forgets,
            verdict: Verdict::of(&outcome),
            what: None,
            states: None,
            endless_runs: case.endless_runs,
            cut: 0,
            transcript: None,
        };
        let (what, trace, cycle) = match outcome {
            Outcome::Holds { states, cut } => {
                report.states = Some(states);
                report.cut = cut;
                report.what = (cut > 0).then(|| {
                    format!(
                        "{cut} steps would put too many messages under way and were not followed"
                    )
                });
                return Ok(report);
            }
            Outcome::NotExhausted { states, limit } => {
                report.what = Some(limit.text().to_owned());
                report.states = Some(states);
                return Ok(report);
            }
            Outcome::Broken { fault, trace } => (fault.to_string(), trace, Vec::new()),
            Outcome::Starved { node, trace, cycle } => {
                (format!("{node} waits for ever"), trace, cycle)
            }
            Outcome::Restless { trace, cycle } => {
                let what = "nobody wants in, and yet messages go on for ever";
                (what.to_owned(), trace, cycle)
            }
        };
        report.transcript = Some(transcript(&case.head::<A>(&bounds), &what, &trace, &cycle));
        report.what = Some(what);
        Ok(report)
    }
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
        script.push_str("# from here on, over and over:\n");
        for step in cycle {
            let _ = writeln!(script, "> {step}");
        }
    }
    let _ = writeln!(script, "# {what}");
    scenario::replay(&script).expect("a trace is a scenario")
}
