//! The worst case over all interleavings: the most messages, or the most often that a waiter is
//! overtaken.
//!
//! The graph of all states gets a gain per step. How often a waiter is overtaken is a longest path,
//! and a cycle with a gain makes it unbounded. Messages are counted per entry: if requests are
//! finite, the largest ratio over all [complete runs](complete); if they are endless, the largest
//! ratio over all [cycles](ratio).
//!
//! A waiter is overtaken by each entry whose request was made after the waiter's own request had
//! arrived, that is, after all messages that it sent on requesting were delivered, as in the
//! simulator. A state does not say which of several equal messages is the waiter's; the last one to
//! arrive is taken for it.

mod complete;
mod overtaking;
mod ratio;
mod weighted;

use super::graph::{Endless, Graph};
use super::plan::Plan;
use super::system::Action;
use super::{ENDLESS, Limit, Outcome, Watch};
use crate::world::Fault;
use weighted::{Edge, Longest, Weighted};

/// What is to be as large as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// The number of messages per entry: of a complete run, in which every request was served and
    /// no message is left in flight, or, if requests are endless, in the long run.
    Messages,
    /// How often one waiter is overtaken.
    Overtaking,
}

/// The worst case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Worst {
    /// A run with the largest value.
    Most {
        /// How often a waiter is overtaken in it or, with [`Aim::Messages`], its messages. No
        /// complete run has more messages per entry.
        most: u64,
        /// Number of entries of the run. With [`Aim::Messages`], 0 if no run is complete.
        entries: u64,
        /// Number of states.
        states: usize,
        /// The run, as steps of a scenario.
        trace: Vec<String>,
    },
    /// The most messages per entry, and a cycle that has it.
    Ratio {
        /// Messages on the cycle.
        messages: u64,
        /// Entries on the cycle.
        entries: u64,
        /// Number of states.
        states: usize,
        /// The way to the cycle, as steps of a scenario.
        trace: Vec<String>,
        /// The cycle.
        cycle: Vec<String>,
    },
    /// There is no largest value.
    Unbounded {
        /// Number of states.
        states: usize,
        /// The way to the cycle, as steps of a scenario.
        trace: Vec<String>,
        /// Steps that can be repeated as often as one likes, each time with a gain.
        cycle: Vec<String>,
    },
    /// A node refused what a correct peer sent.
    Broken {
        /// The violation.
        fault: Fault,
        /// The way to it, as steps of a scenario.
        trace: Vec<String>,
    },
    /// The search stopped before it had visited all states, so nothing is known.
    NotExhausted {
        /// Number of states visited.
        states: usize,
        /// Why the search stopped.
        limit: Limit,
    },
}

/// Finds the worst case over all runs within the bounds. Properties are not checked, and no history
/// is kept, whatever the bounds say.
pub(super) fn find(plan: &Plan, aim: Aim, watch: &mut Watch) -> Worst {
    let mut plan = plan.clone();
    plan.limits.keep_history = false;
    let mut graph = match Graph::walk(&plan, watch) {
        Ok(graph) if graph.cut() > 0 => {
            let (states, limit) = (graph.len(), Limit::Messages);
            return Worst::NotExhausted { states, limit };
        }
        Ok(graph) => graph,
        Err(Outcome::Broken { fault, trace }) => return Worst::Broken { fault, trace },
        Err(Outcome::NotExhausted { states, limit }) => {
            return Worst::NotExhausted { states, limit };
        }
        Err(_) => unreachable!("a walk judges nothing"),
    };
    let endless = plan.requests.contains(&ENDLESS);
    match aim {
        Aim::Messages if endless => ratio::most(&mut graph),
        Aim::Messages => complete::most(&mut graph),
        Aim::Overtaking => overtaking::most(&mut graph, plan.limits.states_max),
    }
}

/// Describes the longest path. `way` returns the way to a root.
fn conclude(
    graph: &mut Graph,
    weighted: &Weighted,
    longest: Longest,
    way: impl Fn(&mut Graph, u32) -> Vec<Action>,
) -> Worst {
    match longest {
        Longest::Path { gain, root, path } => {
            let mut run = way(graph, root);
            run.extend(weighted.actions(graph, &path));
            let entries = entries(graph, &run);
            Worst::Most {
                most: gain,
                entries,
                states: graph.len(),
                trace: graph.describe(run),
            }
        }
        Longest::Unbounded { way: path, cycle } => {
            let root = path.first().or(cycle.first()).map_or(0, |edge| edge.source);
            let mut run = way(graph, root);
            run.extend(weighted.actions(graph, &path));
            unbounded(graph, weighted, run, &cycle)
        }
    }
}

/// Describes a cycle that can be repeated, and the way to it.
fn unbounded(graph: &mut Graph, weighted: &Weighted, way: Vec<Action>, cycle: &[Edge]) -> Worst {
    let cycle = weighted.actions(graph, cycle);
    let (trace, cycle) = graph.describe_endless(Endless { way, cycle });
    Worst::Unbounded {
        states: graph.len(),
        trace,
        cycle,
    }
}

/// Number of entries of a run.
fn entries(graph: &mut Graph, run: &[Action]) -> u64 {
    let path = graph.states_on(run);
    let pairs = path.windows(2);
    pairs
        .filter(|pair| graph.entered(pair[0], pair[1]).is_some())
        .count() as u64
}

/// The edges of a run of the weighted graph as actions.
impl Weighted {
    fn actions(&self, graph: &Graph, edges: &[Edge]) -> Vec<Action> {
        let action = |edge: &Edge| {
            let state = self.states[edge.source as usize];
            graph.steps(state)[self.labels[edge.index] as usize].action
        };
        edges.iter().map(action).collect()
    }
}
