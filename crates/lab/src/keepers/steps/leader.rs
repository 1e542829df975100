//! Steps of a leader.

use soloist_core::cluster_identity::Remembered;
use soloist_core::keepers::{Appointment, LeaderDecision};

use super::election::answering;
use crate::keepers::action::Action;
use crate::keepers::disk::{Cluster, Content, Disk, Entry, Members, has, ids, set_of};
use crate::keepers::setup::{Setup, Variant};
use crate::keepers::state::State;

/// Steps that a leader takes by itself: it replicates, commits, promotes first keepers, completes
/// promotions, and has obsolete stores set aside. Nodes join its cluster.
pub(in crate::keepers) fn actions(
    setup: &Setup,
    state: &State,
    leader: usize,
    next: &mut Vec<Action>,
) {
    let Some(me) = state.leading(leader) else {
        return;
    };
    let behind = behind(setup, state, me);
    if setup.partitions {
        next.extend(behind.into_iter().map(|to| Action::Send { leader, to }));
    } else if !behind.is_empty() {
        next.push(Action::SendAll(leader));
    }
    if may_commit(state, me) {
        next.push(Action::Commit(leader));
    }
    let is_confirmed = state.is_confirmed(me);
    let machines = 0..state.machines.len();
    if is_confirmed {
        let joining = machines.clone().filter(|it| may_join(state, me, *it));
        next.extend(joining.map(|machine| Action::Join { machine, leader }));
    }
    if is_confirmed || setup.has(Variant::SetAsideUncommitted) {
        let obsolete = machines.filter(|it| is_obsolete(setup, state, leader, *it));
        next.extend(obsolete.map(|machine| Action::SetAside { leader, machine }));
    }
    if may_change(state, me) {
        changes(setup, state, leader, next);
    }
}

/// The machines of other keepers that answer this leader and lack something.
fn behind(setup: &Setup, state: &State, me: &Disk) -> Vec<usize> {
    let others = ids(me.members().all() & !(1 << me.id));
    let behind = others.filter(|id| {
        answering(setup, state, me, *id)
            .is_ok_and(|it| it.log != me.log || it.term < me.term || it.committed < me.committed)
    });
    behind.map(|id| state.owner(id)).collect()
}

pub(in crate::keepers) fn send_all(
    setup: &Setup,
    state: &mut State,
    leader: usize,
) -> Result<(), String> {
    let behind = behind(setup, state, state.leader(leader));
    let mut all = behind.into_iter();
    all.try_for_each(|to| send(setup, state, leader, to))
}

pub(in crate::keepers) fn send(
    setup: &Setup,
    state: &mut State,
    leader: usize,
    to: usize,
) -> Result<(), String> {
    let me = state.machines[leader].store.clone().expect("a leader");
    let mut ids = ids(me.members().all()).filter(|id| state.owner(*id) == to);
    let Some(disk) = ids.find_map(|id| answering(setup, state, &me, id).ok()) else {
        return Ok(());
    };
    let disk = disk.into_owned();
    if disk.term > me.term {
        state.disk_mut(leader).leads = false;
        return Ok(());
    }
    let kept = me.log.starts_with(&disk.log[..disk.committed]);
    state.machines[to].store = Some(Disk {
        term: me.term,
        leads: false,
        committed: me.committed.max(disk.committed.min(me.log.len())),
        log: me.log,
        ..disk
    });
    if !kept {
        let name = setup.name(to);
        return Err(format!("{name} forgets what was agreed on"));
    }
    Ok(())
}

/// Returns whether the leader may commit its whole log: a majority has it.
fn may_commit(state: &State, me: &Disk) -> bool {
    let has_all = |id: &u8| {
        let keeper = state.keeper(*id);
        keeper.is_some_and(|it| {
            it.cluster == me.cluster && it.term == me.term && it.log.starts_with(&me.log)
        })
    };
    let have = || set_of(ids(me.members().all_voters()).filter(has_all));
    me.committed != me.log.len() && me.is_quorum(have())
}

pub(in crate::keepers) fn commit(
    setup: &Setup,
    state: &mut State,
    leader: usize,
) -> Result<(), String> {
    let me = state.disk_mut(leader);
    me.committed = me.log.len();
    let (cluster, log) = (me.cluster, me.log.clone());
    if !log.starts_with(state.agreed(cluster)) {
        let name = setup.name(leader);
        return Err(format!("{name} agrees on something else"));
    }
    state.agreed.insert(cluster, log);
    Ok(())
}

/// Returns whether a node joins the leader's cluster: it has not joined yet, and does not remember
/// another one.
fn may_join(state: &State, leader: &Disk, machine: usize) -> bool {
    let node = &state.machines[machine];
    let admits = |memory: Cluster| {
        let remembered = Remembered {
            cluster: memory.identity(),
            epoch: 0,
        };
        remembered.admits(&leader.cluster.identity(), 0).is_ok()
    };
    node.up && node.memory != Some(leader.cluster) && node.memory.is_none_or(admits)
}

pub(in crate::keepers) fn join(
    setup: &Setup,
    state: &mut State,
    machine: usize,
    leader: usize,
) -> Result<(), String> {
    let cluster = state.leader(leader).cluster;
    let before = state.machines[machine].memory.replace(cluster);
    if before.is_some_and(|before| before.id != cluster.id) {
        let name = setup.name(machine);
        return Err(format!("{name} joins a second cluster"));
    }
    Ok(())
}

