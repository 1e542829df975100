//! PEM files with certificates and keys, and the checks that are possible before TLS starts.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{ASN1Time, FromDer, GeneralName, X509Certificate};

use super::IdentityError;
use soloist_api::NodeName;

/// Maximum length of a file in bytes. Real certificate chains and keys are much shorter.
const LONGEST: u64 = 1 << 20;

/// A PEM text, and its name in errors.
pub(super) struct Pem {
    pub(super) file: String,
    text: Vec<u8>,
}

impl Pem {
    pub(super) fn given(file: &str, text: &str) -> Self {
        Pem {
            file: file.to_owned(),
            text: text.as_bytes().to_vec(),
        }
    }

    pub(super) fn read(path: &Path) -> Result<Self, IdentityError> {
        Self::read_open(path, |_, _| Ok(()))
    }

    /// Reads a key. Like ssh, rejects one that other users may read: it would not stay secret.
    pub(super) fn read_key(path: &Path) -> Result<Self, IdentityError> {
        Self::read_open(path, |file, name| {
            let source = |source| IdentityError::Unreadable {
                file: name.to_owned(),
                source,
            };
            let mode = file.metadata().map_err(source)?.mode() & 0o777;
            if mode & 0o077 != 0 {
                let file = name.to_owned();
                return Err(IdentityError::Exposed { file, mode });
            }
            Ok(())
        })
    }

    fn read_open(
        path: &Path,
        check: impl FnOnce(&File, &str) -> Result<(), IdentityError>,
    ) -> Result<Self, IdentityError> {
        let file = path.display().to_string();
        let unreadable = |source| IdentityError::Unreadable {
            file: file.clone(),
            source,
        };
        let open = File::open(path).map_err(unreadable)?;
        check(&open, &file)?;
        let mut text = Vec::new();
        let length = open.take(LONGEST + 1).read_to_end(&mut text);
        if length.map_err(unreadable)? as u64 > LONGEST {
            let limit = LONGEST;
            return Err(IdentityError::TooLong { file, limit });
        }
        Ok(Pem { file, text })
    }

    /// Returns all certificates in the text, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        let found = found.map_err(|error| self.not_pem("certificate", error.to_string()))?;
        if found.is_empty() {
            return Err(self.not_pem("certificate", "none found".to_owned()));
        }
        Ok(found)
    }

    /// Returns the text of only the first certificate: the file may contain more, even a key.
    pub(super) fn first_certificate(&self) -> Result<String, IdentityError> {
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
        const END: &str = "-----END CERTIFICATE-----";
        let text = String::from_utf8_lossy(&self.text);
        let part = text
            .split_once(BEGIN)
            .and_then(|(_, rest)| rest.split_once(END));
        match part {
            Some((body, _)) => Ok(format!("{BEGIN}{body}{END}\n")),
            None => Err(self.not_pem("certificate", "none found".to_owned())),
        }
    }

    /// Returns the private key in the text.
    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        PrivateKeyDer::from_pem_slice(&self.text)
            .map_err(|error| self.not_pem("private key", error.to_string()))
    }

    fn not_pem(&self, wanted: &'static str, problem: String) -> IdentityError {
        IdentityError::NotPem {
            file: self.file.clone(),
            wanted,
            problem,
        }
    }
}

/// Parses a certificate's fields. Verifies nothing.
pub(super) fn parse<'a>(
    certificate: &'a CertificateDer<'_>,
    file: &str,
) -> Result<X509Certificate<'a>, IdentityError> {
    match X509Certificate::from_der(certificate) {
        Ok(([], parsed)) => Ok(parsed),
        Ok((rest, _)) => Err(unusable(
            file,
            format!("{} bytes follow the certificate", rest.len()),
        )),
        Err(error) => Err(unusable(file, format!("not a certificate ({error})"))),
    }
}

pub(super) fn unusable(file: &str, problem: String) -> IdentityError {
    let file = file.to_owned();
    IdentityError::Unusable { file, problem }
}

/// Rejects a certificate that is not valid now.
pub(super) fn check_dates(
    certificate: &X509Certificate<'_>,
    file: &str,
) -> Result<(), IdentityError> {
    let validity = certificate.validity();
    let now = ASN1Time::now();
    let file = file.to_owned();
    if now < validity.not_before {
        let (from, now) = (moment(validity.not_before), moment(now));
        return Err(IdentityError::NotYetValid { file, from, now });
    }
    if now > validity.not_after {
        let (until, now) = (moment(validity.not_after), moment(now));
        return Err(IdentityError::Expired { file, until, now });
    }
    Ok(())
}

fn moment(time: ASN1Time) -> String {
    let time = time.to_datetime();
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// Returns the node that a certificate belongs to: its only DNS name.
///
/// A certificate with several names is rejected: it would be ambiguous which node it belongs to.
pub(super) fn node_name(
    certificate: &X509Certificate<'_>,
    file: &str,
) -> Result<NodeName, IdentityError> {
    let no_name = |problem: String| IdentityError::NoName {
        file: file.to_owned(),
        problem,
    };
    let names = certificate
        .subject_alternative_name()
        .map_err(|error| no_name(error.to_string()))?;
    let Some(names) = names else {
        return Err(no_name("it has no subject alternative name".to_owned()));
    };
    let mut dns = names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        });
    match (dns.next(), dns.next()) {
        (None, _) => Err(no_name("it has none".to_owned())),
        (Some(name), None) => name.parse().map_err(|error| no_name(format!("{error}"))),
        (Some(_), Some(_)) => {
            let count = 2 + dns.count();
            Err(no_name(format!("it has {count}")))
        }
    }
}
