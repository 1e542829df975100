//! Observes every entry and exit, and asserts mutual exclusion and increasing fences.

use std::sync::{Arc, Mutex};

use soloist_api::Fence;

/// Observes one lock. Clones share what they observe.
#[derive(Clone, Debug, Default)]
pub struct Referee(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    inside: Option<Fence>,
    last: Option<Fence>,
    entries: usize,
}

impl Referee {
    /// Called after a client was granted the lock with this fence.
    pub fn enter(&self, fence: Fence) {
        let mut record = self.0.lock().unwrap();
        let other = record.inside.replace(fence);
        assert_eq!(other, None, "{fence} entered while {other:?} was inside");
        assert!(record.last < Some(fence), "{fence} after {:?}", record.last);
        record.last = Some(fence);
        record.entries += 1;
    }

    /// Called before the client releases it.
    pub fn leave(&self, fence: Fence) {
        let inside = self.0.lock().unwrap().inside.take();
        assert_eq!(inside, Some(fence));
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.0.lock().unwrap().entries
    }
}
