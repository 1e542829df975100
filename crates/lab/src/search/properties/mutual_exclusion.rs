//! Mutual exclusion: at most one node is inside. Chaudhuri and Karaata 1998, Lemma 3; Maekawa 1985,
//! section 6.1; Raymond 1989, §4.1; Neamatollahi et al. 2017, section 4.1; Lodha and Kshemkalyani
//! 2000, Theorem 1.

use soloist_algorithms::NodeId;

use super::View;
use crate::world::{Fault, two_inside};

pub(super) fn judge(view: &View, newcomer: NodeId) -> Result<(), Fault> {
    let phases = view.facts().map(|(node, facts)| (node, facts.phase));
    two_inside(newcomer, phases, view.entry.twice)
}
