//! Whether a majority of the keepers can make progress.

use std::cell::RefCell;

use rustc_hash::FxHashSet;

use super::action::{apply, by_itself};
use super::disk::{Disk, Ids, ids, last_members};
use super::setup::Setup;
use super::state::State;
use crate::breadth_first::fingerprint;

/// Limit of states to visit when searching for progress.
const STATES_MAX: usize = 5_000;

/// Elections that the keepers may need to make progress.
const ELECTIONS: u8 = 4;

/// Looks for progress without further faults, and remembers what it found.
#[derive(Debug)]
pub struct Progress {
    setup: Setup,
    /// States from which there is progress.
    alive: RefCell<FxHashSet<u128>>,
}

impl Progress {
    /// Progress of this cluster, in which all messages arrive from now on.
    pub fn new(setup: &Setup) -> Self {
        Progress {
            setup: Setup {
                partitions: false,
                ..setup.clone()
            },
            alive: RefCell::default(),
        }
    }

    /// Returns whether a leader can commit an entry without a further fault.
    pub fn is_possible(&self, state: &State) -> bool {
        let mut start = state.clone();
        start.left.elections = ELECTIONS;
        let first = fingerprint(&start);
        let mut seen = FxHashSet::from_iter([first]);
        // Each visited state, and the index of its predecessor.
        let mut ways = vec![(first, 0)];
        // Depth first, because this nearly always succeeds at once.
        let mut stack = vec![(0, start)];
        let mut alive = self.alive.borrow_mut();
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
            if seen.len() > STATES_MAX {
                return false;
            }
            for action in by_itself(&self.setup, &at) {
                let mut after = at.clone();
                if apply(&self.setup, &mut after, action).is_err() {
                    continue;
                }
                let print = fingerprint(&after);
                if seen.insert(print) {
                    ways.push((print, number));
                    stack.push((ways.len() - 1, after));
                }
            }
        }
        false
    }
}

/// Returns whether the keepers must be able to make progress: a majority is up and has lost no
/// store, both of the last committed voters and of those of a change in progress. A store that was
/// set aside does not count as lost.
pub fn is_required(state: &State) -> bool {
    let Some((latest, agreed)) = state.agreed.iter().next_back() else {
        return false;
    };
    let is_well = |id: &u8| state.lost & (1 << id) == 0 && state.machines[state.owner(*id)].up;
    let is_there = |voters: Ids| {
        let well = ids(voters).filter(is_well).count();
        well * 2 > voters.count_ones() as usize
    };
    let stores = state.machines.iter();
    let stores = stores.filter_map(|machine| machine.store.as_ref());
    let stores = stores.filter(|store| store.cluster == *latest && !store.log.is_empty());
    let stores: Vec<_> = stores.collect();
    let mut configs = stores.iter().flat_map(|store| store.members().configs());
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
    let agreed = last_members(agreed).map_or([0, 0], |(_, members)| members.configs());
    agreed.into_iter().all(is_there) && configs.all(is_there) && all_fit()
}

/// Returns whether a keeper leads the latest cluster, a majority has its whole log, and no change
/// of the keepers is half done.
fn is_led(state: &State) -> bool {
    let disks = state.machines.iter().filter(|machine| machine.up);
    let mut disks = disks.filter_map(|machine| machine.store.as_ref());
    let latest = state.agreed.keys().next_back();
    disks.any(|disk| {
        disk.leads
            && !disk.members().is_joint()
            && disk.committed == disk.log.len()
            && Some(&disk.cluster) == latest
            && state.is_confirmed(disk)
    })
}
