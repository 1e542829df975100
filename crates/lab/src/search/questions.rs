//! Questions about every state of a small cluster, whatever faults it has.

use soloist_algorithms::{Algorithm, Snapshot};

use super::graph::{CUT, Graph};
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

/// Calls `look` with the cluster before and after every step within the bounds. The search's own
/// properties are not checked. Returns false if a node refuses what a correct peer sent.
///
/// # Panics
/// If there are more states than allowed.
pub fn for_each_step<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    mut look: impl FnMut(&dyn Snapshot<A>, &dyn Snapshot<A>),
) -> bool {
    let graph = match Graph::walk(&Plan::of::<A>(bounds), &mut |_| true) {
        Ok(graph) => graph,
        Err(Outcome::Broken { .. }) => return false,
        Err(outcome) => panic!("{outcome:?}"),
    };
    for state in 0..graph.len() as u32 {
        let before = graph.snapshot::<A>(state);
        for &target in graph.targets(state) {
            assert_ne!(target, CUT, "a step beyond the limit of messages in flight");
            look(&before, &graph.snapshot::<A>(target));
        }
    }
    true
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

    #[test]
    fn every_step_is_seen_with_the_states_before_and_after_it() {
        let bounds = Bounds::of::<Central>(&[0, 1, 1]);
        let mut changes = Vec::new();
        let is_well = for_each_step::<Central>(&bounds, |before, after| {
            let phase =
                |cluster: &dyn Snapshot<Central>| cluster.node(NodeId::new(1)).phase() as u8;
            let change = (phase(before), phase(after));
            if change.0 != change.1 && !changes.contains(&change) {
                changes.push(change);
            }
        });
        let [idle, waiting, inside] = [Phase::Idle, Phase::Waiting, Phase::Inside].map(|p| p as u8);
        changes.sort_unstable();
        let mut expected = [(idle, waiting), (waiting, inside), (inside, idle)];
        expected.sort_unstable();
        assert!(is_well);
        assert_eq!(changes, expected);
    }
}
