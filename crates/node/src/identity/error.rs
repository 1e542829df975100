//! What can be wrong with certificates and keys.

use std::io;

use soloist_api::{NodeName, NodeNameError};

/// Why there is no identity, or why a peer's is not accepted. `file` is the file's path, or says
/// which text it was.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is too long to be what it should.
    #[error("{file} is longer than {limit} bytes: it is no certificate or key; check the path")]
    TooLong {
        /// The file.
        file: String,
        /// How long it may be.
        limit: u64,
    },
    /// Others may read the key.
    #[error("{file} holds a private key and others may use it (mode {mode:03o}): chmod 600 {file}")]
    Exposed {
        /// The key's file.
        file: String,
        /// The file's permissions.
        mode: u32,
    },
    /// What should be there is not in the file.
    #[error("{file} has no {wanted} in PEM (\"-----BEGIN ...\"): {problem}")]
    NotPem {
        /// The file.
        file: String,
        /// What should be there.
        wanted: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A certificate or key cannot be understood.
    #[error("{file} cannot be used: {problem}")]
    Unusable {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "the key {key} does not match the certificate {certificate}: use the pair that was made together"
    )]
    KeyMismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// The certificate is not valid yet.
    #[error("{file} is valid only from {from} on, and it is {now}: check this machine's clock")]
    NotYetValid {
        /// The certificate's file.
        file: String,
        /// When it begins to be valid.
        from: String,
        /// The time by this machine's clock.
        now: String,
    },
    /// The certificate is valid no more.
    #[error(
        "{file} expired at {until}, and it is {now}: issue a new certificate, or check this machine's clock"
    )]
    Expired {
        /// The certificate's file.
        file: String,
        /// When it ceased to be valid.
        until: String,
        /// The time by this machine's clock.
        now: String,
    },
    /// Another CA signed the certificate, or it may not be used so.
    #[error("the certificate {certificate} is not accepted by the CA {ca}: {problem}")]
    NotAccepted {
        /// The certificate's file.
        certificate: String,
        /// The CA's file.
        ca: String,
        /// What is wrong.
        problem: String,
    },
    /// It does not say which node it belongs to.
    #[error("{file} must have exactly one DNS name, the node's: {problem}")]
    NoName {
        /// The certificate's file.
        file: String,
        /// What is there instead.
        problem: String,
    },
    /// It is not a node's.
    #[error(
        "{file} is {found}, and a node's is needed: make one with `soloist init --add NAME=HOST:PORT`"
    )]
    NotANode {
        /// The certificate's file.
        file: String,
        /// What it is instead.
        found: String,
    },
    /// It is another node's.
    #[error("{file} is the certificate of {found:?}, and this node is {wanted:?}: use its own")]
    OtherNode {
        /// The certificate's file.
        file: String,
        /// Whose it is.
        found: String,
        /// This node.
        wanted: NodeName,
    },
    /// A name that cannot stand in a certificate of ours.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// A further address or host name cannot stand in a certificate.
    #[error("{name:?} is neither an IP address nor a host name, and cannot stand in a certificate")]
    Host {
        /// The name given.
        name: String,
    },
    /// The peer showed no certificate.
    #[error("the peer showed no certificate")]
    NoCertificate,
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
}
