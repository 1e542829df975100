//! One-second aggregates of the last 15 minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::dashboard::Point;

use crate::locks::LockEvent;

/// Number of seconds that are kept.
pub const SECONDS_KEPT: u64 = 15 * 60;

/// Upper bound of the first bucket, in milliseconds. Each further bound is twice the one before.
const FIRST_BOUND_MS: f64 = 0.1;

/// Number of buckets. The last one has no upper bound; it starts at 419 s.
const BUCKETS: usize = 24;

/// Durations, counted by size.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Buckets([u32; BUCKETS]);

impl Buckets {
    /// Counts a duration.
    pub fn note(&mut self, time: Duration) {
        let ratio = time.as_secs_f64() * 1e3 / FIRST_BOUND_MS;
        let bucket = match ratio <= 1.0 {
            true => 0,
            false => ratio.log2().ceil() as usize,
        };
        let count = &mut self.0[bucket.min(BUCKETS - 1)];
        *count = count.saturating_add(1);
    }

    /// Adds the counts of another value.
    pub fn add(&mut self, other: &Buckets) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// A percentile in milliseconds, such as `0.99`, or `None` if nothing was counted. It is
    /// interpolated within a bucket; in the last bucket it is the lower bound.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        if total == 0 {
            return None;
        }
        let rank = (total as f64 * share).ceil().max(1.0);
        let mut before = 0.0;
        for (bucket, &count) in self.0.iter().enumerate() {
            let count = f64::from(count);
            if before + count >= rank {
                let upper = FIRST_BOUND_MS * (1_u64 << bucket) as f64;
                let lower = if bucket == 0 { 0.0 } else { upper / 2.0 };
                return Some(match bucket == BUCKETS - 1 {
                    true => lower,
                    false => lower + (upper - lower) * (rank - before) / count,
                });
            }
            before += count;
        }
        None
    }
}

/// What happened in one second.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Number of grants.
    pub entries: u32,
    /// Number of holds lost.
    pub lost: u32,
    /// Times from request to grant.
    pub wait: Buckets,
    /// Times from the end of a hold to the next grant on the same node.
    pub hand_over: Buckets,
}

impl Second {
    fn note(&mut self, event: &LockEvent) {
        match event {
            LockEvent::Granted {
                waited,
                handed_over,
                ..
            } => {
                self.entries = self.entries.saturating_add(1);
                self.wait.note(*waited);
                handed_over
                    .iter()
                    .for_each(|time| self.hand_over.note(*time));
            }
            LockEvent::Ended { end, .. } if end.is_loss() => {
                self.lost = self.lost.saturating_add(1);
            }
            _ => {}
        }
    }

    /// Adds what happened elsewhere in the same second.
    pub fn add(&mut self, other: &Second) {
        self.entries = self.entries.saturating_add(other.entries);
        self.lost = self.lost.saturating_add(other.lost);
        self.wait.add(&other.wait);
        self.hand_over.add(&other.hand_over);
    }

    /// The second as a dashboard shows it.
    pub fn point(&self) -> Point {
        Point {
            entries: u64::from(self.entries),
            wait_p50_ms: self.wait.percentile(0.5),
            wait_p99_ms: self.wait.percentile(0.99),
            hand_over_p50_ms: self.hand_over.percentile(0.5),
            hand_over_p99_ms: self.hand_over.percentile(0.99),
            lost: u64::from(self.lost),
        }
    }
}

/// The last 15 minutes, second by second. Seconds in which nothing happened take no memory; one in
/// which something happened takes about 250 bytes, so that all take at most 225 kB.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seconds(BTreeMap<u64, Second>);

impl Seconds {
    /// Counts an event at this second since 1970.
    pub fn note(&mut self, second: u64, event: &LockEvent) {
        let counts = match event {
            LockEvent::Granted { .. } => true,
            LockEvent::Ended { end, .. } => end.is_loss(),
            _ => false,
        };
        if counts {
            self.at(second).note(event);
        }
    }

    /// Adds what happened elsewhere at this second.
    pub fn add(&mut self, second: u64, other: &Second) {
        self.at(second).add(other);
    }

    fn at(&mut self, second: u64) -> &mut Second {
        self.forget_before(second.saturating_sub(SECONDS_KEPT - 1));
        // The wall clock was set back: what is in its future cannot be shown.
        while let Some(last) = self.0.last_entry()
            && *last.key() > second + SECONDS_KEPT
        {
            last.remove();
        }
        self.0.entry(second).or_default()
    }

    /// Drops the seconds before this one.
    pub fn forget_before(&mut self, second: u64) {
        while let Some(first) = self.0.first_entry()
            && *first.key() < second
        {
            first.remove();
        }
    }

    /// What happened at this second, if anything did.
    pub fn get(&self, second: u64) -> Option<&Second> {
        self.0.get(&second)
    }

    /// The seconds from this one on in which something happened.
    pub fn from(&self, second: u64) -> impl Iterator<Item = (u64, &Second)> {
        self.0.range(second..).map(|(at, second)| (*at, second))
    }

    /// All seconds together.
    pub fn total(&self) -> Second {
        let mut total = Second::default();
        self.0.values().for_each(|second| total.add(second));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_the_bounds_of_their_bucket() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.percentile(0.5), None);
        for ms in 1..=100 {
            buckets.note(Duration::from_millis(ms));
        }
        // 51.2 ms is the bound nearest to the median: 51 durations are below it.
        let median = buckets.percentile(0.5).unwrap();
        assert!((25.6..=51.2).contains(&median), "{median}");
        let high = buckets.percentile(0.99).unwrap();
        assert!((51.2..=102.4).contains(&high), "{high}");
        let mut slow = Buckets::default();
        slow.note(Duration::ZERO);
        slow.note(Duration::from_secs(100_000));
        assert_eq!(slow.percentile(0.5), Some(0.1));
        assert!(slow.percentile(1.0).unwrap() > 400_000.0);
        slow.add(&buckets);
        assert_eq!(slow.0.iter().sum::<u32>(), 102);
    }

    #[test]
    fn at_most_fifteen_minutes_are_kept_and_the_clock_may_be_set() {
        let lost = Second {
            lost: 1,
            ..Second::default()
        };
        let mut seconds = Seconds::default();
        for second in 1_000..3_000 {
            seconds.add(second, &lost);
        }
        let kept: Vec<u64> = seconds.from(0).map(|(second, _)| second).collect();
        assert_eq!(kept, (2_100..3_000).collect::<Vec<_>>());
        assert_eq!(seconds.total().lost, 900);
        seconds.add(2_999, &lost);
        assert_eq!(seconds.get(2_999).unwrap().lost, 2);
        // The clock is set back by an hour, and later forward again.
        seconds.add(100, &lost);
        assert_eq!(seconds.from(0).count(), 1);
        seconds.add(1_000_000, &lost);
        assert_eq!(seconds.from(0).count(), 1);
    }
}
