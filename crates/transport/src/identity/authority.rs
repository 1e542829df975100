//! The cluster's own CA, which issues the nodes' certificates.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::pki_types::DnsName;

use super::pem::{self, Pem};
use super::{IdentityError, Role};
use soloist_api::NodeName;

/// Validity period of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validity {
    /// Start of the period.
    pub from: SystemTime,
    /// End of the period.
    pub until: SystemTime,
}

impl Validity {
    /// From yesterday, because the machines' clocks may differ, until this many days from now.
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        let day = Duration::from_secs(24 * 60 * 60);
        Validity {
            from: now - day,
            until: now + day * days,
        }
    }
}

impl Default for Validity {
    /// Ten years: a cluster must not stop because nobody renewed its certificates.
    fn default() -> Self {
        Self::days(3650)
    }
}

/// A certificate and its private key, both PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The private key: a secret.
    pub key: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// The CA of one cluster. Anybody with its key can issue certificates for nodes: keep the key off
/// the machines that run nodes.
///
/// ```
/// use soloist_transport::identity::{Authority, Identity};
///
/// let authority = Authority::new("orchestra").unwrap();
/// let issued = authority.issue(&"a".parse().unwrap(), &["10.0.0.1"]).unwrap();
/// let identity =
///     Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key).unwrap();
/// assert_eq!(identity.name(), "a");
/// ```
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a CA with a new key. The cluster's name follows the rules for a node's name.
    pub fn new(cluster_name: &str) -> Result<Self, IdentityError> {
        Self::valid(cluster_name, Validity::default())
    }

    /// Like [`new`](Self::new), with a validity period.
    pub fn valid(cluster_name: &str, validity: Validity) -> Result<Self, IdentityError> {
        let cluster: NodeName = cluster_name.parse()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&format!("Soloist CA of {cluster}"));
        // It signs nodes, never another CA.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = validity.from.into();
        params.not_after = validity.until.into();
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Authority {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// Loads an existing CA, to issue more certificates.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        Self::read(&Pem::read(certificate)?, &Pem::read_key(key)?)
    }

    /// Like [`load`](Self::load), from PEM texts.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        Self::read(
            &Pem::given("the CA's certificate", certificate),
            &Pem::given("the CA's key", key),
        )
    }

    fn read(certificate: &Pem, key: &Pem) -> Result<Self, IdentityError> {
        let ders = certificate.certificates()?;
        let parsed = pem::parse(&ders[0], &certificate.file)?;
        pem::check_dates(&parsed, &certificate.file)?;
        if !parsed.is_ca() {
            let problem = "not the certificate of a CA".to_owned();
            return Err(pem::unusable(&certificate.file, problem));
        }
        let pair = KeyPair::try_from(&key.key()?)
            .map_err(|error| pem::unusable(&key.file, error.to_string()))?;
        if pair.subject_public_key_info() != parsed.public_key().raw {
            return Err(IdentityError::KeyMismatch {
                certificate: certificate.file.clone(),
                key: key.file.clone(),
            });
        }
        Ok(Authority {
            certificate: certificate.first_certificate()?,
            issuer: Issuer::from_ca_cert_der(&ders[0], pair)?,
        })
    }

    /// Returns the CA's certificate, which all nodes have.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the CA's private key: a secret.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate and key for a node.
    ///
    /// `also` are further IP addresses and host names for which it is valid, for clients of the
    /// node's API. With a host name it serves only the API: a certificate for links between nodes
    /// has exactly one DNS name, the node's.
    pub fn issue(&self, name: &NodeName, also: &[&str]) -> Result<Issued, IdentityError> {
        self.issue_valid(name, also, Validity::default())
    }

    /// Issues a certificate and key for this role. `also` is as in [`issue`](Self::issue).
    pub fn issue_as(
        &self,
        role: Role,
        name: &NodeName,
        also: &[&str],
    ) -> Result<Issued, IdentityError> {
        self.sign(role, name, also, Validity::default())
    }

    /// Like [`issue`](Self::issue), with a validity period.
    pub fn issue_valid(
        &self,
        name: &NodeName,
        also: &[&str],
        validity: Validity,
    ) -> Result<Issued, IdentityError> {
        self.sign(Role::Node, name, also, validity)
    }

    fn sign(
        &self,
        role: Role,
        name: &NodeName,
        also: &[&str],
        validity: Validity,
    ) -> Result<Issued, IdentityError> {
        let mut params = CertificateParams::new([name.to_string()])?;
        let uri = role.uri().try_into()?;
        params.subject_alt_names.push(SanType::URI(uri));
        for name in also {
            params.subject_alt_names.push(alternative(name)?);
        }
        params.distinguished_name = common_name(name.as_str());
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match role {
            // A node both accepts and opens connections.
            Role::Node => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            Role::ApiServer => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Role::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.not_before = validity.from.into();
        params.not_after = validity.until.into();
        let key = KeyPair::generate()?;
        Ok(Issued {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn alternative(name: &str) -> Result<SanType, IdentityError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let host = || IdentityError::Host {
        name: name.to_owned(),
    };
    DnsName::try_from(name).map_err(|_| host())?;
    Ok(SanType::DnsName(name.try_into().map_err(|_| host())?))
}
