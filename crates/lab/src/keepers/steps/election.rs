//! Elections.

use std::borrow::Cow;

use soloist_core::keepers::{NoAnswer, may_answer};

use crate::keepers::action::Action;
use crate::keepers::disk::{Cluster, Content, Disk, Entry, Ids, has, ids, set_of};
use crate::keepers::setup::{Setup, Variant};
use crate::keepers::state::State;

/// Why a voter does not answer a keeper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::keepers) enum Silence {
    /// Its machine is down.
    Down,
    /// It has no store.
    NoStore,
    /// Its store is of another cluster or generation.
    OtherCluster(Cluster),
    /// It does not know the keeper.
    Unknown,
    /// The keepers' rules forbid it.
    Rule(NoAnswer),
}

/// The store with which a voter answers this keeper.
pub(in crate::keepers) fn answering<'a>(
    setup: &Setup,
    state: &'a State,
    from: &Disk,
    voter: u8,
) -> Result<Cow<'a, Disk>, Silence> {
    let machine = &state.machines[state.owner(voter)];
    if !machine.up {
        return Err(Silence::Down);
    }
    let Some(disk) = &machine.store else {
        if setup.has(Variant::EmptyStoreVotes) {
            return Ok(Cow::Owned(Disk::new(from.cluster, voter)));
        }
        return Err(Silence::NoStore);
    };
    if disk.cluster != from.cluster {
        return Err(Silence::OtherCluster(disk.cluster));
    }
    let (me, from_id) = (disk.id.into(), from.id.into());
    may_answer(me, &disk.former(), from_id, voter.into()).map_err(Silence::Rule)?;
    let is_unknown = !disk.log.is_empty() && !has(disk.members().all(), from.id);
    if is_unknown && setup.has(Variant::RefuseUnknown) {
        return Err(Silence::Unknown);
    }
    Ok(Cow::Borrowed(disk))
}

/// Elections of this machine, or what it does instead if it sees a later generation.
pub(in crate::keepers) fn actions(
    setup: &Setup,
    state: &State,
    machine: usize,
    next: &mut Vec<Action>,
) {
    let Some(me) = state.machines[machine].store.as_ref() else {
        return;
    };
    if me.leads || !me.may_stand() || state.left.elections == 0 {
        return;
    }
    if successor(state, me).is_some() && !setup.has(Variant::IgnoreSuccessors) {
        next.push(Action::Notice(machine));
        return;
    }
    let reached = reached(setup, state, me);
    let mut asked = reached;
    loop {
        next.push(Action::Elect { machine, asked });
        // Every subset, down to the empty one.
        if !setup.partitions || asked == 0 {
            return;
        }
        asked = (asked - 1) & reached;
    }
}

/// The other voters that answer this keeper.
pub(in crate::keepers) fn reached(setup: &Setup, state: &State, me: &Disk) -> Ids {
    let others = ids(me.members().all_voters() & !(1 << me.id));
    set_of(others.filter(|id| answering(setup, state, me, *id).is_ok()))
}

/// A later generation of the cluster that one of this keeper's voters shows.
pub(in crate::keepers) fn successor(state: &State, me: &Disk) -> Option<Cluster> {
    let voters = ids(me.members().all_voters());
    let machines = voters.map(|id| &state.machines[state.owner(id)]);
    let shown = machines.filter(|machine| machine.up);
    let mut shown = shown.filter_map(|machine| Some(machine.store.as_ref()?.cluster));
    shown.find(|shown| shown.identity().succeeds(&me.cluster.identity()))
}

pub(in crate::keepers) fn notice(state: &mut State, machine: usize) {
    let me = state.machines[machine].store.as_ref();
    let successor = me.and_then(|me| successor(state, me));
    state.machines[machine].store = None;
    state.machines[machine].memory = successor;
}

pub(in crate::keepers) fn elect(
    setup: &Setup,
    state: &mut State,
    machine: usize,
    asked: Ids,
) -> Result<(), String> {
    state.left.elections -= 1;
    let me = state.machines[machine].store.clone().expect("a keeper");
    let successor = successor(state, &me);
    let answer = |id: u8| Some((id, answering(setup, state, &me, id).ok()?.into_owned()));
    let answers: Vec<_> = ids(asked).filter_map(answer).collect();
    let terms = answers.iter().map(|(_, voter)| voter.term);
    let term = 1 + terms.fold(me.term, u8::max);
    let mut votes = 1 << me.id;
    for (id, voter) in answers {
        if me.is_up_to_date_for(&voter) {
            votes |= 1 << id;
            let owner = state.owner(id);
            state.machines[owner].store = Some(Disk {
                term,
                leads: false,
                ..voter
            });
        }
    }
    let disk = state.disk_mut(machine);
    disk.term = term;
    if !disk.is_quorum(votes) {
        return Ok(());
    }
    disk.leads = true;
    let content = Content::Decision;
    disk.log.push(Entry { term, content });
    let name = setup.name(machine);
    if !me.log.starts_with(state.agreed(me.cluster)) {
        return Err(format!("{name} leads without what was agreed on"));
    }
    if successor.is_some() {
        return Err(format!("{name} leads beside a later generation"));
    }
    Ok(())
}
