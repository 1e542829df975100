//! Breadth-first search of the model.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::state::{Disk, Entry, Ids, Setup, State, What, ids};
use super::steps::{all, by_itself};

/// A counterexample: its steps, and what they break.
#[derive(Debug)]
pub enum Found {
    /// A committed entry was lost, or there are two clusters.
    Forgotten(String),
    /// A majority of the keepers is up but cannot make progress.
    Stuck(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Forgotten(way) | Found::Stuck(way) => f.write_str(way),
        }
    }
}

/// More states than any of these searches should visit.
const STATES_MAX: usize = 6_000_000;
/// Limit of states to visit when searching for progress.
const WAY_ON_MAX: usize = 5_000;

/// Visits every reachable state, and returns their number.
pub fn search(setup: &Setup) -> Result<usize, Found> {
    let start = setup.start();
    let mut seen = HashSet::from([fingerprint(&start)]);
    let mut ways = Ways::default();
    let mut queue = VecDeque::from([(0, start)]);
    let mut alive = HashSet::new();
    while let Some((number, state)) = queue.pop_front() {
        assert!(seen.len() < STATES_MAX, "the search does not end");
        if setup.checks_progress && should_go_on(&state) && !goes_on(setup, &state, &mut alive) {
            return Err(Found::Stuck(ways.tell(setup, number, "no keeper can lead")));
        }
        for (step, (label, after)) in all(setup, &state).into_iter().enumerate() {
            let after = match after {
                Ok(after) => after,
                Err(problem) => {
                    let broke = format!("{label}: {problem}");
                    return Err(Found::Forgotten(ways.tell(setup, number, &broke)));
                }
            };
            if seen.insert(fingerprint(&after)) {
                queue.push_back((ways.add(number, step), after));
            }
        }
    }
    Ok(seen.len())
}

fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// How each state but the first was reached: its predecessor, and the index of the step from it.
#[derive(Default)]
struct Ways(Vec<(u32, u16)>);

impl Ways {
    fn add(&mut self, from: usize, step: usize) -> usize {
        let from = u32::try_from(from).expect("there are fewer states");
        let step = u16::try_from(step).expect("there are fewer steps");
        self.0.push((from, step));
        self.0.len()
    }

    /// The steps to a state, one per line, and then `end`.
    fn tell(&self, setup: &Setup, mut to: usize, end: &str) -> String {
        let mut taken = Vec::new();
        while to > 0 {
            let (from, step) = self.0[to - 1];
            taken.push(usize::from(step));
            to = from as usize;
        }
        let mut told = Vec::new();
        let mut at = setup.start();
        for step in taken.into_iter().rev() {
            let (label, after) = all(setup, &at).swap_remove(step);
            told.push(label);
            at = after.expect("it went well before");
        }
        told.push(end.to_owned());
        told.join("\n")
    }
}

/// Returns whether the keepers must be able to make progress: a majority is up and has lost no
/// store, both of the last committed voters and of those of a change in progress. A store that was
/// set aside does not count as lost.
fn should_go_on(state: &State) -> bool {
    let Some((latest, agreed)) = state.agreed.iter().next_back() else {
        return false;
    };
    let is_well =
        |id: &u8| state.lost & (1 << id) == 0 && state.machines[state.owners[usize::from(*id)]].up;
    let is_there = |voters: Ids| {
        let well = ids(voters).filter(is_well).count();
        well * 2 > voters.count_ones() as usize
    };
    let stores = state
        .machines
        .iter()
        .filter_map(|machine| machine.store.as_ref());
    let stores = stores.filter(|store| store.cluster == *latest && !store.log.is_empty());
    let stores: Vec<_> = stores.collect();
    let mut configs = stores.iter().flat_map(|store| store.configs());
    // During a change, uncommitted entries of two leaders may be on machines that do not vote for
    // each other. Raft itself then waits for the machine that is down.
    let fit = |one: &Disk, other: &Disk| {
        one.log.starts_with(&other.log) || other.log.starts_with(&one.log)
    };
    let all_fit = || {
        stores
            .iter()
            .all(|one| stores.iter().all(|other| fit(one, other)))
    };
    configs_of(agreed).into_iter().all(is_there) && configs.all(is_there) && all_fit()
}

fn configs_of(log: &[Entry]) -> [Ids; 2] {
    let last = log.iter().rev().find_map(|entry| match entry.what {
        What::Members { voters, old, .. } => Some([voters, old]),
        What::Decision => None,
    });
    last.unwrap_or_default()
}

/// Returns whether a leader can commit an entry without a further fault. Adds the states from which
/// one can to `alive`.
fn goes_on(setup: &Setup, state: &State, alive: &mut HashSet<u64>) -> bool {
    let mut start = state.clone();
    start.left.elections = 4;
    let setup = Setup {
        partitions: false,
        ..setup.clone()
    };
    let mut seen = HashSet::from([fingerprint(&start)]);
    // Each visited state, and the index of its predecessor.
    let mut ways = vec![(fingerprint(&start), 0)];
    // Depth first, because this nearly always succeeds at once.
    let mut stack = vec![(0, start)];
    while let Some((number, at)) = stack.pop() {
        if alive.contains(&ways[number].0) || is_led(&at) {
            let mut to = number;
            loop {
                alive.insert(ways[to].0);
                if to == 0 {
                    return true;
                }
                to = ways[to].1;
            }
        }
        if seen.len() > WAY_ON_MAX {
            return false;
        }
        for (_, after) in by_itself(&setup, &at) {
            let Ok(after) = after else { continue };
            let print = fingerprint(&after);
            if seen.insert(print) {
                ways.push((print, number));
                stack.push((ways.len() - 1, after));
            }
        }
    }
    false
}

/// Returns whether a keeper leads the latest cluster, a majority has its whole log, and no change
/// of the keepers is half done.
fn is_led(state: &State) -> bool {
    let disks = state.machines.iter().filter(|machine| machine.up);
    let mut disks = disks.filter_map(|machine| machine.store.as_ref());
    let latest = state.agreed.keys().next_back();
    disks.any(|disk| {
        let [voters, old] = disk.configs();
        disk.leads
            && voters == old
            && disk.committed == disk.log.len()
            && Some(&disk.cluster) == latest
            && state.is_confirmed(disk)
    })
}
