//! Elections.

use super::{Next, changed};
use crate::model::state::{Cluster, Disk, Entry, Ids, Setup, State, What, ids};

/// The store of a voter that would answer this candidate, or `None`.
pub(super) fn answering(setup: &Setup, state: &State, candidate: &Disk, voter: u8) -> Option<Disk> {
    let rules = setup.rules;
    let machine = &state.machines[*state.owners.get(usize::from(voter))?];
    if !machine.up {
        return None;
    }
    let Some(disk) = &machine.store else {
        let empty = || Disk::new(candidate.cluster, voter);
        return rules.empty_store_votes.then(empty);
    };
    let is_unknown = disk.members() & (1 << candidate.id) == 0;
    let is_former = disk.former() & (1 << candidate.id) != 0;
    let refuses = is_former || (rules.refuses_unknown && is_unknown && !disk.log.is_empty());
    let is_meant = disk.id == voter && disk.cluster == candidate.cluster;
    (is_meant && !refuses).then(|| disk.clone())
}

pub(super) fn elect(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let Some(me) = state.machines[machine].store.as_ref() else {
        return;
    };
    let voters = me.voters();
    if me.leads || !me.may_stand() || state.left.elections == 0 {
        return;
    }
    if let Some(successor) = successor(state, me, voters)
        && !setup.rules.ignores_successors
    {
        let aside = changed(state, |after| {
            after.machines[machine].store = None;
            after.machines[machine].memory = Some(successor);
        });
        next.push((format!("{machine} sees a later generation"), aside));
        return;
    }
    let others = voters & !(1 << me.id);
    let reached = ids(others).filter(|id| answering(setup, state, me, *id).is_some());
    let reached = reached.fold(0, |all: Ids, id| all | 1 << id);
    let mut asked = reached;
    loop {
        next.push((
            format!("{machine} stands for election, asking {asked:b}"),
            election(setup, state, machine, asked),
        ));
        // Every subset, down to the empty one.
        if !setup.partitions || asked == 0 {
            return;
        }
        asked = (asked - 1) & reached;
    }
}

/// A later generation of the cluster that one of these voters has.
fn successor(state: &State, me: &Disk, voters: Ids) -> Option<Cluster> {
    let owners = ids(voters).map(|id| &state.machines[state.owners[usize::from(id)]]);
    let shown = owners.filter(|machine| machine.up);
    let mut shown = shown.filter_map(|machine| Some(machine.store.as_ref()?.cluster));
    shown.find(|shown| shown.identity().succeeds(&me.cluster.identity()))
}

fn election(setup: &Setup, state: &State, machine: usize, asked: Ids) -> Result<State, String> {
    let mut after = state.clone();
    after.left.elections -= 1;
    let me = state.machines[machine].store.clone().expect("a keeper");
    let voters = me.voters();
    let mut term = me.term;
    let mut votes = 1 << me.id;
    let answers: Vec<_> = ids(asked)
        .filter_map(|id| Some((id, answering(setup, state, &me, id)?)))
        .collect();
    for (_, voter) in &answers {
        term = term.max(voter.term);
    }
    term += 1;
    for (id, voter) in answers {
        if me.is_up_to_date_for(&voter) {
            votes |= 1 << id;
            let owner = state.owners[usize::from(id)];
            let voter = Disk {
                term,
                leads: false,
                ..voter
            };
            after.machines[owner].store = Some(voter);
        }
    }
    let me = after.disk(machine);
    me.term = term;
    if !me.is_quorum(votes) {
        return Ok(after);
    }
    me.leads = true;
    let me = me.clone();
    let agreed = after
        .agreed
        .get(&me.cluster)
        .map_or(&[][..], |agreed| agreed);
    if me.log.len() < agreed.len() || me.log[..agreed.len()] != *agreed {
        return Err(format!("{machine} leads without what was agreed on"));
    }
    if successor(state, &me, voters).is_some() {
        return Err(format!("{machine} leads beside a later generation"));
    }
    after.disk(machine).log.push(Entry {
        term,
        what: What::Decision,
    });
    Ok(after)
}
