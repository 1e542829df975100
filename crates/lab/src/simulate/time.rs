//! Virtual time, in message delays.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment or a span of virtual time. One message delay is 2^20 ticks: whole numbers, so that
/// moments compare exactly and a run repeats bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The beginning; no time at all.
    pub const ZERO: Time = Time(0);

    const TICKS_PER_DELAY: f64 = (1_u64 << 20) as f64;

    /// The end of time, some 2^44 message delays after the beginning: nothing happens then or later.
    pub const END: Time = Time(u64::MAX);

    /// The shortest span there is; every message takes it at least, so that time goes on.
    pub const TICK: Time = Time(1);

    /// This many message delays; too many of them last to the end of time.
    pub fn from_delays(delays: f64) -> Self {
        Time((delays * Self::TICKS_PER_DELAY + 0.5) as u64)
    }

    /// In message delays.
    pub fn delays(self) -> f64 {
        self.0 as f64 / Self::TICKS_PER_DELAY
    }

    /// In ticks, for sums that must not round.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// From ticks.
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
