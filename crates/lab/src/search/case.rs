//! A search as specified by a user, and its report.

use std::fmt::Write as _;
use std::sync::Arc;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Choice, Kind, NodeId, ShapeError, Start};

use super::plan::Plan;
use super::report::{Report, Setting, Verdict, WorstReport, reduced_transcript, transcript};
use super::worst::{self, Aim};
use super::{Bounds, ENDLESS, Limits, Outcome, Watch};
use crate::ShapeSpec;

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
    /// How often each node may request: [`ENDLESS`] for no limit, 0 for a node that only serves.
    pub requests: Vec<u8>,
    /// What may happen, what is checked, and how far the search goes.
    pub limits: Limits,
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
    /// A list of requests per node that does not fit the number of nodes.
    #[error("{given} numbers of requests for {nodes} nodes: give one number, or one per node")]
    Requests {
        /// The length of the list.
        given: usize,
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
            requests: vec![requests; nodes],
            limits: Limits {
                states_max: Self::STATES_MAX,
                ..Limits::new(choice.kind.info().channels)
            },
        }
    }

    /// Searches with one request per node first, then two, four and so on: see
    /// [`check`](super::check()).
    pub fn run(&self, watch: &mut Watch) -> Result<Report, CaseError> {
        self.check()?;
        let Planned { plan, shape } = self.choice.kind.visit(Prepare { case: self })?;
        Ok(self.report(shape, plan.deepen(Self::WORSE_MAX, watch)))
    }

    /// Searches for the worst case over all interleavings.
    pub fn worst(&self, aim: Aim, watch: &mut Watch) -> Result<WorstReport, CaseError> {
        self.check()?;
        let Planned { plan, shape } = self.choice.kind.visit(Prepare { case: self })?;
        let worst = worst::find(&plan, aim, watch);
        Ok(WorstReport::new(
            self.setting(shape),
            &self.head(),
            aim,
            worst,
        ))
    }

    /// Lets only these nodes request; the others only serve.
    pub fn request_only(&mut self, nodes: &[NodeId]) -> Result<(), CaseError> {
        self.check_nodes(nodes)?;
        for (node, requests) in NodeId::all(self.nodes).zip(&mut self.requests) {
            if !nodes.contains(&node) {
                *requests = 0;
            }
        }
        Ok(())
    }

    /// Lets only these nodes crash.
    pub fn crash_only(&mut self, nodes: &[NodeId]) -> Result<(), CaseError> {
        self.check_nodes(nodes)?;
        if self.nodes > Limits::NODES_MAX {
            return Err(CaseError::Nodes(self.nodes));
        }
        let bits = nodes.iter().map(|node| 1 << node.index());
        self.limits.crashes.nodes = Some(bits.fold(0, |all, bit: u64| all | bit));
        Ok(())
    }

    fn check_nodes(&self, named: &[NodeId]) -> Result<(), CaseError> {
        let nodes = self.nodes;
        match named.iter().find(|node| node.index() >= nodes) {
            Some(&node) => Err(CaseError::NoSuchNode { node, nodes }),
            None => Ok(()),
        }
    }

    /// Checks what does not depend on the algorithm.
    fn check(&self) -> Result<(), CaseError> {
        if self.nodes > Limits::NODES_MAX {
            return Err(CaseError::Nodes(self.nodes));
        }
        let crashes = self.limits.crashes.most;
        if crashes > Limits::CRASHES_MAX && crashes != ENDLESS {
            return Err(CaseError::Crashes(crashes));
        }
        self.check_lists()
    }

    /// Checks that the requests, and the nodes of the start, fit the number of nodes.
    pub(crate) fn check_lists(&self) -> Result<(), CaseError> {
        let (given, nodes) = (self.requests.len(), self.nodes);
        if given != nodes {
            return Err(CaseError::Requests { given, nodes });
        }
        self.check_nodes(&[self.start.home])?;
        self.check_nodes(self.start.inside.as_slice())
    }

    /// What is searched.
    pub(crate) fn setting(&self, shape: String) -> Setting {
        let asking = |node: &usize| self.requests[*node] > 0;
        let requesters: Vec<usize> = (0..self.nodes).filter(asking).collect();
        let most = self.requests.iter().copied().max().unwrap_or(0);
        let limit = |requests: u8| (requests != ENDLESS).then_some(requests);
        let is_even = requesters.iter().all(|&node| self.requests[node] == most);
        let crashes = self.limits.crashes;
        let may_crash = |node: &NodeId| crashes.may_hit(*node);
        let crash_nodes = NodeId::all(self.nodes).filter(may_crash);
        Setting {
            algorithm: self.choice.name,
            variant: self.choice.variants.names(self.choice.kind.info()),
            nodes: self.nodes,
            shape,
            channels: self.limits.channels.to_string(),
            requests: limit(most),
            requests_by_node: (!is_even)
                .then(|| self.requests.iter().copied().map(limit).collect()),
            requesters,
            home: self.start.home.index(),
            inside: self.start.inside.map(NodeId::index),
            crashes: limit(crashes.most),
            crash_nodes: crashes
                .nodes
                .map(|_| crash_nodes.map(NodeId::index).collect()),
            loses_messages: crashes.loses_messages,
            long_wait: crashes.long_wait,
            known_requests: self.limits.known_requests,
            forgets: self.limits.forgets,
        }
    }

    fn report(&self, shape: String, outcome: Outcome) -> Report {
        let mut report = Report {
            setting: self.setting(shape),
            verdict: Verdict::of(&outcome),
            what: None,
            states: None,
            transitions: None,
            endless_runs: self.limits.endless_runs,
            cut: 0,
            transcript: None,
        };
        let (what, trace, cycle) = match outcome {
            Outcome::Holds {
                states,
                transitions,
                cut,
            } => {
                report.states = Some(states);
                report.transitions = Some(transitions);
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
        let tell = match self.limits.crashes.are_endless() {
            true => reduced_transcript,
            false => transcript,
        };
        report.transcript = Some(tell(&self.head(), &what, &trace, &cycle));
        report.what = Some(what);
        report
    }

    /// A run of this case as a scenario.
    pub(crate) fn transcript(&self, what: &str, steps: &[String]) -> String {
        transcript(&self.head(), what, steps, &[])
    }

    /// The head of this case's scenario.
    pub(crate) fn head(&self) -> String {
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
            requests: case.requests.clone(),
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
