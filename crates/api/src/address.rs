//! Network addresses of nodes and of their APIs.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A host and a port: `10.0.0.1:7401`, `[fd00::1]:7401` or `db.example.org:7401`. Host names are
/// resolved on every use.
///
/// ```
/// use soloist_api::Address;
///
/// let address: Address = "[::1]:7401".parse().unwrap();
/// assert!(address.is_loopback());
/// assert_eq!(address.to_string(), "[::1]:7401");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    /// The IP address or host name.
    pub host: Host,
    /// The TCP port. Port 0 lets the system choose one: it is valid for listening but not for
    /// dialling, and configuration files reject it.
    pub port: u16,
}

/// The host part of an [`Address`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Host {
    /// An IP address.
    Ip(IpAddr),
    /// A host name in lower case.
    Name(String),
}

/// Why a string is not a valid [`Address`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// The port is missing.
    #[error("invalid address {0:?}: no port; use HOST:PORT, such as 10.0.0.1:7401")]
    NoPort(String),
    /// The port is not a number from 0 to 65535.
    #[error("invalid port {port:?} in address {address:?}: use a number from 1 to 65535")]
    Port {
        /// The whole address.
        address: String,
        /// The invalid port.
        port: String,
    },
    /// The host is an IPv6 address without brackets.
    #[error("invalid address {0:?}: put an IPv6 address in brackets, such as [::1]:7401")]
    NoBrackets(String),
    /// The host is neither an IP address nor a host name.
    #[error("invalid host {host:?} in address {address:?}: use an IP address or a host name")]
    Host {
        /// The whole address.
        address: String,
        /// The invalid host.
        host: String,
    },
}

impl Address {
    /// Returns whether the address is reachable only from this machine. The only host name that
    /// counts is `localhost`.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }

    /// Returns whether the address stands for every address of this machine (`0.0.0.0`, `[::]`).
    pub fn is_unspecified(&self) -> bool {
        matches!(self.host, Host::Ip(ip) if ip.to_canonical().is_unspecified())
    }
}

fn host(address: &str, text: &str) -> Result<Host, AddressError> {
    let wrong = || AddressError::Host {
        address: shown(address),
        host: shown(text),
    };
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or_else(wrong)?;
        let ip: std::net::Ipv6Addr = inner.parse().map_err(|_| wrong())?;
        return Ok(Host::Ip(ip.into()));
    }
    if text.contains(':') {
        return Err(AddressError::NoBrackets(shown(address)));
    }
    if let Ok(ip) = text.parse::<std::net::Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    if !is_host_name(text) {
        return Err(wrong());
    }
    Ok(Host::Name(text.to_ascii_lowercase()))
}

/// Returns whether `text` is a host name that a certificate can contain: labels of letters, digits,
/// `_` and `-`, separated by dots. No label starts or ends with `-`, and the last one is not a
/// number.
fn is_host_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 253 && !is_number && name.split('.').all(is_label)
}

/// Truncates `text` for an error message.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let split = text.rsplit_once(':').filter(|_| !text.ends_with(']'));
        let Some((before, port)) = split else {
            return Err(AddressError::NoPort(shown(text)));
        };
        let host = host(text, before)?;
        // `u16::from_str` accepts a leading `+`.
        let number = port.parse().ok();
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        match number.filter(|_| digits) {
            Some(port) => Ok(Address { host, port }),
            None => Err(AddressError::Port {
                address: shown(text),
                port: shown(port),
            }),
        }
    }
}

impl From<std::net::SocketAddr> for Address {
    fn from(address: std::net::SocketAddr) -> Self {
        Address {
            host: Host::Ip(address.ip()),
            port: address.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> AddressError {
        text.parse::<Address>().unwrap_err()
    }

    #[test]
    fn reads_numbers_and_names() {
        for text in [
            "10.0.0.1:7401",
            "[fd00::1]:1",
            "db-1.example.org:65535",
            "a_b:80",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("DB:80".parse::<Address>().unwrap().to_string(), "db:80");
        assert_eq!(
            "[0::1]:80".parse::<Address>().unwrap().to_string(),
            "[::1]:80"
        );
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for text in ["", "10.0.0.1", "[::1]", "db"] {
            assert_eq!(error(text), AddressError::NoPort(text.to_owned()));
        }
        for text in ["db:", "db:65536", "db:-1", "db:+1", "db:http", "db: 1"] {
            assert!(matches!(error(text), AddressError::Port { .. }), "{text}");
        }
        for text in ["::1:7401", "fd00::1:7401"] {
            assert_eq!(error(text), AddressError::NoBrackets(text.to_owned()));
        }
        for text in [
            "10.0.0.300:1",
            "a b:1",
            ":1",
            "[::1:1",
            "[db]:1",
            "-a:1",
            "http//a:1",
        ] {
            assert!(matches!(error(text), AddressError::Host { .. }), "{text}");
        }
    }

    #[test]
    fn knows_its_own_machine() {
        let loopback = |text: &str| text.parse::<Address>().unwrap().is_loopback();
        for text in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "LocalHost:1",
        ] {
            assert!(loopback(text), "{text}");
        }
        for text in [
            "0.0.0.0:1",
            "[::]:1",
            "10.0.0.1:1",
            "localhost.example.org:1",
        ] {
            assert!(!loopback(text), "{text}");
        }
        assert!(
            "[::ffff:0.0.0.0]:1"
                .parse::<Address>()
                .unwrap()
                .is_unspecified()
        );
    }

    proptest! {
        #[test]
        fn host_names_are_those_that_certificates_allow(text in "[a-zA-Z0-9._-]{0,70}|([a-z0-9-]{1,4}\\.){0,4}[a-z0-9]{0,3}\\.?") {
            let of_certificates = rustls::pki_types::DnsName::try_from(text.as_str()).is_ok();
            prop_assert_eq!(is_host_name(&text), of_certificates, "{}", text);
        }

        #[test]
        fn parse_and_display_round_trip(text in "\\PC{0,20}:[0-9]{1,5}|[0-9a-f:.\\[\\]]{0,20}:[0-9]{1,3}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
            }
        }
    }
}
