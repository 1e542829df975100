//! Small pictures of runs, for lists: the cluster in its own shape at a moment that shows much.

use serde::Serialize;
use soloist_algorithms::{PHASE, Value};

use super::record::TOKEN;
use super::types::{Layout, Run};

/// A small picture of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Thumbnail {
    /// Where to draw the nodes.
    pub plan: Layout,
    /// The phase of each node: idle, waiting, inside or down.
    pub phases: Vec<&'static str>,
    /// The nodes that have a token.
    pub tokens: Vec<usize>,
}

impl Thumbnail {
    /// The last fault of a run, or else the first moment at which the most nodes wait for one that
    /// is inside.
    pub(super) fn of(run: &Run) -> Self {
        let mut now = State::start(run);
        let mut best = (now.worth(), now.clone());
        for step in &run.steps {
            for change in &step.changes {
                now.change(change.node, change.field, &change.after);
            }
            let worth = match step.fault {
                Some(_) => usize::MAX,
                None => now.worth(),
            };
            if worth > best.0 || step.fault.is_some() {
                best = (worth, now.clone());
            }
        }
        let (_, State { phases, has_token }) = best;
        let tokens = has_token.iter().enumerate();
        Thumbnail {
            plan: run.plan.clone(),
            phases,
            tokens: tokens.filter(|(_, has)| **has).map(|(n, _)| n).collect(),
        }
    }
}

/// What is drawn of each node.
#[derive(Clone)]
struct State {
    phases: Vec<&'static str>,
    has_token: Vec<bool>,
}

impl State {
    fn start(run: &Run) -> Self {
        let nodes = run.start.len();
        let mut state = State {
            phases: vec![""; nodes],
            has_token: vec![false; nodes],
        };
        for (node, fields) in run.start.iter().enumerate() {
            for (name, value) in &fields.0 {
                state.change(node, name, value);
            }
        }
        state
    }

    fn change(&mut self, node: usize, field: &str, value: &Value) {
        match value {
            Value::Text(phase) if field == PHASE.name => self.phases[node] = phase,
            Value::Flag(has) if field == TOKEN.name => self.has_token[node] = *has,
            _ => {}
        }
    }

    /// How much there is to see.
    fn worth(&self) -> usize {
        let count = |phase| self.phases.iter().filter(|it| **it == phase).count();
        count("waiting") + 3 * count("inside").min(1)
    }
}
