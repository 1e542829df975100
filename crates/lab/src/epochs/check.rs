//! Searches of every interleaving of a small cluster with a few faults.
//!
//! Time advances in steps of a second, with a lease of three. Leases are renewed immediately in
//! each step, unless a fault prevents it. Everything else arrives at any time, in the order of its
//! link or connection.

use std::fmt::Write as _;

use serde::Serialize;
use soloist_algorithms::Choice;
use soloist_core::Tuning;
use soloist_core::rules::RuleError;

use super::budget::Budget;
use super::fault::Fault;
use super::setup::{names, rules};
use super::state::{Action, LEASE, State};
use super::text;
use crate::breadth_first::{self, Finding, Progress};
use crate::report::label;
use crate::search::Verdict;

/// A search: the cluster, and what may happen to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The algorithm of the lock.
    pub choice: Choice,
    /// Number of nodes.
    pub nodes: usize,
    /// What may happen.
    pub budget: Budget,
    /// Gives up after this many states.
    pub states_max: usize,
    /// Changes for tests.
    pub tuning: Tuning,
}

/// Why a case cannot be searched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// Too few or too many nodes.
    #[error("{0} nodes: a search of epochs has {least} to {most}", least = Case::NODES_MIN, most = Case::NODES_MAX)]
    Nodes(usize),
    /// A fault that only runs have.
    #[error("a search of epochs does not support the fault '{0}'; `lab epochs run` does")]
    Fault(Fault),
    /// Rules that a node would not take.
    #[error("a node cannot use these rules: {0}")]
    Rule(#[from] RuleError),
}

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Its variants.
    pub variant: String,
    /// Number of nodes.
    pub nodes: usize,
    /// What may have happened.
    pub budget: Budget,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of states visited.
    pub states: usize,
    /// What is violated, or why the search was not exhausted.
    pub what: Option<String>,
    /// A shortest way to the violation, as text that [`text::replay`] takes.
    pub text: Option<String>,
}

impl Report {
    /// The algorithm with its variants.
    pub fn label(&self) -> String {
        label(self.algorithm, &self.variant)
    }
}

impl Case {
    /// The smallest number of nodes.
    pub const NODES_MIN: usize = 2;
    /// The largest number of nodes.
    pub const NODES_MAX: usize = 8;
    /// Default limit on the number of states.
    pub const STATES_MAX: usize = 50_000_000;

    /// A search in which each of these faults may happen once, within the time that its effects
    /// take. The clients make two requests.
    pub fn new(choice: Choice, nodes: usize, faults: &[Fault]) -> Result<Self, CaseError> {
        if !(Self::NODES_MIN..=Self::NODES_MAX).contains(&nodes) {
            return Err(CaseError::Nodes(nodes));
        }
        rules(choice, nodes, 1)?;
        let mut budget = Budget {
            steps: 1,
            requests: 2,
            ..Budget::default()
        };
        for &fault in faults {
            budget.allow(fault)?;
        }
        Ok(Case {
            choice,
            nodes,
            budget,
            states_max: Self::STATES_MAX,
            tuning: Tuning::default(),
        })
    }

    /// Searches. Calls `watch` from time to time, which returns whether to continue.
    pub fn run(&self, watch: &mut dyn FnMut(Progress) -> bool) -> Report {
        let first = State::new(self.choice, self.nodes, self.budget, self.tuning);
        let text = |actions: &[Action], violation: &str| self.text(actions, violation);
        let Finding {
            verdict,
            states,
            what,
            text,
        } = breadth_first::find(first, self.states_max, watch, text);
        Report {
            algorithm: self.choice.name,
            variant: self.choice.variants.names(self.choice.kind.info()),
            nodes: self.nodes,
            budget: self.budget,
            verdict,
            states,
            what,
            text,
        }
    }

    /// A way to a violation as text, with its transcript.
    fn text(&self, actions: &[Action], violation: &str) -> String {
        let mut script = format!("# {violation}\nalgorithm {}\n", self.choice.name);
        let variant = self.choice.variants.names(self.choice.kind.info());
        if !variant.is_empty() {
            let _ = writeln!(script, "variant {variant}");
        }
        let _ = writeln!(script, "nodes {}", self.nodes);
        let (lease, drift) = (LEASE.length.as_secs(), LEASE.drift);
        let _ = writeln!(script, "lease {lease}s\ndrift {drift}");
        let _ = writeln!(script, "elections {}", self.budget.elections);
        if self.budget.is_gentle() {
            let _ = writeln!(script, "losses faulty");
        }
        let _ = writeln!(script);
        let names = names(self.nodes);
        for action in actions {
            let _ = writeln!(script, "> {}", action.step(&names));
        }
        let replay = |script: &str| {
            let text = text::replay_tuned(script, self.tuning);
            text.expect("a path to a violation can be replayed")
        };
        let text = replay(&script);
        if text.lines().any(|line| line.starts_with("FAULT ")) {
            return text;
        }
        // Every step is allowed, but then somebody waits forever.
        let _ = writeln!(script, "> finish");
        replay(&script)
    }
}

impl Budget {
    /// Lets this fault happen once more, and allows the time that its effects take.
    fn allow(&mut self, fault: Fault) -> Result<(), CaseError> {
        let (left, steps) = match fault {
            Fault::Crash => (&mut self.crashes, 4),
            Fault::Pause => (&mut self.stalls, 5),
            Fault::Apart => (&mut self.complaints, 6),
            Fault::Cut => (&mut self.cuts, 4),
            Fault::Slow => (&mut self.slow, 5),
            Fault::Lost => (&mut self.suspicions, 1),
            Fault::Depose => (&mut self.elections, 3),
            Fault::Leave => (&mut self.stops, 3),
            Fault::Suspend | Fault::Clocks => return Err(CaseError::Fault(fault)),
        };
        *left = left.saturating_add(1);
        self.steps = self.steps.max(steps);
        Ok(())
    }
}
