//! A token algorithm has exactly one token, at a node or in flight. Raymond 1989, §4.1, and §8 for
//! recovery, during which it may be unknown whether the crashed node had the token.

use soloist_algorithms::Algorithm;

use super::View;
use crate::world::Fault;

pub(super) fn judge<A: Algorithm>(view: &View<A>) -> Result<(), Fault> {
    let View { system, parts, .. } = view;
    let tokens = system.tokens(parts, view.state);
    let may_be_lost = || {
        system.bounds.crashes.neighbours_too || view.facts().any(|(_, facts)| facts.is_recovering)
    };
    let as_many = tokens == system.tokens && tokens <= 1;
    if as_many || (tokens == 0 && may_be_lost()) {
        Ok(())
    } else {
        Err(Fault::Tokens(tokens))
    }
}
