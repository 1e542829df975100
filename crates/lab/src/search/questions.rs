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
    match Graph::walk(&Plan::of::<A>(bounds), &mut |_| true) {
        Ok(graph) => (0..graph.len() as u32).all(|state| is_so(&graph.snapshot::<A>(state))),
        Err(Outcome::Broken { .. }) => false,
        Err(outcome) => panic!("{outcome:?}"),
    }
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::central::Central;
    use soloist_algorithms::{NodeId, Phase};

    use super::*;

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
