//! The clock that decides how long a hold is valid.

use std::ops::Add;
use std::time::Duration;

/// A point in time by the clock that also counts while the machine sleeps: a hold does not live longer because
/// its holder slept. The same in all processes of a machine, until it starts anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(Duration);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Moment(Duration::new(time.tv_sec.unsigned_abs(), nanoseconds))
    }

    /// So long after the machine was started.
    pub const fn new(since_start: Duration) -> Self {
        Moment(since_start)
    }

    /// How long after the machine was started.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long ago `earlier` was; nothing, if it is yet to come.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// So much earlier.
    pub fn before(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_sub(duration))
    }

    /// Waits until it is now. Timers stand still while the machine sleeps, so they are set anew every
    /// second.
    pub async fn reached(self) {
        loop {
            let left = self.since(Moment::now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        }
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}
