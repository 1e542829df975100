//! Back-off between dials.

use std::time::Duration;

/// Growing back-off with jitter, so that nodes that lost the same peer do not reconnect in step.
///
/// A pause is at most half the sum of all pauses since the peer was lost. A short outage is
/// therefore not followed by a long pause, however many dials failed during it.
#[derive(Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    total: Duration,
}

impl Backoff {
    /// Creates a back-off whose pauses lie between `min` and `max`.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max,
            total: Duration::ZERO,
        }
    }

    /// Returns the next pause. `chance` is uniform in 0..1.
    pub fn next(&mut self, chance: f64) -> Duration {
        let longest = (self.total / 2).clamp(self.min, self.max);
        let pause = self.min + (longest - self.min).mul_f64(chance);
        self.total = self.total.saturating_add(pause);
        pause
    }

    /// Starts again from the shortest pause. Called when a dial succeeded.
    pub fn reset(&mut self) {
        self.total = Duration::ZERO;
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
        let mut last = min;
        for _ in 0..40 {
            let next = backoff.next(0.999_999);
            assert!((min..=max).contains(&next));
            assert!(next + Duration::from_micros(10) >= last);
            last = next;
        }
        assert!(last.abs_diff(max) < Duration::from_millis(1));
        backoff.reset();
        assert_eq!(backoff.next(0.999_999), min);
    }

    #[test]
    fn a_short_outage_is_followed_by_a_short_pause() {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(2));
        let mut outage = Duration::ZERO;
        while outage < Duration::from_millis(200) {
            let pause = backoff.next(0.999_999);
            assert!(
                pause <= Duration::from_millis(100),
                "{pause:?} after {outage:?}"
            );
            outage += pause;
        }
        assert!(backoff.next(0.999_999) <= Duration::from_millis(160));
    }
}