/// Returns whether this leader has the machine set its store aside.
fn is_obsolete(setup: &Setup, state: &State, leader: usize, machine: usize) -> bool {
    let me = state.leader(leader);
    let node = &state.machines[machine];
    let Some(disk) = node.store.as_ref().filter(|_| node.up && machine != leader) else {
        return false;
    };
    if node.memory != Some(me.cluster) {
        return false;
    }
    let claim = disk.claim();
    let word = me.known(setup).judge(&claim);
    word.is_some_and(|word| word.retires(&claim))
}

/// Returns whether a leader may begin a change of the keepers: its whole log must be committed, and
/// end with an entry of its own term.
pub(in crate::keepers) fn may_change(state: &State, me: &Disk) -> bool {
    let is_current = me.log.last().is_some_and(|last| last.term == me.term);
    me.leads && is_current && me.committed == me.log.len() && state.is_confirmed(me)
}

fn is_bootstrap(setup: &Setup, members: Members) -> bool {
    members.voters.count_ones() == 1 && !setup.starts_founded
}

/// Changes of the keepers that a leader makes by itself. Learners become voters once they have the
/// whole log. Learners that have lost their stores are removed.
fn changes(setup: &Setup, state: &State, leader: usize, next: &mut Vec<Action>) {
    let me = state.leader(leader);
    let members = me.members();
    let Members {
        voters, learners, ..
    } = members;
    if members.is_joint() {
        // A leader that the change removes leaves this to the next leader.
        if has(voters, me.id) || setup.has(Variant::LeadersRemoveThemselves) {
            next.push(Action::Complete(leader));
        }
        return;
    }
    let is_bootstrap = is_bootstrap(setup, members);
    let is_current = |id: &u8| state.keeper(*id).is_some_and(|it| it.log == me.log);
    let current = set_of(ids(learners).filter(is_current));
    let needed = match is_bootstrap {
        true => setup.first as u32 - 1,
        false => 1,
    };
    if current != 0 && current == learners && current.count_ones() >= needed {
        next.push(Action::Admit(leader));
    }
    for id in ids(learners) {
        let owner = &state.machines[state.owner(id)];
        let present = owner.store.as_ref().map(|store| store.id);
        if owner.up && present != Some(id) {
            next.push(Action::Forget { leader, id });
        }
    }
    if is_bootstrap {
        for other in 1..setup.first {
            appointments(setup, state, leader, other, next);
        }
    }
}

/// Proposes new members.
fn propose(state: &mut State, leader: usize, members: Members) {
    let me = state.disk_mut(leader);
    let (term, content) = (me.term, Content::Members(members));
    me.log.push(Entry { term, content });
}

pub(in crate::keepers) fn complete(state: &mut State, leader: usize) {
    let members = state.leader(leader).members();
    let old = members.voters;
    propose(state, leader, Members { old, ..members });
}

/// Proposes new voters. This is a joint membership until [`complete`].
pub(in crate::keepers) fn change_voters(
    state: &mut State,
    leader: usize,
    change: impl FnOnce(&mut Members),
) {
    let mut members = state.leader(leader).members();
    members.old = members.voters;
    change(&mut members);
    propose(state, leader, members);
}

pub(in crate::keepers) fn admit(state: &mut State, leader: usize) {
    change_voters(state, leader, |members| {
        members.voters |= members.learners;
        members.learners = 0;
    });
}

pub(in crate::keepers) fn forget(state: &mut State, leader: usize, id: u8) {
    change_voters(state, leader, |members| members.learners &= !(1 << id));
}

/// The id that this leader would appoint the node under, and how the node would react. `None` if
/// the leader does not appoint it, or the node refuses.
pub(in crate::keepers) fn appointment(
    setup: &Setup,
    state: &State,
    leader: usize,
    machine: usize,
) -> Option<(u8, Appointment)> {
    let me = state.leader(leader);
    let node = &state.machines[machine];
    let mut keepers = ids(me.members().all()).map(|id| state.owner(id));
    let remembers = node.memory.is_none_or(|memory| memory == me.cluster);
    if me.members().is_joint()
        || state.left.promotions == 0
        || !node.up
        || !remembers
        || machine == leader
        || keepers.any(|owner| owner == machine)
    {
        return None;
    }
    let id = state.next_id(setup, machine);
    let word = LeaderDecision {
        cluster: me.cluster.identity(),
        id: id.into(),
        membership: me.known(setup).membership,
    };
    let claim = node.store.as_ref().map(Disk::claim);
    match word.appoints(claim.as_ref()) {
        Appointment::Refuse => None,
        reaction => Some((id, reaction)),
    }
}

/// Appointing a node and making it a learner are separate steps in the product. A store whose
/// learner was never committed is obsolete.
pub(in crate::keepers) fn appointments(
    setup: &Setup,
    state: &State,
    leader: usize,
    machine: usize,
    next: &mut Vec<Action>,
) {
    if appointment(setup, state, leader, machine).is_some() {
        next.push(Action::Appoint { leader, machine });
        next.push(Action::Promote { leader, machine });
    }
}

/// Appoints a node and returns the id.
pub(in crate::keepers) fn appoint(
    setup: &Setup,
    state: &mut State,
    leader: usize,
    machine: usize,
) -> u8 {
    let (id, reaction) = appointment(setup, state, leader, machine).expect("it is possible");
    state.left.promotions -= 1;
    state.take_id(setup, machine);
    if reaction != Appointment::Keep {
        let cluster = state.leader(leader).cluster;
        state.machines[machine].memory = Some(cluster);
        state.machines[machine].store = Some(Disk::new(cluster, id));
    }
    id
}

pub(in crate::keepers) fn promote(setup: &Setup, state: &mut State, leader: usize, machine: usize) {
    let id = appoint(setup, state, leader, machine);
    change_voters(state, leader, |members| members.learners |= 1 << id);
}
