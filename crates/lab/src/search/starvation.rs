//! Starvation under weak fairness: does every waiting node enter eventually, however often the
//! others request?
//!
//! A run is weakly fair if every duty that is continuously open from some point on is eventually
//! fulfilled. The duties are that a message in flight arrives, that a node inside leaves, that a
//! crashed node recovers and, if nodes know their requests, that a node requests for which others
//! wait. A duty is open while an action that fulfils it is enabled. Other requests are not a duty,
//! and a run may end when no duty is open.
//!
//! A run in which a node waits forever eventually stays in one strongly connected component of the
//! states in which this node waits. If a duty is open in all states of a component and fulfilled on
//! none of its steps, no fair run stays in the component or in a part of it. If there is no such
//! duty, the run that repeats all steps of the component is fair, and the node starves. So it is
//! enough to examine the components, and there are no false alarms.

use soloist_algorithms::NodeId;

use super::components::Components;
use super::graph::{Endless, Graph, Step};
use super::system::{Action, Duty};

/// Searches for a fair run in which a node waits forever. Returns the nearest such run of the first
/// node that has one. The cycle is empty if the run ends.
pub(super) fn find(graph: &mut Graph) -> Option<(NodeId, Endless)> {
    let to_stay = States::to_stay(graph);
    let crashes = graph.system.limits.crashes;
    // A node that crashes forever may wait forever.
    let is_judged = |node: &NodeId| !(crashes.are_endless() && crashes.may_hit(*node));
    for node in NodeId::all(graph.system.nodes).filter(is_judged) {
        if let Some(trap) = nearest_trap(graph, &to_stay, node) {
            let cycle = fair_cycle(graph, &trap);
            let way = graph.way_to(trap[0]);
            return Some((node, Endless { way, cycle }));
        }
    }
    None
}

/// A set of states, one bit per state.
struct States(Vec<u64>);

impl States {
    /// The states in which a run may stay: those on a cycle, and those in which no duty is open.
    fn to_stay(graph: &Graph) -> Self {
        let mut states = States(vec![0; graph.len().div_ceil(64)]);
        Components::new(graph, |_| true).for_each(|component| {
            let first = component[0];
            let comes_back = component.len() > 1 || graph.targets(first).contains(&first);
            let quiet = || graph.state(first).len() == graph.system.envelopes;
            let may_end = || quiet() && graph.steps(first).iter().all(|step| step.duty.is_none());
            if comes_back || may_end() {
                for &state in component.iter() {
                    states.0[state as usize / 64] |= 1 << (state % 64);
                }
            }
        });
        states
    }

    fn contains(&self, state: u32) -> bool {
        self.0[state as usize / 64] >> (state % 64) & 1 == 1
    }
}

/// Returns the *trap* nearest to the first state: a component in which a fair run can stay while
/// `node` waits. Its states are sorted.
fn nearest_trap(graph: &Graph, to_stay: &States, node: NodeId) -> Option<Vec<u32>> {
    let waits = |state: u32| to_stay.contains(state) && graph.waits(state, node);
    Components::new(graph, waits).nearest(|component| is_trap(graph, component))
}

/// Returns whether every duty that is open in all states of a component is fulfilled on a step
/// within it. The component must be sorted.
pub(super) fn is_trap(graph: &Graph, component: &[u32]) -> bool {
    let first = graph.steps(component[0]);
    // The duties that were open in all states so far and fulfilled on no step within the component.
    let mut duties: Vec<Duty> = first.iter().filter_map(|step| step.duty).collect();
    for &state in component {
        let steps = graph.steps(state);
        duties.retain(|&duty| {
            let mut doing = steps.iter().filter(|step| step.duty == Some(duty));
            let is_open = doing.clone().next().is_some();
            is_open && !doing.any(|step| is_within(component, step))
        });
        if duties.is_empty() {
            return true;
        }
    }
    false
}

fn is_within(component: &[u32], step: &Step) -> bool {
    component.binary_search(&step.target).is_ok()
}

/// Returns a cycle in a trap, from its first state, that is fair if repeated forever: each duty is
/// fulfilled on it or is not open in one of its states. A duty that is not open in the first state
/// needs no step.
fn fair_cycle(graph: &Graph, trap: &[u32]) -> Vec<Action> {
    let first = trap[0];
    let mut cycle: Vec<Step> = Vec::new();
    let here = |cycle: &[Step]| cycle.last().map_or(first, |step| step.target);
    for duty in graph.steps(first).iter().filter_map(|step| step.duty) {
        let is_open = |state| graph.steps(state).iter().any(|s| s.duty == Some(duty));
        let is_met = |s: &Step| s.duty == Some(duty) || !is_open(s.target);
        if !cycle.iter().any(is_met) {
            cycle.extend(graph.shortest_walk(trap, here(&cycle), is_met));
        }
    }
    if here(&cycle) != first {
        cycle.extend(graph.shortest_walk(trap, here(&cycle), |step| step.target == first));
    }
    cycle.iter().map(|step| step.action).collect()
}
