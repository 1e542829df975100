//! Mutual exclusion: at most one node is inside. Chaudhuri and Karaata 1998, Lemma 3; Maekawa 1985,
//! section 6.1; Raymond 1989, §4.1; Neamatollahi et al. 2017, section 4.1; Lodha and Kshemkalyani
//! 2000, Theorem 1.

use soloist_algorithms::{Algorithm, NodeId, Phase};

use super::View;
use crate::world::Fault;

pub(super) fn judge<A: Algorithm>(view: &View<A>, newcomer: NodeId) -> Result<(), Fault> {
    let mut others = view.facts().filter(|(node, _)| *node != newcomer);
    let other = others.find(|(_, facts)| facts.phase == Phase::Inside);
    match other {
        Some((other, _)) => Err(Fault::TwoInside { newcomer, other }),
        None if view.entry.twice => Err(Fault::TwoInside {
            newcomer,
            other: newcomer,
        }),
        None => Ok(()),
    }
}
