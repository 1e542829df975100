//! TLS handshakes, step by step and without sockets.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, ServerConfig,
    ServerConnection,
};
use soloist_transport::identity::{Authority, Identity, Validity, api_server};

use crate::{identity, name, node};

struct Opened {
    client: ClientConnection,
    server: ServerConnection,
}

/// Runs a handshake until it completes, or until the first error on either side.
fn open(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    peer: &str,
) -> Result<Opened, (&'static str, Error)> {
    let peer = ServerName::try_from(peer.to_owned()).unwrap();
    let mut client = ClientConnection::new(client, peer).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    let mut bytes = Vec::new();
    while client.is_handshaking() || server.is_handshaking() || client.wants_write() {
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut bytes.as_slice()).unwrap();
        bytes.clear();
        server.process_new_packets().map_err(|e| ("server", e))?;
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        client.read_tls(&mut bytes.as_slice()).unwrap();
        bytes.clear();
        client.process_new_packets().map_err(|e| ("client", e))?;
    }
    Ok(Opened { client, server })
}

fn refusal(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    peer: &str,
) -> (&'static str, Error) {
    match open(client, server, peer) {
        Ok(_) => panic!("a handshake that must fail did not"),
        Err(refusal) => refusal,
    }
}

#[test]
fn nodes_of_one_ca_know_each_other() {
    let authority = Authority::new("orchestra").unwrap();
    let (a, b) = (node(&authority, "a"), node(&authority, "b"));
    let opened = open(a.client_config(), b.server_config(), "b").unwrap();
    let seen = opened.server.peer_certificates().unwrap();
    assert_eq!(Identity::peer_name(seen).unwrap(), "a");
    let seen = opened.client.peer_certificates().unwrap();
    assert_eq!(Identity::peer_name(seen).unwrap(), "b");
    let version = opened.client.protocol_version();
    assert_eq!(version, Some(rustls::ProtocolVersion::TLSv1_3));
}

#[test]
fn a_ca_loaded_later_issues_for_the_same_cluster() {
    let first = Authority::new("orchestra").unwrap();
    let later = Authority::from_pem(first.certificate(), &first.key()).unwrap();
    assert_eq!(later.certificate(), first.certificate());
    let (a, b) = (node(&first, "a"), node(&later, "b"));
    assert!(open(a.client_config(), b.server_config(), "b").is_ok());
    assert!(open(b.client_config(), a.server_config(), "a").is_ok());
}

#[test]
fn a_node_under_another_name_is_refused() {
    let authority = Authority::new("orchestra").unwrap();
    let (a, b) = (node(&authority, "a"), node(&authority, "b"));
    let (side, error) = refusal(a.client_config(), b.server_config(), "c");
    assert_eq!(side, "client");
    assert!(matches!(
        error,
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
    ));
}

#[test]
fn another_ca_of_the_same_name_is_refused_by_both_sides() {
    let ours = Authority::new("orchestra").unwrap();
    let theirs = Authority::new("orchestra").unwrap();
    let (a, b) = (node(&ours, "a"), node(&theirs, "b"));
    let (side, error) = refusal(a.client_config(), b.server_config(), "b");
    assert_eq!(side, "client");
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
    // A client that trusts us, but that we do not trust.
    let strange = theirs.issue(&name("b"), &[]).unwrap();
    let client = showing(&ours, &strange.certificate, &strange.key);
    let (side, error) = refusal(client, a.server_config(), "a");
    assert_eq!(side, "server");
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let authority = Authority::new("orchestra").unwrap();
    let a = node(&authority, "a");
    let client = builder(&authority).with_no_client_auth();
    let (side, error) = refusal(Arc::new(client), a.server_config(), "a");
    assert_eq!((side, error), ("server", Error::NoCertificatesPresented));
}

