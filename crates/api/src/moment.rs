//! Points in time, as numbers, and how to wait for one.

use std::ops::Add;
use std::time::Duration;

/// A point in time. Moments of one machine compare with each other, in all its processes, until it restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(Duration);

impl Moment {
    /// This long after the machine started.
    pub const fn new(since_start: Duration) -> Self {
        Moment(since_start)
    }

    /// How long after the machine started.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long ago `earlier` was; zero, if it is still to come.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This much earlier.
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

/// Timers do not run while the machine sleeps: none is armed for longer.
pub const NAP_MAX: Duration = Duration::from_secs(1);

/// The resolution of timers.
const NAP_LEAST: Duration = Duration::from_millis(1);

/// How long to arm a timer for something that is due after `left`: three quarters of it, then look at the clock again.
///
/// Kernel timers run on a clock that NTP daemons slew, by up to 10 %. A [`Moment`] is not slewed. A timer that was armed
/// for the whole time would fire late; one that is armed for three quarters never does, until `left` is about the
/// resolution of timers.
pub fn nap(left: Duration) -> Duration {
    (left / 4 * 3).clamp(NAP_LEAST, NAP_MAX)
}

/// Waits until `clock` shows `moment`, with timers (`sleep`) that may run faster or slower than that clock.
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

    /// Waits for `left` with timers that take `percent` of the time that they are told; returns by how much it was late,
    /// and how many timers it took. No real time passes.
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
            // 125 %: more than any daemon slews.
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
