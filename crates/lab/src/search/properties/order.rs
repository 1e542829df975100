//! Entries follow the order of their request ids. Lodha and Kshemkalyani 2000, Theorem 1; Lamport
//! 1978, condition II; Ricart and Agrawala 1981.

use soloist_algorithms::NodeId;

use super::View;
use crate::world::Fault;

pub(super) fn judge(view: &View, newcomer: NodeId) -> Result<(), Fault> {
    let View {
        system, interner, ..
    } = view;
    let facts = interner.facts(system.word(view.state, newcomer).local());
    let entered = interner.request(facts.request);
    match (interner.request(view.entry.last), entered) {
        (Some(last), Some(entered)) if entered <= last => Err(Fault::Order { entered, last }),
        _ => Ok(()),
    }
}