#[test]
fn the_api_lets_clients_in_as_configured() {
    let authority = Authority::new("orchestra").unwrap();
    let issued = authority.issue(&name("a"), &["127.0.0.1"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let ca = put("ca.pem", authority.certificate());
    let certificate = put("api.pem", &issued.certificate);
    let key = put("api.key", &issued.key);
    let api = |ca| Arc::new(api_server(&certificate, &key, ca).unwrap());
    let anybody = || Arc::new(builder(&authority).with_no_client_auth());
    assert!(open(anybody(), api(None), "127.0.0.1").is_ok());
    let (side, error) = refusal(anybody(), api(Some(&ca)), "127.0.0.1");
    assert_eq!((side, error), ("server", Error::NoCertificatesPresented));
    let known = node(&authority, "b").client_config();
    assert!(open(known, api(Some(&ca)), "127.0.0.1").is_ok());
}

#[test]
fn a_certificate_is_refused_once_it_has_expired() {
    let authority = Authority::new("orchestra").unwrap();
    let a = node(&authority, "a");
    let expired = authority
        .issue_valid(&name("b"), &[], crate::past())
        .unwrap();
    let client = showing(&authority, &expired.certificate, &expired.key);
    let (side, error) = refusal(client, a.server_config(), "a");
    assert_eq!(side, "server");
    assert!(matches!(
        error,
        Error::InvalidCertificate(CertificateError::ExpiredContext { .. })
    ));
}

#[test]
fn a_session_is_never_resumed() {
    let authority = Authority::new("orchestra").unwrap();
    let (a, b) = (node(&authority, "a"), node(&authority, "b"));
    for _ in 0..2 {
        let opened = open(a.client_config(), b.server_config(), "b").unwrap();
        let kind = opened.server.handshake_kind();
        assert_eq!(kind, Some(rustls::HandshakeKind::Full));
        assert_eq!(opened.client.tls13_tickets_received(), 0);
    }
}

#[test]
fn tls_1_2_is_refused() {
    // A TLS 1.2 ClientHello with signature algorithms, as an old client would send it.
    let mut hello = vec![22, 3, 1, 0, 55, 1, 0, 0, 51, 3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    hello.extend([0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    let authority = Authority::new("orchestra").unwrap();
    let mut server = ServerConnection::new(node(&authority, "a").server_config()).unwrap();
    server.read_tls(&mut hello.as_slice()).unwrap();
    assert!(server.process_new_packets().is_err());
    let mut answer = Vec::new();
    server.write_tls(&mut answer).unwrap();
    let alert = u8::from(AlertDescription::ProtocolVersion);
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, alert]);
}

#[test]
fn a_certificate_for_several_hosts_is_not_a_node_certificate() {
    let authority = Authority::new("orchestra").unwrap();
    let issued = authority.issue(&name("a"), &["a.example.org"]).unwrap();
    let made = Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    let text = made.unwrap_err().to_string();
    assert!(
        text.contains("exactly one DNS name") && text.contains("it has 2"),
        "{text}"
    );
    // IP addresses do not count as names.
    let issued = authority.issue(&name("a"), &["10.0.0.1", "::1"]).unwrap();
    assert_eq!(identity(&authority, &issued).name(), "a");
    assert!(authority.issue(&name("a"), &["not a host"]).is_err());
    assert!(authority.issue(&name("a"), &[""]).is_err());
}

#[test]
fn a_peer_name_is_never_made_of_rubbish() {
    assert!(Identity::peer_name(&[]).is_err());
    let authority = Authority::new("orchestra").unwrap();
    let opened = open(
        node(&authority, "a").client_config(),
        node(&authority, "b").server_config(),
        "b",
    )
    .unwrap();
    let good = opened.client.peer_certificates().unwrap()[0].to_vec();
    // Truncated or corrupted at each byte: this may be an error, but never a panic.
    for at in 0..good.len() {
        let cut = good[..at].to_vec().into();
        assert!(Identity::peer_name(&[cut]).is_err());
        let mut bent = good.clone();
        bent[at] ^= 0x81;
        let _ = Identity::peer_name(&[bent.into()]);
    }
}

#[test]
fn a_ca_certificate_expires() {
    let soon = Validity {
        from: SystemTime::now() - Duration::from_secs(60),
        until: SystemTime::now() - Duration::from_secs(30),
    };
    let authority = Authority::valid("orchestra", soon).unwrap();
    let issued = authority.issue(&name("a"), &[]).unwrap();
    let made = Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    assert!(
        made.unwrap_err()
            .to_string()
            .contains("the CA's certificate expired at")
    );
    assert!(Authority::from_pem(authority.certificate(), &authority.key()).is_err());
}

fn builder(
    trusted: &Authority,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(trusted.certificate().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
}

/// A client that presents a certificate that `Identity` would refuse to load.
fn showing(trusted: &Authority, certificate: &str, key: &str) -> Arc<ClientConfig> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let made = builder(trusted).with_client_auth_cert(chain, key);
    Arc::new(made.unwrap())
}
