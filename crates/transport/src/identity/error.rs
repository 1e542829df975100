//! Errors in certificates and keys.

use std::io;

use soloist_api::{NodeName, NodeNameError};

/// Why an identity cannot be used, or why a peer's is rejected. `file` is the file's path, or names
/// the text given instead of a file.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is too long for a certificate or key.
    #[error(
        "{file} is longer than {limit} bytes, so it is not a certificate or key; check the path"
    )]
    TooLong {
        /// The file.
        file: String,
        /// The maximum length.
        limit: u64,
    },
    /// Other users may read the key.
    #[error("other users can read the private key {file} (mode {mode:03o}): chmod 600 {file}")]
    Exposed {
        /// The key's file.
        file: String,
        /// The file's permissions.
        mode: u32,
    },
    /// The file does not contain what it should.
    #[error("{file} has no {wanted} in PEM (\"-----BEGIN ...\"): {problem}")]
    NotPem {
        /// The file.
        file: String,
        /// What it should contain.
        wanted: &'static str,
        /// The cause.
        problem: String,
    },
    /// A certificate or key cannot be parsed.
    #[error("{file} cannot be used: {problem}")]
    Unusable {
        /// The file.
        file: String,
        /// The cause.
        problem: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "the key {key} does not match the certificate {certificate}: use a key and a certificate \
         that were made together"
    )]
    KeyMismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// The certificate is not valid yet.
    #[error("{file} is valid only from {from}, and it is {now}: check this machine's clock")]
    NotYetValid {
        /// The certificate's file.
        file: String,
        /// Start of its validity.
        from: String,
        /// The current time by this machine's clock.
        now: String,
    },
    /// The certificate has expired.
    #[error(
        "{file} expired at {until}, and it is {now}: issue a new certificate, or check this machine's clock"
    )]
    Expired {
        /// The certificate's file.
        file: String,
        /// End of its validity.
        until: String,
        /// The current time by this machine's clock.
        now: String,
    },
    /// Another CA signed the certificate, or it may not be used for this purpose.
    #[error("the certificate {certificate} is not accepted by the CA {ca}: {problem}")]
    NotAccepted {
        /// The certificate's file.
        certificate: String,
        /// The CA's file.
        ca: String,
        /// The cause.
        problem: String,
    },
    /// The certificate does not name the node it belongs to.
    #[error("{file} must have exactly one DNS name, the node's: {problem}")]
    NoName {
        /// The certificate's file.
        file: String,
        /// What was found instead.
        problem: String,
    },
    /// The certificate is not a node's.
    #[error(
        "{file} is {found}, but a node's certificate is needed: create one with `soloist init \
         --add NAME=HOST:PORT`"
    )]
    NotANode {
        /// The certificate's file.
        file: String,
        /// What it is instead.
        found: String,
    },
    /// The certificate belongs to another node.
    #[error(
        "{file} is the certificate of {found:?}, but this node is {wanted:?}: use this node's \
         certificate"
    )]
    OtherNode {
        /// The certificate's file.
        file: String,
        /// The node it belongs to.
        found: String,
        /// This node.
        wanted: NodeName,
    },
    /// A name that is not allowed in a certificate of this CA.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// A further name is neither an IP address nor a host name.
    #[error(
        "{name:?} cannot be used in a certificate: it is neither an IP address nor a host name"
    )]
    Host {
        /// The name given.
        name: String,
    },
    /// The peer presented no certificate.
    #[error("the peer sent no certificate")]
    NoCertificate,
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A certificate could not be issued.
    #[error("cannot create a certificate: {0}")]
    Issue(#[from] rcgen::Error),
}
