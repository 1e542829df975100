//! The clock that all of Soloist measures time with. It keeps counting while the machine is
//! suspended, and NTP daemons cannot slew it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Moment;

/// Suspensions shorter than this, in nanoseconds, are not reported as sleep.
const SLEEP_LEAST: i64 = 10_000_000;

/// One reading of the clock.
///
/// The time is `CLOCK_MONOTONIC_RAW` plus the time that the machine was suspended, which is
/// `CLOCK_BOOTTIME` - `CLOCK_MONOTONIC`. NTP daemons slew the latter two (chrony by up to 8.33 %),
/// but both equally, so their difference changes only when the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The time of the reading.
    pub now: Moment,
    /// Time that the machine has slept since boot, in nanoseconds, up to a constant.
    asleep: i64,
}

/// The longest time asleep that this process has read so far.
static ASLEEP: AtomicI64 = AtomicI64::new(i64::MIN);

impl Reading {
    /// Reads the clock.
    pub fn take() -> Self {
        // The order matters: a delay between the first two readings makes the time asleep too
        // short, never too long.
        let boot = nanoseconds(ClockId::Boottime);
        let monotonic = nanoseconds(ClockId::Monotonic);
        let raw = nanoseconds(ClockId::MonotonicRaw);
        Self::of(&ASLEEP, boot, monotonic, raw)
    }

    /// Computes a reading from the three clocks. `known` never decreases, so neither does the sum:
    /// time does not run backwards.
    fn of(known: &AtomicI64, boot: i64, monotonic: i64, raw: i64) -> Self {
        let seen = boot - monotonic;
        let mut asleep = known.load(Ordering::SeqCst);
        if seen > asleep {
            asleep = seen.max(known.fetch_max(seen, Ordering::SeqCst));
        }
        let now = u64::try_from(raw.saturating_add(asleep)).unwrap_or(0);
        Reading {
            now: Moment::new(Duration::from_nanos(now)),
            asleep,
        }
    }

    /// Returns whether the machine has slept since `earlier`.
    pub fn has_slept_since(self, earlier: Reading) -> bool {
        self.asleep.saturating_sub(earlier.asleep) > SLEEP_LEAST
    }
}

impl Moment {
    /// The current time.
    pub fn now() -> Self {
        Reading::take().now
    }
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn slewing_does_not_change_time_and_a_suspend_is_seen() {
        let known = AtomicI64::new(i64::MIN);
        let read = |boot, monotonic, raw| Reading::of(&known, boot, monotonic, raw);
        // The machine slept for 5 s before the test. The delay between reading the first two clocks
        // is 50 ns, but 3 ms in the third reading.
        let first = read(105 * SECOND, 100 * SECOND + 50, 90 * SECOND);
        // 10 s later, with the first two clocks slewed by 10 %.
        let second = read(116 * SECOND, 111 * SECOND + 50, 100 * SECOND);
        assert_eq!(second.now.since(first.now), Duration::from_secs(10));
        let third = read(116 * SECOND, 111 * SECOND + 3_000_000, 100 * SECOND + 7);
        assert_eq!(third.now.since(second.now), Duration::from_nanos(7));
        assert!(!third.has_slept_since(first));
        // The machine slept for 2 s, during which the raw clock stood still.
        let fourth = read(119 * SECOND, 112 * SECOND + 50, 101 * SECOND);
        assert_eq!(fourth.now.since(second.now), Duration::from_secs(3));
        assert!(fourth.has_slept_since(third));
        assert!(!third.has_slept_since(fourth));
    }

    #[test]
    fn time_is_monotonic_even_if_readings_are_delayed() {
        let known = AtomicI64::new(i64::MIN);
        let mut last = Moment::default();
        for number in 0..1000 {
            let (raw, held_up) = (number * 100, number * 7919 % 5_000);
            let reading = Reading::of(&known, 2 * SECOND + raw, SECOND + raw + held_up, raw);
            assert!(reading.now >= last, "{reading:?} after {last:?}");
            last = reading.now;
        }
    }

    #[test]
    fn the_real_clock_runs() {
        let first = Reading::take();
        #[expect(clippy::disallowed_methods, reason = "tests the clock itself")]
        std::thread::sleep(Duration::from_millis(20));
        let second = Reading::take();
        assert!(second.now.since(first.now) >= Duration::from_millis(15));
        assert!(Moment::now() >= second.now);
    }
}
