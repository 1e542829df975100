//! Entries follow the order of their request ids. Lodha and Kshemkalyani 2000, Theorem 1; Lamport
//! 1978, condition II; Ricart and Agrawala 1981.

use soloist_algorithms::{Algorithm, NodeId};

use super::View;
use crate::world::Fault;

pub(super) fn judge<A: Algorithm>(view: &View<A>, newcomer: NodeId) -> Result<(), Fault> {
    let View { system, parts, .. } = view;
    let facts = parts.facts(system.word(view.state, newcomer).local());
    let entered = parts.request(facts.request);
    match (parts.request(view.entry.last), entered) {
        (Some(last), Some(entered)) if entered <= last => Err(Fault::Order { entered, last }),
        _ => Ok(()),
    }
}
