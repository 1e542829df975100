//! Questions about every state of a small cluster, whatever faults it has.

use soloist_algorithms::{Algorithm, Snapshot};

use super::graph::Graph;
use super::plan::Plan;
use super::{Bounds, Outcome};

/// Returns whether a property of the nodes and the messages in flight holds in every state within
/// the bounds. The search's own properties are not checked. Returns false if a node refuses what a
/// correct peer sent.
///
/// # Panics
/// If there are more states than allowed.
pub fn always<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    is_so: impl Fn(&dyn Snapshot<A>) -> bool,
) -> bool {
    match Graph::walk(&Plan::of::<A>(bounds)) {
        Ok(graph) => (0..graph.len() as u32).all(|state| is_so(&graph.snapshot::<A>(state))),
        Err(Outcome::Broken { .. }) => false,
        Err(outcome) => panic!("{outcome:?}"),
    }
}

/// The most messages sent in any complete interleaving within the bounds. The number of requests
/// must be finite, and so must their effects.
///
/// # Panics
/// If a node refuses what a correct peer sent, or there are more states than allowed.
pub fn most_messages<A: Algorithm>(bounds: &Bounds<A::Shape>) -> usize {
    let Ok(graph) = Graph::walk(&Plan::of::<A>(bounds)) else {
        panic!("a node refused something, or there are too many states");
    };
    graph.envelopes(0) + most_from(&graph, 0, &mut vec![None; graph.len()])
}

/// The most messages sent from a state on. Runs are short, so the recursion is not deep.
fn most_from(graph: &Graph, state: u32, known: &mut Vec<Option<usize>>) -> usize {
    if let Some(most) = known[state as usize] {
        return most;
    }
    let mut most = 0;
    for step in graph.steps(state) {
        let delivered = usize::from(graph.message(state, step.action).is_some());
        let sent = graph.envelopes(step.target) + delivered - graph.envelopes(state);
        most = most.max(sent + most_from(graph, step.target, known));
    }
    known[state as usize] = Some(most);
    most
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::central::Central;
    use soloist_algorithms::{NodeId, Phase};

    use super::*;

    #[test]
    fn the_most_messages_are_those_of_all_requests() {
        let bounds = Bounds::of::<Central>(&[2, 1, 2]);
        assert_eq!(most_messages::<Central>(&bounds), 9);
    }

    #[test]
    fn violations_of_an_always_property_are_found() {
        let bounds = Bounds::of::<Central>(&[0, 1, 1]);
        let inside = |cluster: &dyn Snapshot<Central>| {
            let nodes = NodeId::all(cluster.len());
            nodes
                .filter(|&n| cluster.node(n).phase() == Phase::Inside)
                .count()
        };
        assert!(always::<Central>(&bounds, |cluster| inside(cluster) <= 1));
        assert!(!always::<Central>(&bounds, |cluster| inside(cluster) == 0));
        assert!(!always::<Central>(&bounds, |cluster| {
            let mut envelopes = 0;
            cluster.for_each_envelope(&mut |_, _, _| envelopes += 1);
            envelopes < 2
        }));
    }
}
