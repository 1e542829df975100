//! Holders and waiters, as one node knows them.

use std::ops::Bound;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lock::{Lock, Waiter};
use super::table::Context;
use super::{Counts, Table, Ticket};
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// One lock on one node: its own holder and waiters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockView {
    /// The lock.
    pub name: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// The highest fence that the node knows.
    pub fence: Fence,
    /// The holder on this node.
    pub holder: Option<HolderView>,
    /// The waiters on this node, in order; at most the first
    /// [`WAITERS_SHOWN`](LockView::WAITERS_SHOWN).
    pub waiters: Vec<WaiterView>,
    /// Number of waiters on this node.
    pub waiting: usize,
}

/// A client that holds a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HolderView {
    /// The name that the client gave.
    pub owner: String,
    /// The hold's fence.
    pub fence: Fence,
    /// How long it has been held.
    pub held_for: Duration,
    /// How long until it ends unless it is renewed, or `None` if it does not expire.
    pub expires_in: Option<Duration>,
}

/// A client that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaiterView {
    /// The name that the client gave.
    pub owner: String,
    /// How long it has waited.
    pub waited_for: Duration,
}

/// For how long clients on this node have waited for a lock, and held it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitView {
    /// The lock.
    pub name: LockName,
    /// How long the first of them has waited.
    pub waited_for: Option<Duration>,
    /// How long it has been held here.
    pub held_for: Option<Duration>,
}

impl Table {
    /// Number of holds on this node.
    pub fn holds(&self) -> usize {
        self.context.holds.len()
    }

    /// Number of waiters on this node.
    pub fn waiters(&self) -> usize {
        self.context.tickets.len()
    }

    /// How long the client that has waited longest on this node has waited, or `None` if none
    /// waits.
    pub fn longest_wait(&self, now: Moment) -> Option<Duration> {
        let (ticket, name) = self.context.tickets.first_key_value()?;
        let mut waiters = self.lock(name).into_iter().flat_map(|lock| &lock.waiters);
        let waiter = waiters.find(|waiter| waiter.ticket == *ticket);
        Some(now.since(waiter.expect("tickets have waiters").since))
    }

    /// Number of locks in the table.
    pub fn locks(&self) -> usize {
        self.locks.len()
    }

    /// Counters.
    pub fn counts(&self) -> &Counts {
        &self.context.counts
    }

    /// A lock as this node sees it, or `None` if no client here holds it or waits for it.
    pub fn view(&self, now: Moment, name: &LockName) -> Option<LockView> {
        let lock = self.lock(name).filter(|lock| lock.is_wanted())?;
        Some(view(now, name, lock, &self.context))
    }

    /// The locks after `after` that a client here holds or waits for, in name order.
    ///
    /// The work is bounded: the page ends after about `bytes` bytes, or after `looks` locks were
    /// examined, some of which may be idle. [`Page::next`] is where to continue.
    pub fn views(&self, now: Moment, after: Option<&str>, bytes: usize, looks: usize) -> Page {
        let mut page = Page::default();
        let mut last = None;
        for (looked_at, (name, lock)) in self.locks.after(after).enumerate() {
            if looked_at == looks || page.bytes >= bytes {
                page.next = last.map(LockName::to_string);
                break;
            }
            last = Some(name);
            if lock.is_wanted() {
                let view = view(now, name, lock, &self.context);
                page.bytes += view.bytes();
                page.locks.push(view);
            }
        }
        page
    }

    /// The locks after `after` that a client here holds or waits for, in name order, out of the
    /// next `looks` locks. Returns the last name that was examined, if there may be more.
    pub fn waits_by_name(
        &self,
        now: Moment,
        after: Option<&str>,
        looks: usize,
    ) -> (Vec<WaitView>, Option<LockName>) {
        let mut waits = Vec::new();
        let mut examined = (0, None);
        for (name, lock) in self.locks.after(after).take(looks) {
            examined = (examined.0 + 1, Some(name));
            if lock.is_wanted() {
                waits.push(wait(now, name, lock));
            }
        }
        let (count, last) = examined;
        let next = last.filter(|_| count == looks);
        (waits, next.cloned())
    }

    /// The locks that clients here wait for, the longest wait first, out of the next `looks`
    /// waiters after `after`. Returns the last waiter that was examined, if there may be more.
    pub fn waits_by_age(
        &self,
        now: Moment,
        after: Option<Ticket>,
        looks: usize,
    ) -> (Vec<WaitView>, Option<Ticket>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut waits = Vec::new();
        let mut examined = (0, None);
        let tickets = self.context.tickets.range((from, Bound::Unbounded));
        for (ticket, name) in tickets.take(looks) {
            examined = (examined.0 + 1, Some(*ticket));
            let lock = self.lock(name).expect("a waiter has a lock");
            let is_first = |first: &Waiter| first.ticket == *ticket;
            if lock.waiters.front().is_some_and(is_first) {
                waits.push(wait(now, name, lock));
            }
        }
        let (count, last) = examined;
        (waits, last.filter(|_| count == looks))
    }
}

fn wait(now: Moment, name: &LockName, lock: &Lock) -> WaitView {
    WaitView {
        name: name.clone(),
        waited_for: lock.waiters.front().map(|waiter| now.since(waiter.since)),
        held_for: lock.hold.as_ref().map(|hold| now.since(hold.since)),
    }
}

/// Some locks of a node, in name order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The locks that a client holds or waits for.
    pub locks: Vec<LockView>,
    /// Approximate size of them in bytes.
    pub bytes: usize,
    /// If set, there may be more locks after this name.
    pub next: Option<String>,
}

impl LockView {
    /// Maximum number of a lock's waiters to list.
    pub const WAITERS_SHOWN: usize = 100;

    /// Minimum size of a view.
    const BYTES_LEAST: usize = 128;

    /// Approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let owners = self.waiters.iter().map(|waiter| waiter.owner.len() + 16);
        let holder = self.holder.as_ref().map_or(0, |holder| holder.owner.len());
        self.name.len() + Self::BYTES_LEAST + holder + owners.sum::<usize>()
    }
}

fn view(now: Moment, name: &LockName, lock: &Lock, context: &Context) -> LockView {
    let holder = lock.hold.as_ref().map(|hold| HolderView {
        owner: hold.owner.to_string(),
        fence: hold.fence,
        held_for: now.since(hold.since),
        expires_in: context.expiry(hold).map(|expiry| expiry.since(now)),
    });
    let shown = lock.waiters.iter().take(LockView::WAITERS_SHOWN);
    let waiters = shown.map(|waiter| WaiterView {
        owner: waiter.owner.to_string(),
        waited_for: now.since(waiter.since),
    });
    LockView {
        name: name.to_string(),
        algorithm: lock.algorithm.to_owned(),
        fence: lock.fence,
        holder,
        waiters: waiters.collect(),
        waiting: lock.waiters.len(),
    }
}
