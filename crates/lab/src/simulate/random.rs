//! A pinned source of chance: a seed means the same run next year, on any machine.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use super::Time;

/// Chance for one purpose of one run.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// The source for this seed; each `stream` of a seed is independent of the others.
    pub fn new(seed: u64, stream: u64) -> Self {
        // The seed's bits are spread over the state, so that neighbouring seeds differ from the start.
        let spread = u128::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Random(Pcg64::new(spread, u128::from(stream)))
    }

    /// A whole number below `bound`, uniformly (the bias, below bound/2^64, does not show).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to but not including 1, uniformly.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A span of time, exponentially distributed. `libm` rather than the system's logarithm: the
    /// same bits everywhere.
    pub fn exponential(&mut self, mean: f64) -> Time {
        Time::from_delays(-mean * libm::log(1.0 - self.unit()))
    }
}
