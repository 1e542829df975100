//! Points in time, and how to wait for one.

use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from the boot of this machine. Moments are comparable between all
/// processes on one machine until it reboots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The moment this long after boot.
    pub const fn new(since_start: Duration) -> Self {
        Moment(since_start)
    }

    /// Time from boot to this moment.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Time from `earlier` to this moment, or zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment this long before this one, but not before boot.
    pub fn before(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_sub(duration))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}

/// Longest time that a timer is armed for. Timers do not run while the machine sleeps, so the clock
/// must be read again soon after it wakes up.
pub const NAP_MAX: Duration = Duration::from_secs(1);

/// Shortest time that a timer is armed for: the resolution of timers.
const NAP_LEAST: Duration = Duration::from_millis(1);

/// Returns how long to arm a timer for something that is due after `left`: three quarters of it.
/// When the timer fires, read the clock again.
///
/// Kernel timers run on a clock that NTP daemons slew by up to 10 %, and a [`Moment`] is not
/// slewed. A timer armed for the whole time could fire late. One armed for three quarters of it
/// fires early, unless `left` is about as short as the resolution of timers.
pub fn nap(left: Duration) -> Duration {
    (left / 4 * 3).clamp(NAP_LEAST, NAP_MAX)
}

/// Waits until `clock` reaches `moment`. The timers behind `sleep` may run faster or slower than
/// that clock.
pub async fn wait_until<S: Future>(
    moment: Moment,
    clock: impl Fn() -> Moment,
    sleep: impl Fn(Duration) -> S,
) {
    loop {
        let left = moment.since(clock());
        if left.is_zero() {
            return;
        }
        sleep(nap(left)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Waits for `left` with timers that fire after `percent` of the time they are armed for.
    /// Returns how late the wait ended and how many timers it armed. No real time passes.
    fn late_by(left: Duration, percent: u32) -> (Duration, u32) {
        let now = Cell::new(Moment::new(Duration::from_secs(1000)));
        let timers = Cell::new(0);
        let due = now.get() + left;
        let sleep = |duration: Duration| {
            timers.set(timers.get() + 1);
            now.set(now.get() + duration * percent / 100);
            std::future::ready(())
        };
        let clock = || now.get();
        let mut waiting = pin!(wait_until(due, clock, sleep));
        let polled = waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(()));
        assert!(now.get() >= due, "too early");
        (now.get().since(due), timers.get())
    }

    #[test]
    fn slewed_timers_make_nothing_late() {
        for seconds in [0, 1, 3, 30, 3600] {
            // 125 % is more than any daemon slews.
            for percent in [90, 92, 100, 108, 110, 125] {
                let left = Duration::from_secs(seconds) + Duration::from_micros(300);
                let (late, timers) = late_by(left, percent);
                assert!(
                    late <= 2 * NAP_LEAST,
                    "{late:?} after {left:?}, {percent} %"
                );
                assert!(timers <= 2 * seconds as u32 + 12, "{timers} timers");
            }
        }
    }
}
