//! Epochs, as the lock table sees them: it takes part in one, is frozen, and installs the next.
//!
//! A frozen table neither sends nor handles lock messages. Its clients continue: holds are renewed,
//! released and expire, and waiters come and go. The effects of that on other nodes wait for the
//! next epoch, which starts with fresh state machines of the algorithms.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use soloist_algorithms::{Machine, NodeId, Start};

use super::deadlines::Due;
use super::lock::Lock;
use super::quota::bytes_of;
use super::table::Context;
use super::{Effects, End, Table};
use crate::mutant::Mutant;
use crate::near_end::fences_skipped;
use crate::rules::Rules;
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// How long requests of other nodes may take to arrive at the beginning of an epoch.
const STAND_BACK: Duration = Duration::from_millis(50);

/// Number of locks that begin an epoch in one step. Each takes about a microsecond, and other calls
/// to the table wait for the whole step.
const BEGUN_AT_ONCE: usize = 1024;

#[cfg(feature = "mutants")]
static BEGUN_AT_ONCE_SET: std::sync::atomic::AtomicUsize =
    std::sync::atomic::AtomicUsize::new(BEGUN_AT_ONCE);

/// Sets how many locks begin an epoch in one step, for the whole process, so that tests with few
/// locks take many steps.
#[cfg(feature = "mutants")]
pub fn set_begun_at_once(locks: Option<usize>) {
    let locks = locks.unwrap_or(BEGUN_AT_ONCE);
    BEGUN_AT_ONCE_SET.store(locks, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "mutants")]
fn begun_at_once() -> usize {
    BEGUN_AT_ONCE_SET.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(not(feature = "mutants"))]
const fn begun_at_once() -> usize {
    BEGUN_AT_ONCE
}

/// An epoch in which a table takes part.
#[derive(Clone)]
pub struct Epoch {
    /// Its number.
    pub number: u64,
    /// This node's number in it.
    pub me: NodeId,
    /// Number of nodes in it.
    pub nodes: usize,
    /// Which node was inside which lock when it began.
    pub inside: Inside,
}

/// Which node was inside which lock when an epoch began.
#[derive(Clone, Default, Debug)]
pub struct Inside(HashMap<LockName, NodeId>);

impl Inside {
    /// Reserves room for this many locks, so that adding them one by one does not reallocate
    /// repeatedly.
    pub fn reserve(&mut self, locks: usize) {
        self.0.reserve(locks);
    }

    fn get(&self, name: &LockName) -> Option<NodeId> {
        self.0.get(name).copied()
    }

    /// Records that the node that was inside has left.
    pub(super) fn forget(&mut self, name: &LockName) {
        self.0.remove(name);
    }
}

impl Extend<(LockName, NodeId)> for Inside {
    fn extend<I: IntoIterator<Item = (LockName, NodeId)>>(&mut self, inside: I) {
        self.0.extend(inside);
    }
}

impl FromIterator<(LockName, NodeId)> for Inside {
    fn from_iter<I: IntoIterator<Item = (LockName, NodeId)>>(inside: I) -> Self {
        Inside(inside.into_iter().collect())
    }
}

impl Hash for Inside {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut inside: Vec<_> = self.0.iter().collect();
        inside.sort_unstable();
        inside.hash(hasher);
    }
}

/// An epoch, with the algorithms for its number of nodes.
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
        (number, me, nodes, inside).hash(hasher);
    }
}

impl Current {
    /// The node at which the token of a fresh lock starts: the same for all nodes, and spread
    /// evenly over them.
    pub fn home(&self, name: &LockName) -> NodeId {
        let hash = xxhash_rust::xxh3::xxh3_64(name.as_str().as_bytes());
        NodeId::from_index((hash % self.epoch.nodes as u64) as usize)
    }

    /// The node that was inside a lock when the epoch began, if any.
    pub fn inside(&self, name: &LockName) -> Option<NodeId> {
        self.epoch.inside.get(name)
    }

    /// Creates this node's state machine for a lock.
    pub fn machine(&self, name: &LockName, clock: u64) -> Box<dyn Machine> {
        let start = Start {
            home: self.home(name),
            inside: self.inside(name),
        };
        let rule = self.rules.rule(name.as_str());
        rule.cluster().machine(self.epoch.me, start, clock)
    }
}

impl Context {
    /// Whether this node was inside when the epoch began.
    fn was_mine(&self, name: &LockName) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.inside(name) == Some(current.epoch.me))
    }

    /// Prepares a lock for the epoch. Its fence rises at least to the floor.
    pub(super) fn prepare(&mut self, now: Moment, name: &LockName, lock: &mut Lock) {
        lock.fence = lock.fence.max(self.floor);
        if self.was_given_back(name, lock) {
            let until = now + STAND_BACK;
            lock.stands_back = Some(self.deadlines.add(until, Due::Ask(name.clone())));
        }
    }

    /// Whether this node released a lock between two epochs after using up its turns. Other nodes
    /// may be waiting: their requests ended with the epoch before, and are on their way again.
    fn was_given_back(&self, name: &LockName, lock: &Lock) -> bool {
        let has_others = self.nodes > 1;
        has_others
            && self.was_mine(name)
            && lock.hold.is_none()
            && lock.turns_left == 0
            && !lock.waiters.is_empty()
    }
}

