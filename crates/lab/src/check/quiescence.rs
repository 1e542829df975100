//! Where nobody wants in, messages come to an end: no cycle of states in which nobody waits or is inside
//! and nobody asks. Raymond 1989, §8.6, says so of requests that recovery has doubled. A token
//! that roams by design is left out.

use soloist_algorithms::{Algorithm, Message, NodeId, Phase};

use super::components::Components;
use super::graph::{Endless, Graph};

/// Looks for messages that go on for ever; the nearest.
pub(super) fn find<A: Algorithm>(graph: &mut Graph<A>) -> Option<Endless> {
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

/// Whether some step leads from a state of the component to one of it, and no token roams on it.
fn goes_on<A: Algorithm>(graph: &Graph<A>, component: &[u32]) -> bool {
    let mut goes_on = false;
    for &state in component {
        for step in graph.steps(state) {
            if component.binary_search(&step.target).is_ok() {
                goes_on = true;
                let message = graph.message(state, step.action);
                if message.is_some_and(|message| message.is_roaming()) {
                    return false;
                }
            }
        }
    }
    goes_on
}
