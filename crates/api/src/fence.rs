//! Fences: numbers that rise with every entry to a lock.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number that is greater than that of every earlier entry to the same lock. Its high part is the
/// epoch, its low part counts the entries.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fence(u64);

/// How many bits count the entries of an epoch: a hundred thousand a second for twelve hours. An
/// epoch that runs out of them is followed by another.
const COUNT_BITS: u32 = 32;

impl Fence {
    /// The last epoch that has fences.
    pub const EPOCH_MAX: u64 = (1 << (u64::BITS - COUNT_BITS)) - 1;

    /// Before the first entry of an epoch.
    ///
    /// # Panics
    /// If the epoch does not fit its part.
    pub fn first_of(epoch: u64) -> Self {
        assert!(epoch <= Self::EPOCH_MAX, "an epoch's number fits");
        Fence(epoch << COUNT_BITS)
    }

    /// As it is sent and written down.
    pub fn from_number(number: u64) -> Self {
        Fence(number)
    }

    /// As it is sent and written down.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The epoch in which it was given.
    pub fn epoch(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// Its number among the fences of its epoch.
    pub fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    /// How much of its epoch's fences is used up with it, from 0 to 1.
    pub fn used(self) -> f64 {
        self.count() as f64 / (1_u64 << COUNT_BITS) as f64
    }

    /// The fence of the next entry, if the epoch has one left.
    pub fn next(self) -> Option<Self> {
        let next = Fence(self.0.checked_add(1)?);
        (next.epoch() == self.epoch()).then_some(next)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_rise_within_an_epoch_and_across() {
        let first = Fence::first_of(1);
        let next = first.next().unwrap();
        assert!(first < next && next < Fence::first_of(2));
        assert_eq!(next.epoch(), 1);
        let last = Fence::from_number(Fence::first_of(2).number() - 1);
        assert_eq!(last.next(), None);
        assert!(last.used() > 0.99 && first.used() == 0.0);
        assert_eq!((first.count(), next.count()), (0, 1));
        assert_eq!(Fence::from_number(u64::MAX).next(), None);
    }
}