impl Table {
    /// The current epoch, or `None` while the table is frozen.
    pub fn epoch(&self) -> Option<u64> {
        self.context
            .current
            .as_ref()
            .map(|current| current.epoch.number)
    }

    /// Whether a lock has used up the fences of the epoch. Its waiters get it in the next one.
    pub fn is_exhausted(&self) -> bool {
        self.context.is_exhausted
    }

    /// Ends the epoch for this node. Idle locks are dropped when the next one begins.
    pub fn freeze(&mut self) {
        let context = &mut self.context;
        context.current = None;
        context.unbegun = Vec::new();
        context.is_exhausted = false;
        context.idle.clear();
        context.offers.clear();
        context.held_bytes = 0;
        for lock in self.locks.all_mut() {
            lock.machine = None;
            lock.is_listed = false;
            lock.balance = 0;
            lock.offer = None;
            lock.last_end = None;
            context.deadlines.remove(lock.stands_back.take());
        }
    }

    /// The locks that are held on this node, in name order.
    pub fn held(&self) -> Vec<LockName> {
        self.held_after(None, usize::MAX)
    }

    /// Like [`held`](Table::held), but only locks after this name, and at most this many bytes of
    /// them; at least one.
    pub fn held_after(&self, name: Option<&LockName>, bytes: usize) -> Vec<LockName> {
        let locks = self.locks.after(name.map(LockName::as_str));
        let held = locks.filter(|(_, lock)| lock.hold.is_some());
        let mut total = 0_usize;
        let fitting = held.enumerate().take_while(|(place, (name, _))| {
            total = total.saturating_add(bytes_of(name));
            *place == 0 || total <= bytes
        });
        fitting.map(|(_, (name, _))| name.clone()).collect()
    }

    /// Upper bound on the bytes of all [held](Table::held) locks.
    pub fn held_bytes_max(&self) -> usize {
        self.context.usage.name_bytes()
    }

    /// Installs an epoch. Its number must be higher than that of every earlier one. Holds of this
    /// node continue in it, and locks with waiters are requested again.
    ///
    /// Locks are independent of each other, so they begin the epoch one by one: here, in
    /// [`tick`](Table::tick), or when an event concerns them. So no call takes long, even with very
    /// many locks.
    ///
    /// # Panics
    /// If the table is not frozen.
    pub fn install(&mut self, now: Moment, epoch: Epoch, out: &mut Effects) {
        let context = &mut self.context;
        assert!(
            context.current.is_none(),
            "one epoch ends before the next begins"
        );
        if !Mutant::FenceWithoutEpoch.planted() {
            let first = Fence::first_of(epoch.number).number() + fences_skipped();
            context.floor = context.floor.max(Fence::from_number(first));
        }
        context.clock = 0;
        context.nodes = epoch.nodes;
        // A lock that was released since the report still has to be passed on by this node.
        let mine = epoch.inside.0.iter().filter(|(_, node)| **node == epoch.me);
        let mut given_back: Vec<_> = mine.map(|(name, _)| name.clone()).collect();
        given_back
            .retain(|name| !self.locks.contains_key(name) && !Mutant::ReleaseForgotten.planted());
        given_back.sort_unstable();
        let mut waited_for: Vec<_> = context.tickets.values().cloned().collect();
        waited_for.sort_unstable();
        waited_for.dedup();
        // The last one begins first. Locks with waiters come first; locks that are held can wait.
        context.unbegun = self.locks.names().rev().cloned().collect();
        context.unbegun.extend(given_back.into_iter().rev());
        context.unbegun.extend(waited_for.into_iter().rev());
        context.current = Some(Current {
            rules: context.settings.rules.sized(epoch.nodes),
            epoch,
        });
        self.begin_some(now, out);
    }

    /// Creates the state machines of some locks that have none in this epoch yet.
    pub(super) fn begin_some(&mut self, now: Moment, out: &mut Effects) {
        for _ in 0..begun_at_once() {
            let Table { locks, context } = self;
            let Some(name) = context.unbegun.pop() else {
                context.unbegun = Vec::new();
                return;
            };
            match locks.entry(&name) {
                // An event has already started it.
                Ok(lock) if lock.machine.is_some() => continue,
                // It was idle when the last epoch ended, and has not been wanted since.
                Ok(lock) if lock.is_unused() && !context.was_mine(&name) => {
                    locks.remove(&name);
                    continue;
                }
                Ok(lock) => context.begin(now, &name, lock, out),
                Err(vacant) => {
                    let lock = vacant.insert(context.new_lock(&name, now));
                    context.begin(now, &name, lock, out);
                }
            }
            self.settle(now, &name, out);
        }
    }

    /// This node has lost its lease: its holds are lost, and it takes part in nothing until the
    /// next epoch.
    pub fn lose(&mut self, now: Moment, out: &mut Effects) {
        self.freeze();
        self.end_all(now, End::EpochLost, out);
    }
}
