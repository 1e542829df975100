//! Fencing tokens: numbers that increase with every entry to a lock.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fencing token, here called a fence: a number that is greater than the fence of every earlier
/// entry to the same lock. The high bits are the epoch, the low bits count the entries within it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fence(u64);

/// Number of bits that count the entries of an epoch, enough for 100,000 entries per second for
/// almost twelve hours. When they run out, a new epoch follows.
const COUNT_BITS: u32 = 32;

impl Fence {
    /// The highest epoch that fits a fence.
    pub const EPOCH_MAX: u64 = (1 << (u64::BITS - COUNT_BITS)) - 1;

    /// The lowest fence of an epoch, before its first entry.
    ///
    /// # Panics
    /// If `epoch` is greater than [`EPOCH_MAX`](Fence::EPOCH_MAX).
    pub fn first_of(epoch: u64) -> Self {
        assert!(
            epoch <= Self::EPOCH_MAX,
            "epoch {epoch} does not fit a fence"
        );
        Fence(epoch << COUNT_BITS)
    }

    /// Creates a fence from the number that [`number`](Fence::number) returned.
    pub fn from_number(number: u64) -> Self {
        Fence(number)
    }

    /// The fence as a number, for messages, files and other systems.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The epoch of the entry.
    pub fn epoch(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// The number of the entry within its epoch.
    pub fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    /// The fraction of the epoch's fences that is used up, from 0 to 1.
    pub fn used(self) -> f64 {
        self.count() as f64 / (1_u64 << COUNT_BITS) as f64
    }

    /// The fence of the next entry, or `None` if the epoch has no more fences.
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
