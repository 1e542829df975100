//! Means with confidence intervals, and maxima with the size of their sample.

use std::fmt;

use serde::Serialize;

use super::student::two_sided_quantile;

/// The mean of independent replications, with its confidence interval by Student's t.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval is from `mean - half_width` to `mean + half_width`.
    pub half_width: f64,
    /// The confidence level, such as 0.95.
    pub level: f64,
    /// Number of replications.
    pub replications: u64,
}

impl Estimate {
    /// Estimates from one value per replication. Panics unless there are at least two.
    pub fn of(values: &[f64], level: f64) -> Self {
        assert!(values.len() >= 2, "an interval needs two replications");
        let count = values.len() as f64;
        // Relative to the first value, so that equal values have exactly no variance.
        let first = values[0];
        let mean = values.iter().map(|value| value - first).sum::<f64>() / count;
        let square = |value: &f64| (value - first - mean) * (value - first - mean);
        let variance = values.iter().map(square).sum::<f64>() / (count - 1.0);
        let quantile = two_sided_quantile(level, values.len() as u64 - 1);
        Estimate {
            mean: first + mean,
            half_width: quantile * libm::sqrt(variance / count),
            level,
            replications: values.len() as u64,
        }
    }

    /// The lower end of the interval.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end of the interval.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Returns whether the value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }

    /// Half the width of the interval as a share of the mean.
    pub fn relative_half_width(&self) -> f64 {
        if self.half_width == 0.0 {
            return 0.0;
        }
        self.half_width / self.mean.abs()
    }

    /// The estimate of this multiple of the measure.
    pub fn times(self, factor: f64) -> Self {
        Estimate {
            mean: self.mean * factor,
            half_width: self.half_width * factor.abs(),
            ..self
        }
    }

    /// Number of decimals for two digits of the half-width, but at most four.
    fn decimals(&self) -> usize {
        let digits = (0..4).find(|&digits| self.half_width * 10_f64.powi(digits) >= 10.0);
        digits.unwrap_or(4) as usize
    }
}

/// `3.281 ± 0.012`. A mean without any variance has up to three decimals: `126 ± 0`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.half_width == 0.0 {
            let mean = format!("{:.3}", self.mean);
            return write!(
                f,
                "{} ± 0",
                mean.trim_end_matches('0').trim_end_matches('.')
            );
        }
        let decimals = self.decimals();
        // Rounded up: an interval is never shown narrower than it is.
        let unit = 10_f64.powi(decimals as i32);
        let half_width = (self.half_width * unit).ceil() / unit;
        write!(f, "{:.decimals$} ± {half_width:.decimals$}", self.mean)
    }
}

/// The largest value seen. It has no interval: it grows with the sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Largest {
    /// The largest value.
    pub value: f64,
    /// The number of values of which it is the largest.
    pub sample: u64,
}

/// `12 in 10000`.
impl fmt::Display for Largest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = format!("{:.3}", self.value);
        let value = value.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{value} in {}", self.sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Random;

    #[test]
    fn the_interval_is_the_textbooks() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95);
        assert_eq!(estimate.mean, 3.0);
        // 2.776 * sqrt(2.5 / 5)
        assert!((estimate.half_width - 1.9632).abs() < 1e-4, "{estimate:?}");
        assert_eq!(estimate.to_string(), "3.0 ± 2.0");
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let estimate = Estimate::of(&[0.1; 10], 0.999);
        assert_eq!((estimate.mean, estimate.half_width), (0.1, 0.0));
        assert_eq!(estimate.to_string(), "0.1 ± 0");
        assert_eq!(Estimate::of(&[126.0; 10], 0.95).to_string(), "126 ± 0");
    }

    #[test]
    fn two_digits_of_the_half_width_are_shown_rounded_up() {
        let of = |mean, half_width| Estimate {
            mean,
            half_width,
            level: 0.95,
            replications: 10,
        };
        assert_eq!(of(3.28149, 0.01101).to_string(), "3.281 ± 0.012");
        assert_eq!(of(1234.5, 56.7).to_string(), "1234 ± 57");
        assert_eq!(of(0.5, 0.000_001).to_string(), "0.5000 ± 0.0001");
    }

    /// Of intervals at 95 %, about 95 of 100 contain the mean of what was drawn.
    #[test]
    fn intervals_cover_the_mean_as_often_as_they_say() {
        let mut random = Random::new(1, 0);
        let trials = 4000;
        let mut covered = [0; 2];
        for _ in 0..trials {
            let values: [f64; 10] = std::array::from_fn(|_| {
                // The sum of several uniform numbers is close to normal.
                (0..12).map(|_| random.unit()).sum::<f64>()
            });
            covered[0] += usize::from(Estimate::of(&values, 0.95).contains(6.0));
            covered[1] += usize::from(Estimate::of(&values, 0.999).contains(6.0));
        }
        let shares = covered.map(|count| count as f64 / f64::from(trials));
        assert!((0.94..0.96).contains(&shares[0]), "{shares:?}");
        assert!((0.9975..1.0).contains(&shares[1]), "{shares:?}");
    }
}
