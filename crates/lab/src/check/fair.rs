//! Weak fairness: is everybody served in the end, however long the others go on asking?
//!
//! [`search`](super::search()) shows that everybody always *can* be served. This shows that they
//! *will* be, in every run that is weakly fair: a duty that is open from some moment on without a
//! break is done some time. Duties are that a message under way arrives, and that who is inside
//! leaves. To ask is no duty; and a run may end when no duty is open.
//!
//! A run in which a node waits for ever stays, from some moment on, in one strongly connected
//! component of the states in which this node waits. If a duty is open in all states of a
//! component and done on none of its steps, no fair run stays in it, or in a part of it. If there
//! is no such duty, the run that takes all its steps over and over is fair, and the node starves.
//! So it is enough to look at the components, and what is found is no false alarm.

use std::collections::{HashMap, VecDeque};

use soloist_algorithms::{Algorithm, NodeId};

use super::graph::{Graph, NoGraph, Step};
use super::search::{Action, Bounds, path, replay};
use crate::world::Fault;

/// What was found about fairness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FairOutcome {
    /// In every fair run everybody who asks enters.
    Fair {
        /// How many states there are.
        states: usize,
        /// How many steps were not followed, since too many messages would be under way. If none,
        /// this holds for all runs.
        cut: usize,
    },
    /// A node may wait for ever.
    Starved {
        /// The node.
        node: NodeId,
        /// How it comes to that, readable.
        trace: Vec<String>,
        /// What can happen over and over from there on, in all fairness; nothing, if the run ends.
        cycle: Vec<String>,
    },
    /// Something broke; the trace is a shortest one.
    Broken {
        /// What broke.
        fault: Fault,
        /// How to get there, readable.
        trace: Vec<String>,
    },
    /// There are more states than allowed.
    NotExhausted,
}

/// Looks for a fair run within the bounds in which a node waits for ever; give
/// [`ENDLESS`](super::ENDLESS) requests. Steps that put more than `letters_max` messages under
/// way are not followed: where messages overtake each other, there may be ever more of them.
///
/// # Panics
/// If there are more than 64 nodes.
pub fn fair<A: Algorithm>(bounds: &Bounds<A::Shape>, letters_max: usize) -> FairOutcome {
    let graph = match Graph::explore::<A>(bounds, letters_max) {
        Ok(graph) => graph,
        Err(NoGraph::Broken { fault, trace }) => return FairOutcome::Broken { fault, trace },
        Err(NoGraph::TooLarge) => return FairOutcome::NotExhausted,
    };
    for node in NodeId::all(bounds.requests.len()) {
        if let Some(trap) = nearest_trap(&graph, node) {
            let way = path(&graph.parents, trap[0] as usize);
            let cycle = fair_cycle(&graph, &trap);
            let mut trace = replay::<A>(bounds, way.iter().chain(&cycle).copied());
            let cycle = trace.split_off(way.len());
            return FairOutcome::Starved { node, trace, cycle };
        }
    }
    FairOutcome::Fair {
        states: graph.parents.len(),
        cut: graph.cut(),
    }
}

/// The component nearest to the first state in which a fair run can stay while `node` waits. Its
/// states are in order.
fn nearest_trap(graph: &Graph, node: NodeId) -> Option<Vec<u32>> {
    let mut nearest: Option<Vec<u32>> = None;
    graph.components_while_waiting(node, |component| {
        component.sort_unstable();
        let nearer = nearest.as_ref().is_none_or(|trap| component[0] < trap[0]);
        if nearer && is_trap(graph, component) {
            nearest = Some(component.to_vec());
        }
    });
    nearest
}

/// Whether every duty that is open in all states of a component is done on a step within it.
fn is_trap(graph: &Graph, component: &[u32]) -> bool {
    let steps = || component.iter().flat_map(|&state| graph.steps_of(state));
    let is_done = |duty| steps().any(|s| s.duty == Some(duty) && is_within(component, s));
    let is_always_open = |duty| component.iter().all(|&state| graph.is_open(duty, state));
    let mut candidates = graph.steps_of(component[0]).iter().filter_map(|s| s.duty);
    candidates.all(|duty| is_done(duty) || !is_always_open(duty))
}

fn is_within(component: &[u32], step: &Step) -> bool {
    component.binary_search(&step.target).is_ok()
}

/// A cycle in a trap, from its first state, that is fair if it goes on for ever: on it, each
/// duty is done or is not open in some state. So it is already for those not open in the first
/// state.
fn fair_cycle(graph: &Graph, trap: &[u32]) -> Vec<Action> {
    let first = trap[0];
    let mut cycle: Vec<&Step> = Vec::new();
    let here = |cycle: &[&Step]| cycle.last().map_or(first, |step| step.target);
    for duty in graph.steps_of(first).iter().filter_map(|step| step.duty) {
        let is_met = |s: &Step| s.duty == Some(duty) || !graph.is_open(duty, s.target);
        if !cycle.iter().any(|step| is_met(step)) {
            cycle.extend(shortest_walk(graph, trap, here(&cycle), is_met));
        }
    }
    if here(&cycle) != first {
        cycle.extend(shortest_walk(graph, trap, here(&cycle), |step| {
            step.target == first
        }));
    }
    cycle.iter().map(|step| step.action).collect()
}

/// The shortest walk within a component that ends with such a step.
fn shortest_walk<'g>(
    graph: &'g Graph,
    component: &[u32],
    from: u32,
    is_last: impl Fn(&Step) -> bool,
) -> Vec<&'g Step> {
    let mut came_by: HashMap<u32, (u32, &Step)> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(state) = queue.pop_front() {
        let steps = graph.steps_of(state).iter();
        for step in steps.filter(|step| is_within(component, step)) {
            if is_last(step) {
                let mut walk = vec![step];
                let mut at = state;
                while at != from {
                    let (before, step) = came_by[&at];
                    walk.push(step);
                    at = before;
                }
                walk.reverse();
                return walk;
            }
            came_by.entry(step.target).or_insert_with(|| {
                queue.push_back(step.target);
                (state, step)
            });
        }
    }
    unreachable!("a trap has such a step, and it is strongly connected")
}
