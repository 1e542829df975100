//! Lock names.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a lock: 1 to [`LEN_MAX`](LockName::LEN_MAX) bytes of UTF-8 without control
/// characters. As in a path, `/` separates the parts of a name. Cheap to clone.
///
/// ```
/// use soloist_api::LockName;
///
/// let name = LockName::new("billing/nightly").unwrap();
/// assert_eq!(name.as_str(), "billing/nightly");
/// assert!(LockName::new("").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName(Arc<str>);

/// Why a string or some bytes are not a valid [`LockName`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockNameError {
    /// The name is empty.
    #[error("the lock name is empty: use 1 to {} bytes", LockName::LEN_MAX)]
    Empty,
    /// The name has this many bytes, more than [`LockName::LEN_MAX`].
    #[error("the lock name has {0} bytes (maximum: {max})", max = LockName::LEN_MAX)]
    TooLong(usize),
    /// The name contains a control character, which could garble a log or a terminal.
    #[error("the lock name contains the control character {0:?}: remove it")]
    Control(char),
    /// The bytes are not valid UTF-8.
    #[error("the lock name is not valid UTF-8")]
    NotUtf8,
}

/// As text. A change of epoch reads and writes many names, so nothing is copied on the way.
impl Serialize for LockName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LockName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = LockName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a lock")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<LockName, E> {
        LockName::new(name).map_err(E::custom)
    }
}

impl LockName {
    /// Maximum length of a name, in bytes.
    pub const LEN_MAX: usize = 256;

    /// Checks `name` and creates a lock name from it.
    pub fn new(name: &str) -> Result<Self, LockNameError> {
        if name.is_empty() {
            return Err(LockNameError::Empty);
        }
        if name.len() > Self::LEN_MAX {
            return Err(LockNameError::TooLong(name.len()));
        }
        // Most names are plain, which is seen much faster.
        let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let control = if is_plain {
            None
        } else {
            name.chars().find(|c| c.is_control())
        };
        match control {
            Some(control) => Err(LockNameError::Control(control)),
            None => Ok(LockName(name.into())),
        }
    }

    /// Creates a lock name from bytes that may not be UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LockNameError> {
        if bytes.len() > Self::LEN_MAX {
            return Err(LockNameError::TooLong(bytes.len()));
        }
        Self::new(str::from_utf8(bytes).map_err(|_| LockNameError::NotUtf8)?)
    }

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_256_bytes_of_text() {
        assert_eq!(LockName::new(""), Err(LockNameError::Empty));
        assert!(LockName::new("x").is_ok());
        assert!(LockName::new("ü/日本").is_ok());
        assert!(LockName::new(&"x".repeat(256)).is_ok());
        let long = LockName::new(&"é".repeat(129)).unwrap_err();
        assert!(long.to_string().contains("258 bytes"), "{long}");
        let control = LockName::new("a\nb").unwrap_err();
        assert!(control.to_string().contains(r"'\n'"), "{control}");
        assert_eq!(LockName::from_bytes(b"\xff"), Err(LockNameError::NotUtf8));
    }
}
