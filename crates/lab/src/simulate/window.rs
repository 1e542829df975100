//! Which entries of a run are measured.

use std::ops::Sub;

use serde::Serialize;

use super::Time;

/// The measured part of a run: all of it, or a number of entries after a warm-up. In the latter
/// case the same number of entries is also measured after twice the warm-up, to check it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    warm_up: Option<u64>,
    entries: u64,
}

/// Totals up to some entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sums {
    /// Messages sent.
    pub messages: u64,
    /// Response times, in ticks.
    pub response: u128,
}

/// Means of the window that follows twice the warm-up.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Doubled {
    /// The warm-up, not doubled, in entries.
    pub warm_up: u64,
    /// Messages per entry.
    pub messages_per_entry: f64,
    /// Mean response time, in message delays.
    pub response_time_mean: f64,
}

impl Window {
    /// A window of `entries` after a warm-up, or the whole run.
    pub(super) fn new(warm_up: Option<u64>, entries: u64) -> Self {
        Window { warm_up, entries }
    }

    /// Number of measured entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// The entry after which the measurement starts, if that is not the start of the run.
    pub(super) fn begins(&self) -> Option<u64> {
        self.warm_up
    }

    /// The last measured entry, if the run goes on after it.
    pub(super) fn ends(&self) -> Option<u64> {
        Some(self.warm_up?.saturating_add(self.entries))
    }

    /// The entry that ends twice the warm-up.
    pub(super) fn doubled_begins(&self) -> Option<u64> {
        Some(self.warm_up?.saturating_mul(2))
    }

    /// The last entry of the window that follows twice the warm-up.
    pub(super) fn doubled_ends(&self) -> Option<u64> {
        Some(self.doubled_begins()?.saturating_add(self.entries))
    }

    /// The last entry that matters. The load continues until then.
    pub(super) fn last_entry(&self) -> u64 {
        self.doubled_ends().unwrap_or(self.entries)
    }

    /// The next of these entries after this one, or `u64::MAX`.
    pub(super) fn next_mark(&self, entry: u64) -> u64 {
        let marks = [
            self.begins(),
            self.ends(),
            self.doubled_begins(),
            self.doubled_ends(),
        ];
        let later = marks.into_iter().flatten().filter(|mark| *mark > entry);
        later.min().unwrap_or(u64::MAX)
    }

    /// The means of the window that follows twice the warm-up.
    pub(super) fn doubled(&self, sums: Sums) -> Option<Doubled> {
        let entries = self.entries as f64;
        let one_tick = Time::TICK.delays();
        Some(Doubled {
            warm_up: self.warm_up?,
            messages_per_entry: sums.messages as f64 / entries,
            response_time_mean: sums.response as f64 / entries * one_tick,
        })
    }
}

impl Sub for Sums {
    type Output = Sums;

    fn sub(self, earlier: Sums) -> Sums {
        Sums {
            messages: self.messages - earlier.messages,
            response: self.response - earlier.response,
        }
    }
}
