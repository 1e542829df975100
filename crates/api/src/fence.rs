//! Fencing tokens: numbers that increase with every entry to a lock.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// A fencing token, here called a fence: a number that is greater than the fence of every earlier
/// entry to the same lock. The high bits are the epoch, the low bits count the entries within it.
///
/// As text, a fence is a decimal number. In JSON it is that text, because many readers round
/// numbers above 2^53. A JSON number is read too, since earlier versions wrote one.
///
/// ```
/// use soloist_api::Fence;
///
/// let fence: Fence = "34".parse().unwrap();
/// assert!(fence > Fence::from_number(33));
/// assert_eq!(u64::from(fence), 34);
/// assert_eq!(fence.to_string(), "34");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
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

impl From<Fence> for u64 {
    fn from(fence: Fence) -> u64 {
        fence.0
    }
}

/// Text that is not a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("use a whole number from 0 to {}", u64::MAX)]
pub struct FenceError;

impl FromStr for Fence {
    type Err = FenceError;

    fn from_str(text: &str) -> Result<Self, FenceError> {
        // Unlike `u64::from_str`, this accepts no sign.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        number.map(Fence).ok_or(FenceError)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Fence {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            to.collect_str(self)
        } else {
            to.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Fence {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            from.deserialize_any(TextOrNumber)
        } else {
            from.deserialize_u64(TextOrNumber)
        }
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Fence;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fence as text, such as \"34\"")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Fence, E> {
        Ok(Fence(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Fence, E> {
        let wrong = |_| E::invalid_value(Unexpected::Str(text), &self);
        text.parse().map_err(wrong)
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

    #[test]
    fn only_what_is_printed_is_parsed() {
        for number in [0, 1, 4_294_967_297, u64::MAX] {
            let fence = Fence::from_number(number);
            assert_eq!(fence.to_string().parse(), Ok(fence));
        }
        for text in ["", "-1", "+1", "1.5", "abc", "18446744073709551616", " 1"] {
            assert_eq!(text.parse::<Fence>(), Err(FenceError), "{text:?}");
        }
    }

    #[test]
    fn json_has_text_and_numbers_are_read_too() {
        let highest = Fence::from_number(u64::MAX);
        let json = serde_json::to_string(&highest).unwrap();
        assert_eq!(json, r#""18446744073709551615""#);
        for json in [&json, "18446744073709551615"] {
            assert_eq!(serde_json::from_str::<Fence>(json).unwrap(), highest);
        }
        for bad in [
            r#""""#, r#""-1""#, r#""5.0""#, "-1", "5.0", "1e3", "null", "[5]",
        ] {
            let error = serde_json::from_str::<Fence>(bad).unwrap_err();
            assert!(
                error.to_string().contains("a fence as text"),
                "{bad}: {error}"
            );
        }
    }
}
