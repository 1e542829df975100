//! Observes every entry and exit, and asserts mutual exclusion and increasing fences.

use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub struct Referee(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    inside: Option<u64>,
    last: Option<u64>,
    entries: usize,
}

impl Referee {
    pub fn enter(&self, fence: u64) {
        let mut record = self.0.lock().unwrap();
        let other = record.inside.replace(fence);
        assert_eq!(other, None, "{fence} entered while {other:?} was inside");
        assert!(record.last < Some(fence), "{fence} after {:?}", record.last);
        record.last = Some(fence);
        record.entries += 1;
    }

    pub fn leave(&self, fence: u64) {
        let inside = self.0.lock().unwrap().inside.take();
        assert_eq!(inside, Some(fence));
    }

    pub fn entries(&self) -> usize {
        self.0.lock().unwrap().entries
    }
}
