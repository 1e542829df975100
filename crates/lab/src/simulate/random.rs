//! A pinned random number generator: a seed gives the same run next year, on any machine.

use std::sync::LazyLock;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use super::Time;

/// Random numbers for one purpose of one run.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Pcg64,
    logarithms: &'static Logarithms,
}

impl Random {
    /// The generator of this seed. Each `stream` of a seed is independent of the others.
    pub fn new(seed: u64, stream: u64) -> Self {
        // Spreads the seed's bits over the state, so that neighbouring seeds differ from the start.
        let spread = u128::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Random {
            generator: Pcg64::new(spread, u128::from(stream)),
            logarithms: &LOGARITHMS,
        }
    }

    /// The generator of one of many equals, such as a node, so that what one draws does not depend
    /// on when others draw.
    pub fn of_one(seed: u64, stream: u64, number: usize) -> Self {
        // The number goes into the state: streams of the same state are similar to each other.
        let start = mix(seed).wrapping_add(number as u64);
        let state = u128::from(mix(start)) << 64 | u128::from(mix(!start));
        Random {
            generator: Pcg64::new(state, u128::from(stream)),
            logarithms: &LOGARITHMS,
        }
    }

    /// A uniform integer below `bound` (the bias, less than bound/2^64, is negligible).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.generator.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed span of time.
    pub fn exponential(&mut self, mean: f64) -> Time {
        let bits = self.generator.next_u64();
        Time::from_delays(mean * minus_log_of_unit(self.logarithms, bits))
    }
}

/// Spreads the bits of a number: the finaliser of SplitMix64.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// Number of steps between 1 and 2 in the table of logarithms.
const STEPS: usize = 4096;

/// The natural logarithms of 1 to 2. From `libm` instead of the system, so that all bits are the
/// same everywhere.
static LOGARITHMS: LazyLock<Logarithms> =
    LazyLock::new(|| std::array::from_fn(|step| libm::log(1.0 + step as f64 / STEPS as f64)));

type Logarithms = [f64; STEPS + 1];

/// -ln(u) for a uniform u above 0 and up to 1, given by its bits. Linear interpolation between the
/// table's steps is off by less than 1e-8, a hundredth of a tick, and several times as fast as a
/// logarithm.
fn minus_log_of_unit(logarithms: &Logarithms, bits: u64) -> f64 {
    // The last bit counts as set, so u is never 0: u = m / 2^(zeros + 1) with 1 ≤ m < 2.
    let zeros = (bits | 1).leading_zeros();
    let mantissa = (bits | 1) << zeros << 1;
    let step = (mantissa >> 52) as usize;
    let part = (mantissa << 12 >> 11) as f64 / (1_u64 << 53) as f64;
    let log = logarithms[step] + part * (logarithms[step + 1] - logarithms[step]);
    f64::from(zeros + 1) * std::f64::consts::LN_2 - log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_logarithm() {
        let mut random = Random::new(1, 1);
        let some = (0..100_000).map(|_| random.generator.next_u64());
        for bits in some.chain([1, 2, 3, u64::MAX, 1 << 63, (1 << 63) - 1]) {
            let expected = -((bits | 1) as f64 / 2.0_f64.powi(64)).ln();
            assert!(
                (minus_log_of_unit(&LOGARITHMS, bits) - expected).abs() < 2e-8,
                "{bits:x}"
            );
        }
    }

    /// The numbers of neighbouring nodes and seeds are not correlated.
    #[test]
    fn equals_draw_independently() {
        let draws = |seed, number| {
            let mut random = Random::of_one(seed, 5, number);
            (0..10_000)
                .map(|_| random.unit() - 0.5)
                .collect::<Vec<f64>>()
        };
        let correlation = |one: &[f64], other: &[f64]| {
            let products = one.iter().zip(other).map(|(one, other)| one * other);
            12.0 * products.sum::<f64>() / one.len() as f64
        };
        let first = draws(1, 0);
        assert!((correlation(&first, &first) - 1.0).abs() < 0.05);
        for (seed, number) in [(1, 1), (1, 2), (1, 64), (2, 0), (0, 1)] {
            let found = correlation(&first, &draws(seed, number));
            assert!(found.abs() < 0.05, "seed {seed}, number {number}: {found}");
        }
    }

    #[test]
    fn spans_have_the_mean_and_are_exponential() {
        let mut random = Random::new(1, 1);
        let spans: Vec<f64> = (0..1_000_000)
            .map(|_| random.exponential(3.0).delays())
            .collect();
        let mean = spans.iter().sum::<f64>() / 1e6;
        assert!((mean - 3.0).abs() < 0.02, "{mean}");
        let beyond_twice = spans.iter().filter(|span| **span > 6.0).count() as f64 / 1e6;
        assert!(
            (beyond_twice - (-2.0_f64).exp()).abs() < 0.002,
            "{beyond_twice}"
        );
    }
}
