//! Steps of operators, and faults of machines.

use super::leader::{appoint, may_change, propose};
use super::{Next, changed};
use crate::model::state::{Cluster, Setup, State, ids};

/// The first keeper bootstraps the cluster alone, if the other first keepers have no past.
pub(super) fn found(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let me = &state.machines[machine];
    let others = state.machines[1..setup.first].iter();
    let mut others =
        others.map(|other| other.up && other.store.is_none() && other.memory.is_none());
    if !me.permission || me.store.is_some() || me.memory.is_some() || !others.all(|it| it) {
        return;
    }
    let founded = changed(state, |after| {
        let cluster = Cluster {
            id: after.clusters,
            generation: 0,
        };
        after.clusters += 1;
        after.machines[machine].permission = false;
        after.begin_alone(setup, machine, cluster);
    });
    next.push((format!("{machine} founds a cluster"), founded));
}

/// Steps of an operator that follows the manual.
pub(super) fn operate(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let leaders = state.machines.iter().enumerate();
    let leaders = leaders.filter(|(_, it)| it.up && it.store.as_ref().is_some_and(|it| it.leads));
    for (leader, it) in leaders {
        let me = it.store.as_ref().expect("a leader");
        if !may_change(state, me) {
            continue;
        }
        let ([voters, old], learners) = (me.configs(), me.learners());
        if voters != old {
            continue;
        }
        if setup.starts_founded {
            appoint(setup, state, leader, machine, next);
        }
        let of_machine = |id: &u8| state.owners[usize::from(*id)] == machine;
        let id = ids(voters).find(of_machine);
        let may_go = machine != leader || setup.rules.leaders_remove_themselves;
        let may_go = may_go && voters.count_ones() > 1 && state.left.demotions > 0;
        if let Some(id) = id.filter(|_| may_go) {
            let mut demoted = propose(state, leader, voters & !(1 << id), learners);
            demoted
                .iter_mut()
                .for_each(|after| after.left.demotions -= 1);
            next.push((format!("{leader} demotes {machine}"), demoted));
        }
    }
}

pub(super) fn fail(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let node = &state.machines[machine];
    if node.up {
        if state.left.crashes > 0 {
            let down = changed(state, |after| {
                after.left.crashes -= 1;
                let node = &mut after.machines[machine];
                node.up = false;
                node.store.iter_mut().for_each(|store| store.leads = false);
            });
            next.push((format!("{machine} goes down"), down));
        }
        return;
    }
    let up = changed(state, |after| after.machines[machine].up = true);
    next.push((format!("{machine} returns with its disk"), up));
    if state.left.reimages > 0 {
        let empty = changed(state, |after| {
            after.left.reimages -= 1;
            let node = &mut after.machines[machine];
            node.up = true;
            node.memory = None;
            node.permission = setup.redeploys && machine == 0;
            if let Some(store) = node.store.take() {
                after.lost |= 1 << store.id;
            }
        });
        next.push((format!("{machine} returns re-imaged"), empty));
    }
}

/// `cluster recover`, with all machines down as the manual requires. The recovered machine starts
/// first.
pub(super) fn recover(setup: &Setup, state: &State, next: &mut Vec<Next>) {
    if state.left.recoveries == 0 || state.machines.iter().any(|machine| machine.up) {
        return;
    }
    for (machine, node) in state.machines.iter().enumerate() {
        let Some(disk) = &node.store else { continue };
        let recovered = changed(state, |after| {
            after.left.recoveries -= 1;
            after.left.crashes = 0;
            let cluster = Cluster {
                generation: disk.cluster.generation + 1,
                ..disk.cluster
            };
            after.machines[machine].up = true;
            after.begin_alone(setup, machine, cluster);
        });
        next.push((format!("{machine} is recovered"), recovered));
    }
}
