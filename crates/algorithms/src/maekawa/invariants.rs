//! Invariants of the whole cluster.

use super::{Maekawa, MaekawaMessage, MemberLock};
use crate::{NodeId, Snapshot};

/// Maekawa 1985, section 4: a member is locked for one request at a time. Its lock is at the
/// member, in flight to one node, held by one node, or in flight back. Steps (3) and (4) as printed
/// violate this, so `as-published` is not checked; the search finds the consequences.
pub(super) fn one_lock_a_member(cluster: &dyn Snapshot<Maekawa>) -> Result<(), &'static str> {
    let mut given = vec![0_u32; cluster.len()];
    for node in NodeId::all(cluster.len()) {
        let state = cluster.node(node);
        if !state.checks_lock {
            return Ok(());
        }
        let held = |s: &MemberLock| matches!(s, MemberLock::Locked | MemberLock::LockedInquired);
        for place in (0..state.members.len()).filter(|&place| held(&state.members[place])) {
            given[state.member(place).index()] += 1;
        }
    }
    cluster.for_each_envelope(&mut |from, to, message| match message {
        MaekawaMessage::Locked(_) => given[from.index()] += 1,
        MaekawaMessage::Release(_) | MaekawaMessage::Relinquish(_) => given[to.index()] += 1,
        _ => {}
    });
    if given.iter().any(|&locks| locks > 1) {
        return Err("a member's lock was given to two");
    }
    Ok(())
}
