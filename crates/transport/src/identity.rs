//! Identity of a node: TLS 1.3 with certificates on both sides.
//!
//! The cluster has its own CA ([`Authority`]). It issues each node a certificate with one DNS name,
//! the node's, and its [`Role`]. The dialling node verifies the peer by name; the accepting node
//! requires a certificate. Both take the peer's name from its certificate, and reject one that is
//! not a node's ([`Identity::peer_name`]). Addresses are not checked: a node may move.

mod authority;
mod clients;
mod error;
mod pem;
mod role;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};

pub use authority::{Authority, Issued, Validity};
pub use clients::{api_server, client_name};
pub use error::IdentityError;
pub use role::Role;

use pem::Pem;
use soloist_api::NodeName;

/// A node's certificate and key, and the CA that it trusts, ready for TLS.
#[derive(Clone)]
pub struct Identity {
    name: NodeName,
    /// When the certificate expires, in seconds since 1970.
    expires_unix_s: u64,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads the CA's certificate, the node's certificate (with any intermediate ones) and its key,
    /// all PEM. Rejects what could not work later.
    pub fn load(ca: &Path, certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        Self::read(
            &Pem::read(ca)?,
            &Pem::read(certificate)?,
            &Pem::read_key(key)?,
        )
    }

    /// Like [`load`](Self::load), from PEM texts.
    pub fn from_pem(ca: &str, certificate: &str, key: &str) -> Result<Self, IdentityError> {
        Self::read(
            &Pem::given("the CA's certificate", ca),
            &Pem::given("the node's certificate", certificate),
            &Pem::given("the node's key", key),
        )
    }

    fn read(ca: &Pem, certificate: &Pem, key: &Pem) -> Result<Self, IdentityError> {
        let provider = provider();
        let roots = Arc::new(trusted(ca)?);
        let chain = certificate.certificates()?;
        let parsed = pem::parse(&chain[0], &certificate.file)?;
        pem::check_dates(&parsed, &certificate.file)?;
        let name = pem::node_name(&parsed, &certificate.file)?;
        let expires = parsed.validity().not_after.timestamp();
        role::check_node(&parsed, &certificate.file)?;
        check_signed(&provider, &roots, &chain, &name).map_err(|problem| {
            IdentityError::NotAccepted {
                certificate: certificate.file.clone(),
                ca: ca.file.clone(),
                problem: problem.to_string(),
            }
        })?;
        let private = key.key()?;
        let server = accepting(
            &provider,
            demanding(&provider, &roots)?,
            chain.clone(),
            private.clone_key(),
        )
        .map_err(|error| key_error(error, certificate, key))?;
        let client = opening(&provider, &roots, chain, private)
            .map_err(|error| key_error(error, certificate, key))?;
        Ok(Identity {
            name,
            expires_unix_s: u64::try_from(expires).unwrap_or_default(),
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }

    /// Returns the node's name from its certificate.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns when the certificate expires, in seconds since 1970.
    pub fn expires_unix_s(&self) -> u64 {
        self.expires_unix_s
    }

    /// Returns the configuration for accepting links. It requires a certificate issued by the CA.
    #[doc(hidden)]
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Returns the configuration for opening links. It presents the certificate. Use the peer's
    /// node name as the server name.
    #[doc(hidden)]
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// Returns the name of the node that presented these certificates. TLS has verified them; only
    /// the first one is the peer's. It must be a node's: see [`Role`].
    #[doc(hidden)]
    pub fn peer_name(certificates: &[CertificateDer<'_>]) -> Result<String, IdentityError> {
        let first = certificates.first().ok_or(IdentityError::NoCertificate)?;
        let file = "the peer's certificate";
        let parsed = pem::parse(first, file)?;
        role::check_node(&parsed, file)?;
        Ok(pem::node_name(&parsed, file)?.into())
    }
}

/// Returns the cryptography provider. It is passed explicitly everywhere, because a program that
/// embeds a node may have another default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns the CA's certificates as the only trusted ones. A bundle may include an expired
/// certificate if another one is valid.
fn trusted(ca: &Pem) -> Result<RootCertStore, IdentityError> {
    let mut roots = RootCertStore::empty();
    let mut expired = None;
    for certificate in ca.certificates()? {
        match pem::check_dates(&pem::parse(&certificate, &ca.file)?, &ca.file) {
            Ok(()) => {}
            Err(error @ IdentityError::Expired { .. }) => {
                expired = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        }
        roots
            .add(certificate)
            .map_err(|error| pem::unusable(&ca.file, error.to_string()))?;
    }
    match (expired, roots.is_empty()) {
        (Some(error), true) => Err(error),
        (Some(error), false) => {
            tracing::warn!("a CA is no longer trusted: {error}; remove it from the file");
            Ok(roots)
        }
        (None, _) => Ok(roots),
    }
}

/// Checks that the CA signed the certificate. Peers would reject it otherwise; this finds out at
/// startup.
fn check_signed(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: &[CertificateDer<'static>],
    name: &NodeName,
) -> Result<(), rustls::Error> {
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
    verifier
        .verify_server_cert(
            &chain[0],
            &chain[1..],
            &server_name(name),
            &[],
            UnixTime::now(),
        )
        .map(|_| ())
}

fn server_name(name: &NodeName) -> ServerName<'static> {
    ServerName::try_from(name.to_string()).expect("a node's name is a DNS label")
}

fn demanding(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))
}

fn accepting(
    provider: &Arc<CryptoProvider>,
    verifier: Arc<dyn ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    // Verify every link afresh: a resumed session would outlive the certificate.
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn opening(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(Arc::clone(roots))
        .with_client_auth_cert(chain, key)?;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

fn key_error(error: rustls::Error, certificate: &Pem, key: &Pem) -> IdentityError {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            IdentityError::KeyMismatch {
                certificate: certificate.file.clone(),
                key: key.file.clone(),
            }
        }
        rustls::Error::General(problem) => pem::unusable(&key.file, problem),
        other => IdentityError::Tls(other),
    }
}
