//! Quiescence: if no node wants to enter, messages stop. No cycle of states exists in which all
//! nodes are idle and none requests. Raymond 1989, §8.6, claims this for requests that recovery has
//! duplicated. A token that roams by design is excluded.

use soloist_algorithms::{NodeId, Phase};

use super::components::Components;
use super::graph::{Endless, Graph};

/// Searches for the nearest cycle on which messages continue forever.
pub(super) fn find(graph: &mut Graph) -> Option<Endless> {
    // Crashes without end cause messages without end.
    if graph.system.limits.crashes.are_endless() {
        return None;
    }
    let all_idle = |state: u32| {
        let mut nodes = NodeId::all(graph.system.nodes);
        nodes.all(|node| graph.phase(state, node) == Phase::Idle)
    };
    let components = Components::new(graph, all_idle);
    let component = components.nearest(|component| goes_on(graph, component))?;
    let first = component[0];
    let cycle = graph.shortest_walk(&component, first, |step| step.target == first);
    Some(Endless {
        cycle: cycle.iter().map(|step| step.action).collect(),
        way: graph.way_to(first),
    })
}

/// Returns whether a step stays within the component and no token roams in it.
fn goes_on(graph: &Graph, component: &[u32]) -> bool {
    let mut goes_on = false;
    for &state in component {
        for step in graph.steps(state) {
            if component.binary_search(&step.target).is_ok() {
                goes_on = true;
                let message = graph.message(state, step.action);
                if message.is_some_and(|message| message.is_roaming) {
                    return false;
                }
            }
        }
    }
    goes_on
}
