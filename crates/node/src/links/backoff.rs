//! How long to wait before the next dial.

use std::time::Duration;

/// Pauses that grow from the shortest to the longest, with jitter, so that nodes that lost the same peer
/// do not come back in step.
#[derive(Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    last: Duration,
}

impl Backoff {
    /// Pauses between `min` and `max`.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max,
            last: min,
        }
    }

    /// The next pause: anything from the shortest to three times the last one. `chance` is uniform in 0..1.
    pub fn next(&mut self, chance: f64) -> Duration {
        let span = (self.last * 3).min(self.max).saturating_sub(self.min);
        self.last = (self.min + span.mul_f64(chance)).min(self.max);
        self.last
    }

    /// A dial succeeded.
    pub fn reset(&mut self) {
        self.last = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_within_their_bounds_and_start_again() {
        let (min, max) = (Duration::from_millis(20), Duration::from_secs(2));
        let mut backoff = Backoff::new(min, max);
        assert_eq!(backoff.next(0.0), min);
        assert_eq!(backoff.next(0.5), Duration::from_millis(40));
        let mut last = min;
        for _ in 0..10 {
            let next = backoff.next(0.999_999);
            assert!(next > last || next.abs_diff(max) < Duration::from_millis(1));
            assert!(next <= max);
            last = next;
        }
        assert!(last.abs_diff(max) < Duration::from_millis(1));
        backoff.reset();
        assert!(backoff.next(0.999_999) <= min * 3);
    }
}
