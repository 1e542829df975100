//! Observes every entry and exit, and checks that they are allowed.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist_api::{EndReason, Fence, LockName, Moment};
use soloist_core::locks::HoldId;

use super::describe;

/// A client that entered and has not left. Clients outlive their nodes: whatever happens to the
/// node, they rely on their hold until the promised time.
#[derive(Debug)]
pub struct Entry {
    /// The node that granted the lock.
    pub node: usize,
    /// Its hold.
    pub hold: HoldId,
    /// Until when it relies on the hold, by the node's clock.
    pub promised: Moment,
    /// Its time to live ran out.
    pub has_expired: bool,
}

/// All entries and exits of a run.
#[derive(Default, Debug)]
pub struct Referee {
    /// The clients that are inside, by lock.
    pub inside: BTreeMap<LockName, Vec<Entry>>,
    fences: BTreeMap<LockName, Fence>,
    /// Number of entries.
    pub entries: usize,
    /// Number of entries after a holder whose node crashed or lost its lease.
    pub takeovers: usize,
    /// Number of holds that were lost with their node's lease, or because it stopped.
    pub lost: usize,
    /// The longest time from a request to its grant, by the node's clock.
    pub longest_wait: Duration,
    /// Number of entries while another client relied on the lock. 0 unless clocks drift beyond the
    /// margin.
    pub overlaps: usize,
    /// Number of entries with a fence that a resource would refuse. 0 likewise.
    pub stale: usize,
}

impl Referee {
    /// Records an entry. `is_valid` returns whether another client may still rely on its hold. The
    /// error is what the entry violates.
    pub fn enter(
        &mut self,
        lock: &LockName,
        fence: Fence,
        entry: Entry,
        is_valid: impl Fn(&Entry) -> bool,
        clocks_keep_the_margin: bool,
    ) -> Result<(), String> {
        self.entries += 1;
        let inside = self.inside.entry(lock.clone()).or_default();
        let is_lost = |entry: &Entry| !is_valid(entry) && !entry.has_expired;
        self.takeovers += usize::from(inside.iter().any(is_lost));
        inside.retain(is_valid);
        let others = inside.len();
        let highest = self.fences.get(lock).copied();
        let text = describe::fence;
        if let Some(highest) = highest.filter(|highest| *highest >= fence) {
            // No two holders have the same fence, whatever the clocks do, so a resource can
            // distinguish them.
            if clocks_keep_the_margin || highest == fence {
                let (fence, highest) = (text(fence), text(highest));
                return Err(format!("{lock}: fence {fence} after {highest}"));
            }
        }
        if clocks_keep_the_margin && others > 0 {
            let other = inside[0].node;
            let node = entry.node;
            return Err(format!("{lock}: n{node} enters while n{other} is inside"));
        }
        self.overlaps += others;
        self.stale += usize::from(highest > Some(fence));
        self.fences
            .insert(lock.clone(), highest.max(Some(fence)).unwrap_or(fence));
        inside.push(entry);
        Ok(())
    }

    /// Records the end of a hold. A client whose hold was lost may not have heard of it.
    pub fn end(&mut self, lock: &LockName, hold: HoldId, end: EndReason) {
        let Some(inside) = self.inside.get_mut(lock) else {
            return;
        };
        match end {
            EndReason::Released => inside.retain(|entry| entry.hold != hold),
            EndReason::Expired => {
                let ended = inside.iter_mut().filter(|entry| entry.hold == hold);
                ended.for_each(|entry| entry.has_expired = true);
            }
            _ => self.lost += 1,
        }
    }

    /// Records how long a request waited for its grant.
    pub fn note_wait(&mut self, wait: Duration) {
        self.longest_wait = self.longest_wait.max(wait);
    }

    /// Updates the promises to the clients of a node, which may have been extended.
    pub fn extend(&mut self, node: usize, promise: impl Fn(HoldId) -> Option<Moment>) {
        let entries = self.inside.values_mut().flatten();
        for entry in entries.filter(|entry| entry.node == node) {
            let promised = promise(entry.hold);
            entry.promised = entry.promised.max(promised.unwrap_or_default());
        }
    }
}

/// A node's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// How much faster it runs than the world's, in parts per million.
    pub faster_by: i64,
}

impl Clock {
    /// What it shows at this time of the world.
    pub fn at(self, world_us: u64) -> Moment {
        let own = i128::from(world_us) * i128::from(1_000_000 + self.faster_by) / 1_000_000;
        Moment::default() + Duration::from_micros(own as u64)
    }

    /// The time of the world at which it shows this moment.
    pub fn shows(self, own: Moment) -> Moment {
        let micros = own.since(Moment::default()).as_micros();
        let rate = (1_000_000 + self.faster_by) as u128;
        let world = micros * 1_000_000 / rate;
        Moment::default() + Duration::from_micros(world as u64)
    }
}
