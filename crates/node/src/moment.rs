//! Points in time, as numbers: whoever keeps time says what time it is.

use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from an arbitrary beginning that stays the same while a node runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(Duration);

impl Moment {
    /// So long after the beginning.
    pub const fn new(since_beginning: Duration) -> Self {
        Moment(since_beginning)
    }

    /// Now, by the clock that also counts while the machine sleeps.
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Moment(Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec as u32,
        ))
    }

    /// How long ago `earlier` was; nothing, if it is yet to come.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}
