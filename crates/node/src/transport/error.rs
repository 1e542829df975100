//! How a connection fails before its protocol begins, and what a failed read or write means.

use std::io;
use std::time::Duration;

use super::hello::{Code, HelloError, Refusal};

/// A longer text of a peer is cut.
const SHOWN_CHARS_MAX: usize = 1 << 10;

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It could not be made, or it broke.
    #[error("{0}")]
    Failed(String),
    /// One of the two nodes refused the other.
    #[error("{}", .0.reason)]
    Refused(Refusal),
    /// Something came over it that no correct peer sends.
    #[error("{0}")]
    Hostile(String),
}

impl From<Refusal> for ConnectionError {
    fn from(refusal: Refusal) -> Self {
        ConnectionError::Refused(refusal)
    }
}

impl ConnectionError {
    /// What `name` sent is not a hello or a reply, or not one that this release can use.
    pub(super) fn hello(name: &str, error: &HelloError) -> Self {
        match error {
            HelloError::Version { .. } => {
                Refusal::new(Code::Version, format!("{name}: {error}")).into()
            }
            _ => ConnectionError::Hostile(format!("{name} sent {error}")),
        }
    }

    /// What the other side is told, if it can be told anything.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            ConnectionError::Failed(_) => None,
            ConnectionError::Refused(refusal) => Some(refusal.clone()),
            ConnectionError::Hostile(reason) => Some(Refusal::new(Code::Malformed, reason.clone())),
        }
    }
}

/// A handshake that took too long.
pub(crate) fn late(name: &str, limit: Duration) -> ConnectionError {
    let limit = limit.as_secs_f64();
    ConnectionError::Failed(format!(
        "the handshake with {name} was not done after {limit} s"
    ))
}

/// The peer closed the connection without saying why.
pub(crate) fn closed_by(name: &str) -> ConnectionError {
    ConnectionError::Failed(format!("{name} closed the connection"))
}

/// What a failed read or write means. With TLS, it may be the peer's verdict on our certificate.
pub(crate) fn broken(name: &str, error: &io::Error) -> ConnectionError {
    if error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none() {
        return closed_by(name);
    }
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::AlertReceived(_)) => {
            let reason = format!("{name} refused this node's certificate: {error}");
            Refusal::new(Code::Name, reason).into()
        }
        Some(error) => ConnectionError::Hostile(format!("TLS with {name} broke: {error}")),
        None => ConnectionError::Failed(format!("the connection with {name} broke: {error}")),
    }
}

/// Tells a certificate that one side does not accept from bytes that are not TLS, and both from a
/// connection that just broke.
pub(super) fn tls_failed(reason: String, error: &io::Error) -> ConnectionError {
    use rustls::Error;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        None => ConnectionError::Failed(reason),
        Some(
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord
            | Error::DecryptError,
        ) => ConnectionError::Hostile(reason),
        Some(_) => Refusal::new(Code::Name, reason).into(),
    }
}

/// A peer's own text, as far as a log can take it.
pub(crate) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(clean).take(SHOWN_CHARS_MAX).collect()
}
