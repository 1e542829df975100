//! The papers' own invariants, local and of the whole cluster. Each is stated, with its section, at the
//! algorithm: Chaudhuri and Karaata's I1 and I2, and the bound of their Theorem 4; Raymond's queue of
//! at most one entry a neighbour (§3.1), and HOLDER pointers that lead to the privilege (§4.2); Neamatollahi's
//! queue of at most two (section 3.2); Maekawa's one lock a member (section 4).

use soloist_algorithms::Algorithm;

use super::View;
use crate::world::Fault;

pub(super) fn judge<A: Algorithm>(view: &View<A>) -> Result<(), Fault> {
    for (node, facts) in view.facts() {
        if let Some(broken) = facts.broken {
            return Err(Fault::Invariant { node, broken });
        }
    }
    // Nothing is promised where neighbours lost their states together.
    if view.system.bounds.crashes.neighbours_too {
        return Ok(());
    }
    A::cluster_invariant(view).map_err(Fault::ClusterInvariant)
}
