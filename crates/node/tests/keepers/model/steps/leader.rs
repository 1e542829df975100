//! Steps of a leader.

use soloist_core::cluster_identity::Remembered;
use soloist_core::keepers::{Appointment, LeaderWord};

use super::election::answering;
use super::{Next, changed};
use crate::model::state::{Disk, Entry, Ids, Setup, State, What, ids};

/// Steps that a leader takes by itself: it replicates, commits, promotes first keepers, completes
/// promotions, and has obsolete stores set aside.
pub(super) fn lead(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let Some(me) = state.machines[machine].store.as_ref().filter(|it| it.leads) else {
        return;
    };
    let others = ids(me.members() & !(1 << me.id));
    let behind = others.filter(|id| {
        answering(setup, state, me, *id)
            .is_some_and(|it| it.log != me.log || it.term < me.term || it.committed < me.committed)
    });
    let behind: Vec<_> = behind.map(|id| state.owners[usize::from(id)]).collect();
    if setup.partitions {
        next.extend(behind.into_iter().map(|owner| {
            let label = format!("{machine} sends its log to {owner}");
            (label, replicate(setup, state, machine, owner))
        }));
    } else if !behind.is_empty() {
        let mut all = behind.iter();
        let sent = all.try_fold(state.clone(), |after, owner| {
            replicate(setup, &after, machine, *owner)
        });
        next.push((format!("{machine} sends its log to all"), sent));
    }
    commit(state, machine, next);
    if state.is_confirmed(me) {
        for other in 0..state.machines.len() {
            join(state, machine, other, next);
        }
    }
    if state.is_confirmed(me) || setup.rules.sets_aside_uncommitted {
        for other in 0..state.machines.len() {
            set_aside(setup, state, machine, other, next);
        }
    }
    take_in(setup, state, machine, next);
}

fn replicate(
    setup: &Setup,
    state: &State,
    leader: usize,
    follower: usize,
) -> Result<State, String> {
    let mut after = state.clone();
    let me = state.machines[leader].store.clone().expect("a leader");
    let ids = ids(me.members());
    let mut ids = ids.filter(|id| state.owners[usize::from(*id)] == follower);
    let Some(disk) = ids.find_map(|id| answering(setup, state, &me, id)) else {
        return Ok(after);
    };
    if disk.term > me.term {
        after.disk(leader).leads = false;
        return Ok(after);
    }
    let kept = disk.committed.min(me.log.len());
    if disk.committed > me.log.len() || disk.log[..kept] != me.log[..kept] {
        return Err(format!("{follower} forgets what was agreed on"));
    }
    after.machines[follower].store = Some(Disk {
        term: me.term,
        leads: false,
        committed: me.committed.max(disk.committed),
        log: me.log.clone(),
        ..disk
    });
    Ok(after)
}

/// Commits the whole log, if a majority has it.
fn commit(state: &State, machine: usize, next: &mut Vec<Next>) {
    let me = state.machines[machine].store.as_ref().expect("a leader");
    let has_all = |id: &u8| {
        let keeper = state.keeper(*id);
        keeper.is_some_and(|it| {
            it.cluster == me.cluster && it.term == me.term && it.log.starts_with(&me.log)
        })
    };
    let have = ids(me.voters()).filter(has_all);
    let have = have.fold(0, |all, id| all | 1 << id);
    if me.committed == me.log.len() || !me.is_quorum(have) {
        return;
    }
    let agreed = state
        .agreed
        .get(&me.cluster)
        .map_or(&[][..], |agreed| agreed);
    let committed = if me.log.starts_with(agreed) {
        changed(state, |after| {
            let all = me.log.len();
            after.disk(machine).committed = all;
            let log = me.log.clone();
            after.agreed.insert(me.cluster, log);
        })
    } else {
        Err(format!("{machine} agrees on something else"))
    };
    next.push((format!("{machine} commits"), committed));
}

/// A node joins the leader's cluster, unless it remembers another one.
fn join(state: &State, leader: usize, machine: usize, next: &mut Vec<Next>) {
    let cluster = state.machines[leader]
        .store
        .as_ref()
        .expect("a leader")
        .cluster;
    let node = &state.machines[machine];
    let admits = node.memory.is_none_or(|memory| {
        let remembered = Remembered {
            cluster: memory.identity(),
            epoch: 0,
        };
        remembered.admits(&cluster.identity(), 0).is_ok()
    });
    if !node.up || node.memory == Some(cluster) || !admits {
        return;
    }
    let joined = if node.memory.is_some_and(|memory| memory.id != cluster.id) {
        Err(format!("{machine} joins a second cluster"))
    } else {
        changed(state, |after| {
            after.machines[machine].memory = Some(cluster)
        })
    };
    next.push((format!("{machine} joins the cluster of {leader}"), joined));
}

