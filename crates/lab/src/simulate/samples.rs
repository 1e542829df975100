//! Measured durations and their summary.

use serde::Serialize;

use super::Time;

/// Beyond this many samples, only every second, then every fourth and so on is kept for the
/// percentiles. Mean and maximum always cover all samples.
const KEPT_MAX: usize = 1 << 22;

/// Number of quantiles that describe a distribution.
pub const DISTRIBUTION_STEPS: usize = 200;

/// A series of measured durations.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    kept: Vec<Time>,
    stride: u64,
    count: u64,
    sum: u128,
    max: Time,
    /// The sum of the samples that were cleared.
    cleared_sum: u128,
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
    /// The number of durations.
    pub count: u64,
}

impl Summary {
    /// The mean, or `None` if there are no durations.
    pub fn mean_if_any(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }
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
            cleared_sum: 0,
        }
    }

    /// Removes all samples.
    pub(super) fn clear(&mut self) {
        self.cleared_sum += self.sum;
        self.kept.clear();
        self.stride = 1;
        self.count = 0;
        self.sum = 0;
        self.max = Time::ZERO;
    }

    /// The sum of all samples in ticks, with those that were cleared.
    pub(super) fn sum_of_all(&self) -> u128 {
        self.cleared_sum + self.sum
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

    /// The durations that 1, 2, ... of [`DISTRIBUTION_STEPS`] equal parts of the samples do not
    /// exceed, in message delays. Empty if there are no samples.
    pub(super) fn distribution(&mut self) -> Vec<f64> {
        if self.count == 0 {
            return Vec::new();
        }
        self.kept.sort_unstable();
        let rank = |step: usize| (step * self.kept.len()).div_ceil(DISTRIBUTION_STEPS);
        let steps = 1..DISTRIBUTION_STEPS;
        let values = steps.map(|step| self.kept[rank(step).max(1) - 1].delays());
        values.chain([self.max.delays()]).collect()
    }

    /// Summarises the samples. Their order changes, which matters only for thinning.
    pub(super) fn summary(&mut self) -> Summary {
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
            count: self.count,
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
                max: 100.0,
                count: 100,
            }
        );
    }

    #[test]
    fn a_distribution_rises_to_the_maximum() {
        assert!(Samples::new(0).distribution().is_empty());
        let mut samples = Samples::new(1000);
        for value in (1..=1000).rev() {
            samples.add(Time::from_delays(f64::from(value)));
        }
        let steps = samples.distribution();
        assert_eq!(steps.len(), DISTRIBUTION_STEPS);
        assert_eq!((steps[0], steps[99], steps[199]), (5.0, 500.0, 1000.0));
        assert!(steps.is_sorted());
        let mut one = Samples::new(1);
        one.add(Time::from_delays(7.0));
        assert_eq!(one.distribution(), vec![7.0; DISTRIBUTION_STEPS]);
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
