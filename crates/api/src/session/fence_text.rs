//! Fences as text in JSON.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serializer};

use crate::Fence;

pub(super) fn serialize<S: Serializer>(fence: &Fence, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(fence)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fence, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(from)?;
    text.parse().map_err(D::Error::custom)
}