fn set_aside(setup: &Setup, state: &State, leader: usize, machine: usize, next: &mut Vec<Next>) {
    let me = state.machines[leader].store.as_ref().expect("a leader");
    let node = &state.machines[machine];
    let Some(disk) = node.store.as_ref().filter(|_| node.up && machine != leader) else {
        return;
    };
    if node.memory != Some(me.cluster) {
        return;
    }
    let claim = disk.claim();
    let word = me.known(setup.rules).judge(&claim);
    if word.is_some_and(|word| word.retires(&claim)) {
        let aside = changed(state, |after| after.machines[machine].store = None);
        next.push((format!("{leader} has {machine} set its store aside"), aside));
    }
}

/// Returns whether a leader may begin a change of the keepers: its whole log must be committed, and
/// end with an entry of its own term.
pub(super) fn may_change(state: &State, me: &Disk) -> bool {
    let is_current = me.log.last().is_some_and(|last| last.term == me.term);
    me.leads && is_current && me.committed == me.log.len() && state.is_confirmed(me)
}

/// Proposes new voters. This is a joint membership until the next step completes the change.
pub(super) fn propose(
    state: &State,
    machine: usize,
    voters: Ids,
    learners: Ids,
) -> Result<State, String> {
    changed(state, |after| {
        let me = after.disk(machine);
        let (term, [old, _]) = (me.term, me.configs());
        let what = What::Members {
            voters,
            old,
            learners,
        };
        me.log.push(Entry { term, what });
    })
}

/// Makes learners voters once they have the whole log. Removes learners that have lost their
/// stores.
fn take_in(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let me = state.machines[machine].store.as_ref().expect("a leader");
    if !may_change(state, me) {
        return;
    }
    let ([voters, old], learners) = (me.configs(), me.learners());
    if voters != old {
        // A leader that the change removes leaves this to the next leader.
        if voters & (1 << me.id) != 0 || setup.rules.leaders_remove_themselves {
            let uniform = propose(state, machine, voters, learners);
            next.push((format!("{machine} ends the change of the keepers"), uniform));
        }
        return;
    }
    let is_bootstrap = voters.count_ones() == 1 && !setup.starts_founded;
    let current = |id: &u8| state.keeper(*id).is_some_and(|it| it.log == me.log);
    let current = ids(learners)
        .filter(current)
        .fold(0, |all: Ids, id| all | 1 << id);
    let needed = if is_bootstrap {
        setup.first as u32 - 1
    } else {
        1
    };
    if current != 0 && current == learners && current.count_ones() >= needed {
        let voters = propose(state, machine, voters | learners, 0);
        next.push((format!("{machine} makes learners voters"), voters));
    }
    for id in ids(learners) {
        let owner = &state.machines[state.owners[usize::from(id)]];
        let has = owner.store.as_ref().map(|store| store.id);
        if owner.up && has != Some(id) {
            let forgotten = propose(state, machine, voters, learners & !(1 << id));
            next.push((format!("{machine} forgets learner {id}"), forgotten));
        }
    }
    if is_bootstrap {
        for other in 1..setup.first {
            appoint(setup, state, machine, other, next);
        }
    }
}

/// Appoints a node and makes it a learner. These are separate steps in the product. A store whose
/// learner was never committed is obsolete.
pub(super) fn appoint(
    setup: &Setup,
    state: &State,
    leader: usize,
    machine: usize,
    next: &mut Vec<Next>,
) {
    let me = state.machines[leader].store.as_ref().expect("a leader");
    let ([voters, old], learners) = (me.configs(), me.learners());
    let node = &state.machines[machine];
    let mut known = ids(me.members()).map(|id| state.owners[usize::from(id)]);
    let remembers = node.memory.is_none_or(|memory| memory == me.cluster);
    if voters != old
        || state.left.promotions == 0
        || !node.up
        || !remembers
        || machine == leader
        || known.any(|owner| owner == machine)
    {
        return;
    }
    let mut after = state.clone();
    after.left.promotions -= 1;
    let id = after.fresh_id(setup, machine);
    let word = LeaderWord {
        cluster: me.cluster.identity(),
        id: id.into(),
        membership: me.known(setup.rules).membership,
    };
    let claim = node.store.as_ref().map(Disk::claim);
    match word.appoints(claim.as_ref()) {
        Appointment::Refuse => return,
        Appointment::Keep => {}
        Appointment::Create | Appointment::Replace => {
            after.machines[machine].memory = Some(me.cluster);
            after.machines[machine].store = Some(Disk::new(me.cluster, id));
        }
    }
    let alone = Ok(after.clone());
    next.push((
        format!("{leader} appoints {machine}, and that is all"),
        alone,
    ));
    let learner = propose(&after, leader, voters, learners | 1 << id);
    next.push((format!("{leader} makes {machine} a learner"), learner));
}
