//! Times of single operations, and their statistics.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Times of single operations.
#[derive(Default, Debug)]
pub struct Samples(Vec<Duration>);

/// Statistics in microseconds.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Times {
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Longest.
    pub max_us: f64,
}

impl Samples {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds all times of others.
    pub fn extend(&mut self, other: Samples) {
        self.0.extend(other.0);
    }

    /// Number of times.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their statistics, or `None` if there are none.
    pub fn times(&self) -> Option<Times> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let rank = |share: f64| us(sorted[((sorted.len() - 1) as f64 * share).round() as usize]);
        let last = *sorted.last()?;
        let sum: Duration = sorted.iter().sum();
        Some(Times {
            mean_us: us(sum) / sorted.len() as f64,
            p50_us: rank(0.5),
            p90_us: rank(0.9),
            p99_us: rank(0.99),
            max_us: us(last),
        })
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Samples(times.into_iter().collect())
    }
}
