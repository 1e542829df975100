//! Measured durations and their summary.

use serde::Serialize;

use super::Time;

/// Beyond this many samples, only every second, then every fourth and so on is kept for the
/// percentiles. Mean and maximum always cover all samples.
const KEPT_MAX: usize = 1 << 22;

/// A series of measured durations.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    kept: Vec<Time>,
    stride: u64,
    count: u64,
    sum: u128,
    max: Time,
}

/// Mean, percentiles and maximum of measured durations, in message delays. All zero if there are
/// none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl Samples {
    /// An empty series with capacity for `expected` samples, so that adding them does not allocate.
    pub(super) fn new(expected: u64) -> Self {
        let room = usize::try_from(expected).map_or(KEPT_MAX, |count| count.min(KEPT_MAX));
        Samples {
            kept: Vec::with_capacity(room),
            stride: 1,
            count: 0,
            sum: 0,
            max: Time::ZERO,
        }
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, span: Time) {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() == KEPT_MAX {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.count.is_multiple_of(self.stride) {
                self.kept.push(span);
            }
        }
        self.count += 1;
        self.sum += u128::from(span.ticks());
        self.max = self.max.max(span);
    }

    /// Summarises the samples.
    pub(super) fn summary(mut self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        let kept = &mut self.kept;
        let mut quantile = |share: f64| {
            let rank = (share * kept.len() as f64).ceil() as usize;
            let (_, value, _) = kept.select_nth_unstable(rank.max(1) - 1);
            value.delays()
        };
        let one_tick = Time::from_ticks(1).delays();
        Summary {
            mean: self.sum as f64 / self.count as f64 * one_tick,
            p50: quantile(0.50),
            p99: quantile(0.99),
            max: self.max.delays(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples = Samples::new(100);
        for value in (1..=100).rev() {
            samples.add(Time::from_delays(f64::from(value)));
        }
        let summary = samples.summary();
        assert_eq!(
            summary,
            Summary {
                mean: 50.5,
                p50: 50.0,
                p99: 99.0,
                max: 100.0
            }
        );
    }

    #[test]
    fn thinning_keeps_the_percentiles_close_and_the_rest_exact() {
        let count = 3 * KEPT_MAX as u64;
        let mut samples = Samples::new(count);
        for value in 0..count {
            samples.add(Time::from_ticks(value));
        }
        assert!(samples.kept.len() <= KEPT_MAX);
        let summary = samples.summary();
        let middle = Time::from_ticks(count / 2).delays();
        assert!((summary.p50 / middle - 1.0).abs() < 1e-5);
        assert_eq!(summary.max, Time::from_ticks(count - 1).delays());
    }
}
