//! TLS for clients of the API, who are no nodes.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};

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
