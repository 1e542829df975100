//! Virtual time, in message delays.

use std::fmt;
use std::ops::{Add, Sub};

/// A point or a span of virtual time. One message delay is 2^20 ticks. Integers compare exactly and
/// make a run repeatable bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The start of a run; an empty span.
    pub const ZERO: Time = Time(0);

    const TICKS_PER_DELAY: f64 = (1_u64 << 20) as f64;

    /// The end of time, about 2^44 message delays after the start. Nothing happens then or later.
    pub const END: Time = Time(u64::MAX);

    /// The shortest span. Every message takes at least this long, so that time advances.
    pub const TICK: Time = Time(1);

    /// This many message delays, saturating at the end of time.
    pub fn from_delays(delays: f64) -> Self {
        Time((delays * Self::TICKS_PER_DELAY + 0.5) as u64)
    }

    /// The time in message delays.
    pub fn delays(self) -> f64 {
        self.0 as f64 / Self::TICKS_PER_DELAY
    }

    /// The time in ticks, for exact sums.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// The time with this number of ticks.
    pub fn from_ticks(ticks: u64) -> Self {
        Time(ticks)
    }
}

impl Add for Time {
    type Output = Time;

    fn add(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub for Time {
    type Output = Time;

    fn sub(self, earlier: Time) -> Time {
        Time(self.0 - earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.delays().fmt(f)
    }
}
