//! No deadlock: when nothing more can happen, every request has been served. Maekawa 1985, section
//! 6.2; Raymond 1989, §4.2; Neamatollahi et al. 2017, section 4.2; Lodha and Kshemkalyani 2000,
//! Theorem 2. Further requests do not count as something that can happen: no node is obliged to
//! request, unless others wait for that and it was told that it would.

use soloist_algorithms::Phase;

use super::View;
use crate::world::Fault;

pub(super) fn judge(view: &View) -> Result<(), Fault> {
    if view.state.len() > view.system.envelopes {
        return Ok(());
    }
    let mut waits = None;
    for (node, facts) in view.facts() {
        let word = view.system.word(view.state, node);
        let must_request = view.system.must_request(view.interner, word);
        if facts.phase == Phase::Inside || facts.is_recovering || must_request {
            return Ok(());
        }
        if facts.phase == Phase::Waiting {
            waits.get_or_insert(node);
        }
    }
    waits.map_or(Ok(()), |node| Err(Fault::Deadlock(node)))
}
