//! The papers' own invariants, of a node and of the whole cluster. Each is stated, with its
//! section, in the algorithm's module: Chaudhuri and Karaata's I1 and I2, and the bound of their
//! Theorem 4; Raymond's queue of at most one entry per neighbour (§3.1), and HOLDER pointers that
//! lead to the privilege (§4.2); Neamatollahi's queue of at most two (section 3.2); Maekawa's one
//! lock per member (section 4).

use super::View;
use crate::world::Fault;

pub(super) fn judge(view: &View) -> Result<(), Fault> {
    for (node, facts) in view.facts() {
        if let Some(broken) = facts.broken {
            return Err(Fault::Invariant { node, broken });
        }
    }
    // Nothing is promised if neighbours lost their states together.
    if view.system.limits.crashes.neighbours_too {
        return Ok(());
    }
    let cluster = view.system.cluster(view.state);
    let invariant = view.interner.cluster_invariant(cluster);
    invariant.map_err(Fault::ClusterInvariant)
}
