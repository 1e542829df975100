//! Failures of a connection before its protocol begins, and the meaning of a failed read or write.

use std::io;
use std::time::Duration;

use crate::hello::{Code, HelloError, Refusal};

/// Longer text from a peer is truncated.
const SHOWN_CHARS_MAX: usize = 1 << 10;

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It could not be opened, or it broke.
    #[error("{0}")]
    Failed(String),
    /// One of the two nodes refused the other.
    #[error("{}", .0.reason)]
    Refused(Refusal),
    /// The peer sent something that no correct peer sends.
    #[error("{0}")]
    Hostile(String),
}

impl From<Refusal> for ConnectionError {
    fn from(refusal: Refusal) -> Self {
        ConnectionError::Refused(refusal)
    }
}

impl ConnectionError {
    /// The error for bytes from `name` that are not a hello or a reply, or not one that this
    /// release supports.
    pub(crate) fn hello(name: &str, error: &HelloError) -> Self {
        match error {
            HelloError::Version { .. } => {
                Refusal::new(Code::Version, format!("{name}: {error}")).into()
            }
            _ => ConnectionError::Hostile(format!("{name} sent {error}")),
        }
    }

    /// Returns what to tell the other side, or `None` if it cannot be told anything.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            ConnectionError::Failed(_) => None,
            ConnectionError::Refused(refusal) => Some(refusal.clone()),
            ConnectionError::Hostile(reason) => Some(Refusal::new(Code::Malformed, reason.clone())),
        }
    }
}

/// The error for a handshake that timed out.
pub fn late(name: &str, limit: Duration) -> ConnectionError {
    ConnectionError::Failed(format!(
        "the handshake with {name} did not complete within {limit:.1?}"
    ))
}

/// The error for a connection that the peer closed without giving a reason.
pub fn closed_by(name: &str) -> ConnectionError {
    ConnectionError::Failed(format!("{name} closed the connection"))
}

/// Classifies a failed read or write. With TLS, it may mean that the peer rejected our certificate.
pub fn broken(name: &str, error: &io::Error) -> ConnectionError {
    // A peer that dies or stops does not say goodbye with TLS. Truncation is not a concern: all
    // messages have a length.
    if error.kind() == io::ErrorKind::UnexpectedEof {
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

/// Classifies a failed TLS handshake: a certificate that one side rejects, bytes that are not TLS,
/// or a connection that broke.
pub(crate) fn tls_failed(reason: String, error: &io::Error) -> ConnectionError {
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

/// Cleans text from a peer for the log: control characters are replaced, and long text is
/// truncated.
pub fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(clean).take(SHOWN_CHARS_MAX).collect()
}
