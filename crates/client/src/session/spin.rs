//! Adaptive spinning: a caller looks for its answer for a few microseconds before it sleeps.
//!
//! Waking a thread costs more than a short round trip. Spinning saves that if the answer comes soon
//! enough, and wastes time if it does not. So after each miss the next callers go to sleep at once:
//! one, then three, then seven of them, up to [`SKIPPED_MAX`]. A hit starts over.

use std::time::Duration;

/// After this many callers that slept at once, another one spins.
const SKIPPED_MAX: u32 = 63;

/// Decides which callers spin.
#[derive(Debug)]
pub(super) struct Spin {
    limit: Duration,
    /// How many callers sleep at once after the next miss.
    after_miss: u32,
    /// How many of the next callers sleep at once.
    skip: u32,
    hits: u64,
}

impl Spin {
    /// Callers spin for at most `limit`; zero means never.
    pub(super) fn new(limit: Duration) -> Self {
        Spin {
            limit,
            after_miss: 1,
            skip: 0,
            hits: 0,
        }
    }

    /// How long the next caller may spin, or `None` if it must sleep at once.
    pub(super) fn begin(&mut self) -> Option<Duration> {
        if self.limit.is_zero() {
            return None;
        }
        match self.skip.checked_sub(1) {
            Some(skip) => {
                self.skip = skip;
                None
            }
            None => Some(self.limit),
        }
    }

    /// Number of answers that came while the caller was spinning.
    pub(super) fn hits(&self) -> u64 {
        self.hits
    }

    /// Notes whether the answer came while the caller was spinning.
    pub(super) fn end(&mut self, is_answered: bool) {
        if is_answered {
            self.hits += 1;
            self.after_miss = 1;
        } else {
            self.skip = self.after_miss;
            self.after_miss = (2 * self.after_miss + 1).min(SKIPPED_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(20);

    /// Number of callers that sleep before the next one spins.
    fn skipped(spin: &mut Spin) -> usize {
        std::iter::from_fn(|| spin.begin().is_none().then_some(())).count()
    }

    #[test]
    fn misses_make_spinning_rare_and_a_hit_starts_over() {
        let mut spin = Spin::new(LIMIT);
        assert_eq!(spin.begin(), Some(LIMIT));
        let skips = [(); 8].map(|()| {
            spin.end(false);
            skipped(&mut spin)
        });
        assert_eq!(skips, [1, 3, 7, 15, 31, 63, 63, 63]);
        spin.end(true);
        assert_eq!(skipped(&mut spin), 0);
        spin.end(false);
        assert_eq!(skipped(&mut spin), 1);
    }

    #[test]
    fn nobody_spins_without_a_limit() {
        let mut spin = Spin::new(Duration::ZERO);
        assert_eq!(spin.begin(), None);
    }
}
