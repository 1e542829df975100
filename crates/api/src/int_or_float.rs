//! Deserializes optional whole numbers of milliseconds. JSON does not distinguish 5 from 5.0, and
//! some languages write the latter, so both are accepted.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Every whole number up to this one has an exact `f64`.
const FLOAT_MAX: f64 = (1u64 << 53) as f64;

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_option(Milliseconds)
}

struct Milliseconds;

impl<'de> Visitor<'de> for Milliseconds {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of milliseconds, 0 or more")
    }

    fn visit_none<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<u64>, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        Ok(Some(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<u64>, E> {
        let whole = u64::try_from(number);
        whole
            .map(Some)
            .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<u64>, E> {
        if number.fract() != 0.0 || !(0.0..=FLOAT_MAX).contains(&number) {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        Ok(Some(number as u64))
    }
}
