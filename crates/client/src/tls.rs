//! TLS connections to a node.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::target::ApiAddress;
use crate::{Target, TargetError};

/// TLS settings for connections to one node.
pub(crate) struct Tls {
    pub connector: TlsConnector,
    pub name: ServerName<'static>,
}

impl Tls {
    /// Loads the settings for `address`, or returns `None` if it does not use TLS.
    pub(crate) fn new(target: &Target, address: &ApiAddress) -> Result<Option<Self>, TargetError> {
        let ApiAddress::Tcp {
            host, tls: true, ..
        } = address
        else {
            return Ok(None);
        };
        let problem = |problem: String| TargetError::Tls {
            address: address.to_string(),
            problem,
        };
        let ca = target.ca.as_ref();
        let ca = ca.ok_or_else(|| TargetError::NoCa(address.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            let added = roots.add(certificate);
            added.map_err(|error| problem(format!("{}: {error}", ca.display())))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| problem(error.to_string()))?
            .with_root_certificates(roots);
        let config = match &target.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unreadable("a private key", key, error))?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| problem(error.to_string()))?
            }
        };
        let name = ServerName::try_from(host.clone());
        Ok(Some(Tls {
            connector: TlsConnector::from(Arc::new(config)),
            name: name.map_err(|error| problem(error.to_string()))?,
        }))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TargetError> {
    let wrong = |error| unreadable("a certificate", file, error);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file)
        .map_err(wrong)?
        .collect();
    let found = found.map_err(wrong)?;
    if found.is_empty() {
        return Err(wrong(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn unreadable(
    what: &'static str,
    file: &Path,
    error: rustls::pki_types::pem::Error,
) -> TargetError {
    TargetError::File {
        what,
        file: file.to_owned(),
        source: error.to_string().into(),
    }
}
