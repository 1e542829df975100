//! Breadth-first search of the model.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use super::state::{Disk, Entry, Ids, Setup, State, What, ids};
use super::steps::{all, by_itself};

/// A way to a fault: its steps, and what broke.
#[derive(Debug)]
pub enum Found {
    /// Something that was agreed on was forgotten, or there are two clusters.
    Forgotten(String),
    /// A majority of the keepers is there, and cannot go on.
    Stuck(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Forgotten(way) | Found::Stuck(way) => f.write_str(way),
        }
    }
}

/// More states than any of these searches should need.
const STATES_MAX: usize = 6_000_000;
/// States that are tried to find a way on.
const WAY_ON_MAX: usize = 5_000;

/// Visits every state, and returns how many there are.
pub fn search(setup: &Setup) -> Result<usize, Found> {
    let start = setup.start();
    let mut before: HashMap<State, Option<(State, String)>> = HashMap::new();
    before.insert(start.clone(), None);
    let mut queue = VecDeque::from([start]);
    let mut alive = HashSet::new();
    while let Some(state) = queue.pop_front() {
        assert!(before.len() < STATES_MAX, "the search does not end");
        if should_go_on(&state) && !goes_on(setup, &state, &mut alive) {
            return Err(Found::Stuck(way(&before, &state, "nobody can lead")));
        }
        for (label, after) in all(setup, &state) {
            let after = match after {
                Ok(after) => after,
                Err(problem) => {
                    let broke = format!("{label}: {problem}");
                    return Err(Found::Forgotten(way(&before, &state, &broke)));
                }
            };
            if !before.contains_key(&after) {
                before.insert(after.clone(), Some((state.clone(), label)));
                queue.push_back(after);
            }
        }
    }
    Ok(before.len())
}

fn way(before: &HashMap<State, Option<(State, String)>>, to: &State, end: &str) -> String {
    let mut steps = vec![end.to_owned()];
    let mut at = to;
    while let Some((previous, label)) = &before[at] {
        steps.push(label.clone());
        at = previous;
    }
    steps.reverse();
    steps.join("\n")
}

/// Whether a majority of the keepers is up and has lost no store: of those that were agreed on last,
/// and of those that a change under way would make. A store that was set aside is not a lost one.
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
    // In the middle of a change, entries of two leaders that nobody agreed on may be on machines
    // that do not vote for each other. Raft itself waits then for the one that is down.
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

/// Whether, without a further fault, a leader can come to agree on something.
fn goes_on(setup: &Setup, state: &State, alive: &mut HashSet<State>) -> bool {
    let mut start = state.clone();
    start.left.elections = 4;
    let setup = Setup {
        partitions: false,
        ..setup.clone()
    };
    let mut seen = HashSet::from([start.clone()]);
    // Depth first: a way on is found at once nearly always.
    let mut stack = vec![start];
    while let Some(at) = stack.pop() {
        if alive.contains(&at) || is_led(&at) {
            alive.extend(seen);
            return true;
        }
        if seen.len() > WAY_ON_MAX {
            return false;
        }
        for (_, after) in by_itself(&setup, &at) {
            if let Ok(after) = after
                && seen.insert(after.clone())
            {
                stack.push(after);
            }
        }
    }
    false
}

/// Somebody leads the latest cluster, and a majority has all that it knows.
fn is_led(state: &State) -> bool {
    let disks = state.machines.iter().filter(|machine| machine.up);
    let mut disks = disks.filter_map(|machine| machine.store.as_ref());
    let latest = state.agreed.keys().next_back();
    disks.any(|disk| {
        disk.leads
            && disk.committed == disk.log.len()
            && Some(&disk.cluster) == latest
            && state.is_confirmed(disk)
    })
}
