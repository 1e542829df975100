//! Steps of operators, and faults of machines.

use super::leader::{appointments, change_voters, may_change};
use crate::keepers::action::Action;
use crate::keepers::disk::{Cluster, ids};
use crate::keepers::setup::{Setup, Variant};
use crate::keepers::state::{Machine, State};

/// The first keeper bootstraps the cluster alone, if the other first keepers have no past.
pub(in crate::keepers) fn found_actions(
    setup: &Setup,
    state: &State,
    machine: usize,
    next: &mut Vec<Action>,
) {
    let me = &state.machines[machine];
    let mut others = state.machines[1..setup.first].iter();
    let is_new = |it: &Machine| it.store.is_none() && it.memory.is_none();
    if me.permission && is_new(me) && others.all(|other| other.up && is_new(other)) {
        next.push(Action::Found(machine));
    }
}

pub(in crate::keepers) fn found(setup: &Setup, state: &mut State, machine: usize) {
    let cluster = Cluster {
        id: state.clusters,
        generation: 0,
    };
    state.clusters += 1;
    state.machines[machine].permission = false;
    state.begin_alone(setup, machine, cluster);
}

/// Steps of an operator that follows the manual.
pub(in crate::keepers) fn actions(
    setup: &Setup,
    state: &State,
    machine: usize,
    next: &mut Vec<Action>,
) {
    for leader in 0..state.machines.len() {
        let Some(me) = state.leading(leader) else {
            continue;
        };
        let members = me.members();
        if !may_change(state, me) || members.is_joint() {
            continue;
        }
        if setup.starts_founded {
            appointments(setup, state, leader, machine, next);
        }
        let may_go = machine != leader || setup.has(Variant::LeadersRemoveThemselves);
        let may_go = may_go && members.voters.count_ones() > 1 && state.left.demotions > 0;
        if may_go && ids(members.voters).any(|id| state.owner(id) == machine) {
            next.push(Action::Demote { leader, machine });
        }
    }
}

pub(in crate::keepers) fn demote(state: &mut State, leader: usize, machine: usize) {
    state.left.demotions -= 1;
    let voters = state.leader(leader).members().voters;
    let mut ids = ids(voters).filter(|id| state.owner(*id) == machine);
    let id = ids.next().expect("the machine is a voter");
    change_voters(state, leader, |members| members.voters &= !(1 << id));
}

/// Faults of a machine, and its return.
pub(in crate::keepers) fn fault_actions(state: &State, machine: usize, next: &mut Vec<Action>) {
    if state.machines[machine].up {
        if state.left.crashes > 0 {
            next.push(Action::Crash(machine));
        }
        return;
    }
    next.push(Action::Start(machine));
    if state.left.reimages > 0 {
        next.push(Action::Reimage(machine));
    }
}

pub(in crate::keepers) fn crash(state: &mut State, machine: usize) {
    state.left.crashes -= 1;
    let node = &mut state.machines[machine];
    node.up = false;
    if let Some(store) = &mut node.store {
        store.leads = false;
    }
}

pub(in crate::keepers) fn reimage(setup: &Setup, state: &mut State, machine: usize) {
    state.left.reimages -= 1;
    let node = &mut state.machines[machine];
    node.up = true;
    node.memory = None;
    node.permission = setup.redeploys && machine == 0;
    if let Some(store) = node.store.take() {
        state.lost |= 1 << store.id;
    }
}

/// `cluster recover`, with all machines down.
pub(in crate::keepers) fn recover_actions(state: &State, next: &mut Vec<Action>) {
    if state.left.recoveries == 0 || state.machines.iter().any(|machine| machine.up) {
        return;
    }
    let machines = state.machines.iter().enumerate();
    let keepers = machines.filter(|(_, machine)| machine.store.is_some());
    next.extend(keepers.map(|(machine, _)| Action::Recover(machine)));
}

pub(in crate::keepers) fn recover(setup: &Setup, state: &mut State, machine: usize) {
    let store = state.machines[machine].store.as_ref();
    let before = store.expect("the machine has a store").cluster;
    state.left.recoveries -= 1;
    state.left.crashes = 0;
    state.machines[machine].up = true;
    let cluster = Cluster {
        generation: before.generation + 1,
        ..before
    };
    state.begin_alone(setup, machine, cluster);
}
