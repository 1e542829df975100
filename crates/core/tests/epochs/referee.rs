//! Observes every entry and exit, and checks that they are allowed.

use std::collections::HashMap;

use soloist_api::Moment;
use soloist_api::{Fence, LockName};
use soloist_core::locks::HoldId;

/// A client that entered and has not left. Clients outlive their nodes: whatever happens to the
/// node, they rely on their hold until the promised time.
pub struct Entry {
    pub node: usize,
    pub hold: HoldId,
    /// By the node's clock.
    pub promised: Moment,
}

#[derive(Default)]
pub struct Referee {
    pub inside: HashMap<LockName, Vec<Entry>>,
    fences: HashMap<LockName, Fence>,
    pub entries: usize,
    /// Number of entries while another client relied on the lock, and of entries with a fence that
    /// a resource would refuse. Both are 0 unless clocks drift beyond the margin.
    pub overlaps: usize,
    pub stale: usize,
}

impl Referee {
    /// Records an entry. `is_valid` returns whether another client may still rely on its hold.
    pub fn enter(
        &mut self,
        lock: &LockName,
        fence: Fence,
        entry: Entry,
        is_valid: impl Fn(&Entry) -> bool,
        clocks_keep_the_margin: bool,
    ) {
        self.entries += 1;
        let inside = self.inside.entry(lock.clone()).or_default();
        inside.retain(is_valid);
        let others = inside.len();
        let highest = self.fences.get(lock).copied();
        if clocks_keep_the_margin {
            assert!(
                highest < Some(fence),
                "{lock:?}: fence {fence} after {highest:?}"
            );
            assert_eq!(
                others, 0,
                "{lock:?}: node {} enters, others are inside",
                entry.node
            );
        }
        // No two holders have the same fence, whatever the clocks do, so a resource can distinguish
        // them.
        assert_ne!(highest, Some(fence), "{lock:?}: fence {fence} twice");
        self.overlaps += others;
        self.stale += usize::from(highest > Some(fence));
        self.fences
            .insert(lock.clone(), highest.max(Some(fence)).unwrap_or(fence));
        inside.push(entry);
    }

    pub fn leave(&mut self, lock: &LockName, hold: HoldId) {
        let inside = self.inside.get_mut(lock).expect("somebody entered");
        inside.retain(|entry| entry.hold != hold);
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

/// A node's clock. It runs faster than the world's by this many parts per million.
#[derive(Clone, Copy)]
pub struct Clock {
    pub faster_by: i64,
}

impl Clock {
    pub fn at(self, world_us: u64) -> Moment {
        let own = i128::from(world_us) * i128::from(1_000_000 + self.faster_by) / 1_000_000;
        Moment::default() + std::time::Duration::from_micros(own as u64)
    }
}
