//! The worst case over all interleavings: the most messages, or the most often that a waiter is
//! overtaken.
//!
//! The graph of all states gets a gain per step. If all runs end, the worst case is a longest path.
//! A cycle with a gain makes it unbounded. If requests are endless, runs have no total, so the most
//! messages are counted per entry: the largest ratio over all cycles.
//!
//! A waiter is overtaken by each entry whose request was made after the waiter's own request had
//! arrived, that is, after all messages that it sent on requesting were delivered, as in the
//! simulator. A state does not say which of several equal messages is the waiter's; the last one to
//! arrive is taken for it.

mod overtaking;
mod ratio;
mod weighted;

use super::graph::Graph;
use super::plan::Plan;
use super::system::Action;
use super::{ENDLESS, Limit, Outcome, Watch};
use crate::world::Fault;
use weighted::{Edge, Longest, Weighted};

/// What is to be as large as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// The number of messages: of the whole run or, if requests are endless, per entry.
    Messages,
    /// How often one waiter is overtaken.
    Overtaking,
}

/// The worst case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Worst {
    /// The largest value, and a run that has it.
    Most {
        /// The value.
        most: u64,
        /// Number of entries of the run.
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
        Aim::Messages => {
            let weighted = Weighted::of_messages(&graph);
            let sent_at_start = graph.envelopes(0) as u64;
            let longest = weighted.longest(&[0]);
            conclude(&mut graph, &weighted, longest, sent_at_start, |_, _| {
                Vec::new()
            })
        }
        Aim::Overtaking => overtaking::most(&mut graph, plan.limits.states_max),
    }
}

/// Describes the longest path. `way` returns the way to a root or, with `true`, to any node.
fn conclude(
    graph: &mut Graph,
    weighted: &Weighted,
    longest: Longest,
    so_far: u64,
    way: impl Fn(&mut Graph, u32) -> Vec<Action>,
) -> Worst {
    let states = graph.len();
    match longest {
        Longest::Path { gain, root, path } => {
            let mut run = way(graph, root);
            run.extend(weighted.actions(graph, &path));
            let entries = entries(graph, &run);
            Worst::Most {
                most: so_far + gain,
                entries,
                states,
                trace: graph.describe(run),
            }
        }
        Longest::Unbounded { way: path, cycle } => {
            let root = path.first().or(cycle.first()).map_or(0, |edge| edge.source);
            let mut run = way(graph, root);
            run.extend(weighted.actions(graph, &path));
            let cycle = weighted.actions(graph, &cycle);
            let (trace, cycle) = graph.describe_endless(super::graph::Endless { way: run, cycle });
            Worst::Unbounded {
                states,
                trace,
                cycle,
            }
        }
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
