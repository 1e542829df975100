//! What can happen next.

use soloist_node::cluster_memory::Remembered;
use soloist_node::keepers::{Appointment, LeaderWord};

use super::state::{Cluster, Disk, Entry, Ids, Setup, State, What, ids};

/// A step, as it is told, and the state after it; or what it breaks.
pub type Next = (String, Result<State, String>);

/// Steps that need nobody's mistake and no fault: what runs by itself.
pub fn by_itself(setup: &Setup, state: &State) -> Vec<Next> {
    let mut next = Vec::new();
    for machine in 0..state.machines.len() {
        if !state.machines[machine].up {
            continue;
        }
        found(setup, state, machine, &mut next);
        elect(setup, state, machine, &mut next);
        lead(setup, state, machine, &mut next);
    }
    next
}

/// All steps, faults and operators among them.
pub fn all(setup: &Setup, state: &State) -> Vec<Next> {
    let mut next = by_itself(setup, state);
    for machine in 0..state.machines.len() {
        operate(setup, state, machine, &mut next);
        fail(setup, state, machine, &mut next);
    }
    recover(state, &mut next);
    next
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> Result<State, String> {
    let mut after = state.clone();
    change(&mut after);
    Ok(after)
}

/// The first keeper by name begins alone, when the other first keepers have no past.
fn found(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
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
        let id = after.fresh_id(machine);
        let what = alone(id);
        let log = vec![Entry { term: 0, what }];
        after.agreed.insert(cluster, log.clone());
        let me = &mut after.machines[machine];
        me.permission = false;
        me.memory = Some(cluster);
        me.store = Some(Disk {
            log,
            committed: 1,
            ..Disk::new(cluster, id)
        });
    });
    next.push((format!("{machine} founds a cluster"), founded));
}

/// The first membership of a cluster or a generation.
fn alone(id: u8) -> What {
    What::Members {
        voters: 1 << id,
        old: 1 << id,
        learners: 0,
    }
}

/// Who of the voters would answer a candidate.
fn answering(setup: &Setup, state: &State, candidate: &Disk, voter: u8) -> Option<Disk> {
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

fn elect(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let Some(me) = state.machines[machine].store.as_ref() else {
        return;
    };
    let voters = me.voters();
    if me.leads || !me.may_stand(setup.rules) || state.left.elections == 0 {
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
        // Every subset, down to none.
        if !setup.partitions || asked == 0 {
            return;
        }
        asked = (asked - 1) & reached;
    }
}

/// A later generation of the cluster that one of these voters shows.
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

/// What a leader does by itself: replicates, commits, takes in first keepers, finishes promotions, and
/// has stores set aside that do not count.
fn lead(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let Some(me) = state.machines[machine].store.as_ref().filter(|it| it.leads) else {
        return;
    };
    let others = ids(me.members() & !(1 << me.id));
    let behind = others.filter(|id| {
        answering(setup, state, me, *id)
            .is_some_and(|it| it.log != me.log || it.term < me.term || it.committed < me.committed)
    });
    let behind: Vec<_> = behind.map(|id| state.owners[usize::from(id)]).collect();
    match setup.partitions {
        true => next.extend(behind.into_iter().map(|owner| {
            let label = format!("{machine} sends its log to {owner}");
            (label, replicate(setup, state, machine, owner))
        })),
        false if behind.is_empty() => {}
        false => {
            let mut all = behind.iter();
            let sent = all.try_fold(state.clone(), |after, owner| {
                replicate(setup, &after, machine, *owner)
            });
            next.push((format!("{machine} sends its log to all"), sent));
        }
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

/// Commits all of the log, if a majority has it.
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
    let committed = match me.log.starts_with(agreed) {
        true => changed(state, |after| {
            let all = me.log.len();
            after.disk(machine).committed = all;
            let log = me.log.clone();
            after.agreed.insert(me.cluster, log);
        }),
        false => Err(format!("{machine} agrees on something else")),
    };
    next.push((format!("{machine} commits"), committed));
}

/// A node takes part in the leader's cluster, unless it remembers another one.
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
    let joined = match node.memory.is_some_and(|memory| memory.id != cluster.id) {
        true => Err(format!("{machine} joins a second cluster")),
        false => changed(state, |after| {
            after.machines[machine].memory = Some(cluster)
        }),
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

/// Whether a leader may begin a change of the keepers: all before it is agreed on, in its own term.
fn may_change(state: &State, me: &Disk) -> bool {
    let is_current = me.log.last().is_some_and(|last| last.term == me.term);
    me.leads && is_current && me.committed == me.log.len() && state.is_confirmed(me)
}

/// A change of the voters goes through a joint membership, which the next step ends.
fn propose(state: &State, machine: usize, voters: Ids, learners: Ids) -> Result<State, String> {
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

/// Learners that have everything become voters; those that lost their store are forgotten.
fn take_in(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
    let me = state.machines[machine].store.as_ref().expect("a leader");
    if !may_change(state, me) {
        return;
    }
    let ([voters, old], learners) = (me.configs(), me.learners());
    if voters != old {
        let uniform = propose(state, machine, voters, learners);
        next.push((format!("{machine} ends the change of the keepers"), uniform));
        return;
    }
    let is_bootstrap = voters.count_ones() == 1 && !setup.starts_founded;
    let current = |id: &u8| state.keeper(*id).is_some_and(|it| it.log == me.log);
    let current = ids(learners)
        .filter(current)
        .fold(0, |all: Ids, id| all | 1 << id);
    let needed = match is_bootstrap {
        true => setup.first as u32 - 1,
        false => 1,
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

/// A leader appoints a node and makes it a learner. The two are separate steps in the product; a
/// store whose learner was never agreed on is one that does not count.
fn appoint(setup: &Setup, state: &State, leader: usize, machine: usize, next: &mut Vec<Next>) {
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
    let id = after.fresh_id(machine);
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

/// What an operator does, following the manual.
fn operate(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
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
        if let Some(id) = id.filter(|_| voters.count_ones() > 1 && state.left.demotions > 0) {
            let mut demoted = propose(state, leader, voters & !(1 << id), learners);
            demoted
                .iter_mut()
                .for_each(|after| after.left.demotions -= 1);
            next.push((format!("{leader} demotes {machine}"), demoted));
        }
    }
}

fn fail(setup: &Setup, state: &State, machine: usize, next: &mut Vec<Next>) {
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

/// `cluster recover`, with all machines down as the manual says. The recovered one starts first.
fn recover(state: &State, next: &mut Vec<Next>) {
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
            let id = after.fresh_id(machine);
            let what = alone(id);
            let log = vec![Entry { term: 0, what }];
            after.agreed.insert(cluster, log.clone());
            let node = &mut after.machines[machine];
            node.up = true;
            node.memory = Some(cluster);
            node.store = Some(Disk {
                log,
                committed: 1,
                ..Disk::new(cluster, id)
            });
        });
        next.push((format!("{machine} is recovered"), recovered));
    }
}
