//! TLS for clients of the API, which are not nodes.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;

use super::pem::{self, Pem};
use super::{IdentityError, accepting, demanding, key_error, provider, trusted};

use crate::sha256::sha256;

/// Creates the TLS configuration of the API. It presents this certificate, which may have any host
/// names. If there is a CA for clients, they must present a certificate issued by it.
pub fn api_server(
    certificate: &Path,
    key: &Path,
    client_ca: Option<&Path>,
) -> Result<ServerConfig, IdentityError> {
    let provider = provider();
    let verifier = match client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(path) => {
            let ca = Pem::read(path)?;
            let verifier = demanding(&provider, &Arc::new(trusted(&ca)?));
            verifier.map_err(|error| pem::unusable(&ca.file, error.to_string()))?
        }
    };
    let (certificate, key) = (Pem::read(certificate)?, Pem::read_key(key)?);
    let chain = certificate.certificates()?;
    let parsed = pem::parse(&chain[0], &certificate.file)?;
    pem::check_dates(&parsed, &certificate.file)?;
    let config = accepting(&provider, verifier, chain, key.key()?);
    let mut config = config.map_err(|error| key_error(error, &certificate, &key))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Maximum length of a subject that is used as a name, so that error messages stay short.
const SUBJECT_BYTES_MAX: usize = 256;

/// Returns the name that identifies a client with a certificate. It is the subject, which stays the
/// same when a certificate is renewed, or the certificate's hash if the subject is empty or too
/// long.
pub fn client_name(certificate: &CertificateDer<'_>) -> String {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let subject = parsed.map(|(_, certificate)| certificate.subject().to_string());
    match subject {
        Ok(subject) if (1..=SUBJECT_BYTES_MAX).contains(&subject.len()) => subject,
        _ => {
            let hash = sha256(certificate);
            hash.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::super::Authority;
    use super::*;

    #[test]
    fn a_client_keeps_its_name_when_its_certificate_is_renewed() {
        let authority = Authority::new("test").unwrap();
        let name = |client: &str| {
            let issued = authority.issue(&client.parse().unwrap(), &[]).unwrap();
            let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes());
            client_name(&certificate.unwrap())
        };
        assert_eq!(name("alice"), "CN=alice");
        assert_eq!(name("alice"), name("alice"));
        assert_ne!(name("alice"), name("bob"));
        let garbled = client_name(&CertificateDer::from(vec![1, 2, 3]));
        assert_eq!(garbled.len(), 64, "a hash has 32 bytes");
    }
}
