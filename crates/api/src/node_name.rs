//! Node names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A node's name: 1 to 63 characters of `a-z`, `0-9` and `-`, starting with a letter and not ending
/// with `-`. Every name is a valid DNS label, so the node's certificate can contain it as a DNS
/// name.
///
/// ```
/// use soloist_api::NodeName;
///
/// let name: NodeName = "rack-7".parse().unwrap();
/// assert_eq!(name.as_str(), "rack-7");
/// assert!("Rack_7".parse::<NodeName>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// Why a string is not a valid [`NodeName`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeNameError {
    /// The name is empty.
    #[error("the name is empty: use 1 to {} characters", NodeName::LONGEST)]
    Empty,
    /// The name is longer than [`NodeName::LONGEST`].
    #[error(
        "the name {begin:?}... has {bytes} bytes (maximum: {})",
        NodeName::LONGEST
    )]
    TooLong {
        /// The first characters of the name.
        begin: String,
        /// The length of the name, in bytes.
        bytes: usize,
    },
    /// The name contains a character that is not allowed, or not allowed at its position.
    #[error(
        "invalid name {name:?}: {found:?} at position {place} is not allowed; \
         use a-z, 0-9 and '-', starting with a letter and not ending with '-'"
    )]
    Character {
        /// The name.
        name: String,
        /// The first character that is wrong.
        found: char,
        /// Its position in the name, counted from 1.
        place: usize,
    },
}

impl NodeName {
    /// Maximum length of a name.
    pub const LONGEST: usize = 63;

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(name: &str) -> Result<(), NodeNameError> {
    if name.is_empty() {
        return Err(NodeNameError::Empty);
    }
    if name.len() > NodeName::LONGEST {
        return Err(NodeNameError::TooLong {
            begin: name.chars().take(16).collect(),
            bytes: name.len(),
        });
    }
    let wrong = |place: usize, found: char| match found {
        'a'..='z' => false,
        '0'..='9' => place == 0,
        '-' => place == 0 || place + 1 == name.len(),
        _ => true,
    };
    let mut characters = name.chars().enumerate();
    match characters.find(|&(place, found)| wrong(place, found)) {
        Some((place, found)) => Err(NodeNameError::Character {
            name: name.to_owned(),
            found,
            place: place + 1,
        }),
        None => Ok(()),
    }
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(name: &str) -> Result<Self, NodeNameError> {
        check(name)?;
        Ok(NodeName(name.to_owned()))
    }
}

impl TryFrom<String> for NodeName {
    type Error = NodeNameError;

    fn try_from(name: String) -> Result<Self, NodeNameError> {
        check(&name)?;
        Ok(NodeName(name))
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> String {
        name.0
    }
}

impl AsRef<str> for NodeName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustls::pki_types::ServerName;

    use super::*;

    #[test]
    fn says_which_character_is_wrong() {
        let error = |name: &str| name.parse::<NodeName>().unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error("a_b").contains("'_' at position 2"));
        assert!(error("1a").contains("'1' at position 1"));
        assert!(error("-a").contains("'-' at position 1"));
        assert!(error("a-").contains("'-' at position 2"));
        assert!(error("Ä").contains("'Ä' at position 1"));
        assert!(error(&"a".repeat(64)).contains("64 bytes (maximum: 63)"));
        assert!("a".repeat(63).parse::<NodeName>().is_ok());
        assert!("a".parse::<NodeName>().is_ok());
    }

    proptest! {
        #[test]
        fn every_name_is_a_dns_name(text in "[a-z0-9.A-Z-]{1,8}|[a-z][a-z0-9-]{0,63}") {
            if let Ok(name) = NodeName::try_from(text) {
                let server = ServerName::try_from(name.as_str().to_owned()).unwrap();
                prop_assert!(matches!(server, ServerName::DnsName(_)));
            }
        }
    }
}
