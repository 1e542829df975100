//! TLS for clients of the API, who are no nodes.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use sha2::{Digest, Sha256};

use super::pem::{self, Pem};
use super::{IdentityError, key_error, provider, trusted};

/// TLS 1.3 with this certificate and key. If there is a CA for clients, they must show a certificate
/// of it.
pub(crate) fn api_server(
    certificate: &Path,
    key: &Path,
    client_ca: Option<&Path>,
) -> Result<ServerConfig, IdentityError> {
    let provider = provider();
    let certificate = Pem::read(certificate)?;
    let key = Pem::read_key(key)?;
    let chain = certificate.certificates()?;
    pem::check_dates(
        &pem::parse(&chain[0], &certificate.file)?,
        &certificate.file,
    )?;
    let clients = match client_ca {
        None => Arc::new(NoClientAuth) as Arc<_>,
        Some(path) => {
            let ca = Pem::read(path)?;
            let roots = Arc::new(trusted(&ca)?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            verifier.map_err(|error| pem::unusable(&ca.file, error.to_string()))?
        }
    };
    let private = key.key()?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map(|builder| builder.with_client_cert_verifier(clients))
        .and_then(|builder| builder.with_single_cert(chain, private));
    let mut config = config.map_err(|error| key_error(error, &certificate, &key))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Every connection is verified anew: a resumed session would outlive the certificate.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The name by which clients with certificates are told apart: the subject, which stays when a
/// certificate is renewed, or, without one, the certificate's hash.
pub(crate) fn client_name(certificate: &CertificateDer<'_>) -> String {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let subject = parsed.map(|(_, certificate)| certificate.subject().to_string());
    match subject {
        Ok(subject) if !subject.is_empty() => subject.chars().take(SUBJECT_CHARS_MAX).collect(),
        _ => {
            let hash = Sha256::digest(certificate);
            hash.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}

/// Longer subjects are cut: they stand in errors.
const SUBJECT_CHARS_MAX: usize = 256;
