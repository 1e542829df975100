//! Who holds and who waits, as one node knows it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Table;
use super::lock::Lock;
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
    /// Who holds it on this node.
    pub holder: Option<HolderView>,
    /// Who waits on this node, in order; the first [`WAITERS_SHOWN`](LockView::WAITERS_SHOWN).
    pub waiters: Vec<WaiterView>,
    /// How many wait on this node.
    pub waiting: usize,
}

/// Somebody who holds a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HolderView {
    /// As they call themselves.
    pub owner: String,
    /// Their fence.
    pub fence: Fence,
    /// For how long they have held it.
    pub held_for: Duration,
    /// For how much longer, unless it is renewed.
    pub valid_for: Option<Duration>,
}

/// Somebody who waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaiterView {
    /// As they call themselves.
    pub owner: String,
    /// For how long they have waited.
    pub waited_for: Duration,
}

impl Table {
    /// A lock as this node sees it, if somebody here holds it or waits for it.
    pub fn view(&self, now: Moment, name: &LockName) -> Option<LockView> {
        let lock = self.lock(name).filter(|lock| lock.is_wanted())?;
        Some(view(now, name, lock))
    }

    /// The locks that somebody here holds or waits for, in the order of their names, from after `after` on.
    ///
    /// The work is bounded: it ends when about so many bytes are filled, or when so many locks were looked at,
    /// of which some may be idle. The page says from where to go on.
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
                let view = view(now, name, lock);
                page.bytes += view.bytes();
                page.locks.push(view);
            }
        }
        page
    }
}

/// Some locks of a node, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Those that somebody holds or waits for.
    pub locks: Vec<LockView>,
    /// About how many bytes they take.
    pub bytes: usize,
    /// There may be more after this name.
    pub next: Option<String>,
}

impl LockView {
    /// How many of a lock's waiters are told one by one.
    pub const WAITERS_SHOWN: usize = 100;

    /// None takes less.
    const BYTES_LEAST: usize = 128;

    /// About how much it weighs.
    fn bytes(&self) -> usize {
        let owners = self.waiters.iter().map(|waiter| waiter.owner.len() + 16);
        let holder = self.holder.as_ref().map_or(0, |holder| holder.owner.len());
        self.name.len() + Self::BYTES_LEAST + holder + owners.sum::<usize>()
    }
}

fn view(now: Moment, name: &LockName, lock: &Lock) -> LockView {
    let holder = lock.hold.as_ref().map(|hold| HolderView {
        owner: hold.owner.to_string(),
        fence: hold.fence,
        held_for: now.since(hold.since),
        valid_for: hold.deadline.map(|key| key.moment().since(now)),
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
