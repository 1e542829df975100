//! Limits how often an epoch begins that could also begin later.
//!
//! Joins, suspicions and used-up fences are limited, so that they cannot keep the members frozen.
//! Those that must wait share the next change of epoch. Evictions and orderly leaves are not
//! limited.

use std::time::Duration;

use soloist_api::Moment;

/// Number of changes allowed in a burst, and the interval at which one more is allowed.
const BURST: u32 = 30;
const ONE_EVERY: Duration = Duration::from_secs(2);

/// A token bucket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pace {
    left: u32,
    /// The moment up to which `left` has been refilled.
    counted: Moment,
}

impl Pace {
    pub(super) fn new(now: Moment) -> Self {
        Pace {
            left: BURST,
            counted: now,
        }
    }

    /// Returns whether an epoch may begin now.
    pub(super) fn allows(&self, now: Moment) -> bool {
        self.left > 0 || self.more_at() <= now
    }

    /// Counts an epoch that begins.
    pub(super) fn count(&mut self, now: Moment) {
        while self.left < BURST && self.more_at() <= now {
            self.left += 1;
            self.counted = self.more_at();
        }
        if self.left == BURST {
            self.counted = now;
        }
        self.left = self.left.saturating_sub(1);
    }

    /// When one more is allowed.
    pub(super) fn more_at(&self) -> Moment {
        self.counted + ONE_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_immediate_and_then_paced() {
        let after = |millis| Moment::default() + Duration::from_millis(millis);
        let mut pace = Pace::new(after(0));
        let mut changes = Vec::new();
        for millis in (0..120_000).step_by(100) {
            if pace.allows(after(millis)) {
                pace.count(after(millis));
                changes.push(millis);
            }
        }
        // 30 at the beginning, then one every two seconds.
        let within = |minute: std::ops::Range<u64>| {
            let within = changes.iter().filter(|&at| minute.contains(at));
            within.count()
        };
        assert_eq!(within(0..4_000), 30 + 1);
        assert_eq!(within(60_000..120_000), 30);
        // After a long pause, a full burst is allowed again.
        let rested = after(1_000_000);
        for _ in 0..30 {
            assert!(pace.allows(rested));
            pace.count(rested);
        }
        assert!(!pace.allows(rested));
    }
}
