//! A token algorithm has exactly one token, at a node or in flight. Raymond 1989, §4.1, and §8 for
//! recovery, during which it may be unknown whether the crashed node had the token.

use super::View;
use crate::world::Fault;

pub(super) fn judge(view: &View) -> Result<(), Fault> {
    let View {
        system, interner, ..
    } = view;
    let tokens = system.tokens(interner, view.state);
    let may_be_lost = || {
        system.limits.crashes.neighbours_too || view.facts().any(|(_, facts)| facts.is_recovering)
    };
    let as_many = tokens == system.tokens && tokens <= 1;
    if as_many || (tokens == 0 && may_be_lost()) {
        Ok(())
    } else {
        Err(Fault::Tokens(tokens))
    }
}
