//! Epochs, as the lock table sees them: it takes part in one, is frozen, and installs the next.
//!
//! A frozen table neither sends nor handles lock messages. Its clients continue: holds are renewed,
//! released and expire, and waiters come and go. The effects of that on other nodes wait for the
//! next epoch, which starts with fresh state machines of the algorithms.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::{Machine, NodeId, Start};

use super::deadlines::Due;
use super::lock::Lock;
use super::table::Context;
use super::{Effects, Inside, Table};
use crate::Incarnation;
use crate::mutant::Mutant;
use crate::name_hash::{HashKey, NameHash};
use crate::near_end::fences_skipped;
use crate::rules::Rules;
use soloist_api::Moment;
use soloist_api::{EndReason, Fence, LockName};

/// How long requests of other nodes may take to arrive at the beginning of an epoch.
const STAND_BACK: Duration = Duration::from_millis(50);

/// Number of locks that begin an epoch in one step. Each takes about a microsecond, and other calls
/// to the table wait for the whole step.
const BEGUN_AT_ONCE: usize = 1024;

/// An epoch in which a table takes part.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number.
    pub number: u64,
    /// This node's number in it.
    pub me: NodeId,
    /// Its members. A member's index is its number in the algorithms.
    pub members: Arc<[Incarnation]>,
    /// Which node was inside which lock when it began.
    pub inside: Inside,
}

impl Epoch {
    /// Number of nodes in it.
    pub fn nodes(&self) -> usize {
        self.members.len()
    }

    /// The member with this number.
    pub(super) fn member(&self, node: NodeId) -> Incarnation {
        self.members[node.index()]
    }
}

/// An epoch, with the algorithms for its number of nodes.
#[derive(Clone)]
pub(super) struct Current {
    pub epoch: Epoch,
    rules: Rules,
    /// Locks that a node was inside of when the epoch began, and that were forgotten since. They
    /// start from their initial state again. By name: another lock whose name has the same hash
    /// must not change its state while nodes take part in it.
    left: BTreeSet<LockName>,
}

impl Hash for Current {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Epoch {
            number,
            me,
            members,
            inside,
        } = &self.epoch;
        (number, me, members, inside, &self.left).hash(hasher);
    }
}

impl Current {
    /// The node at which the token of a fresh lock starts: the same for all nodes, and spread
    /// evenly over them.
    pub(super) fn home(&self, name: &LockName) -> NodeId {
        let hash = xxhash_rust::xxh3::xxh3_64(name.as_str().as_bytes());
        NodeId::from_index((hash % self.epoch.nodes() as u64) as usize)
    }

    /// The node that was inside a lock when the epoch began, if any, and if the lock was not
    /// forgotten since.
    pub(super) fn inside(&self, name: &LockName) -> Option<NodeId> {
        let inside = self.epoch.inside.get(name)?;
        (!self.left.contains(name)).then_some(inside)
    }

    /// Records that a lock is forgotten: the node that was inside has left.
    pub(super) fn forget(&mut self, name: &LockName) {
        if self.inside(name).is_some() {
            self.left.insert(name.clone());
        }
    }

    /// Creates this node's state machine for a lock.
    pub(super) fn machine(&self, name: &LockName, clock: u64) -> Box<dyn Machine> {
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
            && lock.hold.is_none()
            && lock.turns_left == 0
            && !lock.waiters.is_empty()
            && self.was_mine(name)
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
        self.locks.update_all(|lock| {
            lock.machine = None;
            lock.is_listed = false;
            lock.balance = 0;
            lock.offer = None;
            lock.last_end = None;
            context.deadlines.remove(lock.stands_back.take());
        });
    }

    /// The locks that are held on this node, in name order.
    pub fn held(&self) -> Vec<LockName> {
        self.context.holds.sorted_values(LockName::clone)
    }

    /// The hashes of the names of all [held](Table::held) locks, sorted, each once.
    pub fn held_hashes(&self, key: &HashKey) -> Vec<NameHash> {
        let mut hashes = self.context.holds.sorted_values(|name| key.hash(name));
        hashes.dedup();
        hashes
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
            "the current epoch must end before the next one begins"
        );
        if !context.tuning.has(Mutant::FenceWithoutEpoch) {
            let first = Fence::first_of(epoch.number).number() + fences_skipped();
            context.floor = context.floor.max(Fence::from_number(first));
        }
        context.come_back();
        context.clock = 0;
        context.nodes = epoch.nodes();
        // A lock that was released since the report still has to be passed on by this node.
        let mut given_back = std::mem::take(&mut context.given_back);
        let is_kept = !context.tuning.has(Mutant::ReleaseForgotten);
        given_back.retain(|name| epoch.inside.get(name) == Some(epoch.me) && is_kept);
        let waited_for: BTreeSet<LockName> = context.tickets.values().cloned().collect();
        // The last one begins first. Locks with waiters come first; locks that are held can wait.
        context.unbegun = self.locks.names().rev().cloned().collect();
        context.unbegun.extend(given_back.into_iter().rev());
        context.unbegun.extend(waited_for.into_iter().rev());
        context.current = Some(Current {
            rules: context.settings.rules.sized(epoch.nodes()),
            left: BTreeSet::new(),
            epoch,
        });
        self.begin_some(now, out);
    }

    /// Creates the state machines of some locks that have none in this epoch yet.
    pub(super) fn begin_some(&mut self, now: Moment, out: &mut Effects) {
        for _ in 0..self.context.tuning.begun_at_once(BEGUN_AT_ONCE) {
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
        self.end_all(now, EndReason::EpochLost, out);
        self.context.given_back.clear();
        self.go_outside(now);
    }
}
