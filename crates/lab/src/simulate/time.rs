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

    /// This many message delays; beyond about 2^43 of them, the latest moment there is.
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
