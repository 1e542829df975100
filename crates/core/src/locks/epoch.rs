//! Epochs, as a lock table goes through them: it takes part in one, is frozen, and begins the next.
//!
//! While it is frozen it neither sends nor handles lock messages. Its clients may go on: holds are renewed, end and
//! expire, waiters come and go. What follows from that for other nodes waits for the next epoch, which begins with
//! fresh parts of the algorithms.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use soloist_algorithms::{Machine, NodeId, Start};

use super::deadlines::Due;
use super::lock::Lock;
use super::table::Rest;
use super::{Effects, End, Table};
use crate::mutant::Mutant;
use crate::rules::Rules;
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// How long others' requests may take at the beginning of an epoch.
const STAND_BACK: Duration = Duration::from_millis(50);

/// An epoch in which a table takes part.
#[derive(Clone)]
pub struct Epoch {
    /// Its number.
    pub number: u64,
    /// This node's number in it.
    pub me: NodeId,
    /// How many nodes take part.
    pub nodes: usize,
    /// Who was inside which lock when it began.
    pub inside: HashMap<LockName, NodeId>,
}

/// An epoch with the algorithms for its number of nodes.
#[derive(Clone)]
pub(super) struct Current {
    pub epoch: Epoch,
    rules: Rules,
}

impl Hash for Current {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Epoch {
            number,
            me,
            nodes,
            inside,
        } = &self.epoch;
        let mut inside: Vec<_> = inside.iter().collect();
        inside.sort_unstable();
        (number, me, nodes, inside).hash(hasher);
    }
}

impl Current {
    /// Where the token of a fresh lock is: the same on all nodes, and spread over them.
    pub fn home(&self, name: &LockName) -> NodeId {
        let hash = xxhash_rust::xxh3::xxh3_64(name.as_str().as_bytes());
        NodeId::from_index((hash % self.epoch.nodes as u64) as usize)
    }

    /// This node's part of a lock.
    pub fn machine(&self, name: &LockName, clock: u64) -> Box<dyn Machine> {
        let start = Start {
            home: self.home(name),
            inside: self.epoch.inside.get(name).copied(),
        };
        let rule = self.rules.rule(name.as_str());
        rule.cluster().machine(self.epoch.me, start, clock)
    }
}

impl Rest {
    /// Whether this node's turns were over when it gave a lock back between two epochs. Others wait, perhaps: their requests
    /// went with the epoch before, and are on their way again.
    fn was_given_back(&self, name: &LockName, lock: &Lock) -> bool {
        let current = self.current.as_ref();
        let mine = current.is_some_and(|current| {
            current.epoch.inside.get(name) == Some(&current.epoch.me) && current.epoch.nodes > 1
        });
        mine && lock.hold.is_none() && lock.turns_left == 0 && !lock.waiters.is_empty()
    }
}

impl Table {
    /// The epoch in which it takes part, if it is not frozen.
    pub fn epoch(&self) -> Option<u64> {
        self.rest
            .current
            .as_ref()
            .map(|current| current.epoch.number)
    }

    /// Whether a lock has used up the fences of the epoch. Its waiters get it in the next one.
    pub fn is_exhausted(&self) -> bool {
        self.rest.is_exhausted
    }

    /// Ends the epoch for this node.
    pub fn freeze(&mut self) {
        let rest = &mut self.rest;
        rest.current = None;
        rest.is_exhausted = false;
        rest.idle.clear();
        rest.offers.clear();
        rest.held_bytes = 0;
        self.locks.retain(|lock| {
            lock.machine = None;
            lock.is_listed = false;
            lock.balance = 0;
            lock.offer = None;
            lock.last_end = None;
            rest.deadlines.remove(lock.stands_back.take());
            !lock.is_unused()
        });
    }

    /// The locks that are held on this node, by name.
    pub fn held(&self) -> Vec<LockName> {
        let mut held: Vec<_> = self.rest.holds.values().cloned().collect();
        held.sort_unstable();
        held
    }

    /// Begins an epoch, whose number is higher than that of every earlier one. What this node holds, it holds there too;
    /// waiters are asked for again.
    ///
    /// # Panics
    /// If it is not frozen.
    pub fn install(&mut self, now: Moment, epoch: Epoch, out: &mut Effects) {
        let rest = &mut self.rest;
        assert!(
            rest.current.is_none(),
            "one epoch ends before the next begins"
        );
        if !Mutant::FenceWithoutEpoch.planted() {
            rest.floor = rest.floor.max(Fence::first_of(epoch.number));
        }
        rest.clock = 0;
        // A lock that was given back meanwhile is still this node's to pass on.
        let mine = epoch.inside.iter().filter(|(_, node)| **node == epoch.me);
        let mut names: Vec<_> = mine.map(|(name, _)| name.clone()).collect();
        names.retain(|name| !self.locks.contains_key(name) && !Mutant::ReleaseForgotten.planted());
        rest.current = Some(Current {
            rules: rest.settings.rules.sized(epoch.nodes),
            epoch,
        });
        names.extend(self.locks.names().cloned());
        names.sort_unstable();
        for name in names {
            let Table { locks, rest } = self;
            let lock = locks.entry(&name);
            let lock = lock.unwrap_or_else(|vacant| vacant.insert(rest.new_lock(&name, now)));
            lock.fence = lock.fence.max(rest.floor);
            if rest.was_given_back(&name, lock) {
                let until = now + STAND_BACK;
                lock.stands_back = Some(rest.deadlines.add(until, Due::Ask(name.clone())));
            }
            rest.begin(now, &name, lock, out);
            self.settle(now, &name, out);
        }
    }

    /// This node is cut off: its holds are lost, and it takes part in nothing until the next epoch.
    pub fn lose(&mut self, now: Moment, out: &mut Effects) {
        self.freeze();
        self.end_all(now, End::EpochLost, out);
    }
}
