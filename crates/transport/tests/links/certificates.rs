//! Links with TLS: which peers are accepted, and what both sides see of a refusal.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use soloist_transport::Security;
use soloist_transport::identity::{Authority, Identity, Issued, Role, Validity, api_server};

use crate::net::{A, B, Node, Wire, pair, until};

fn issue(authority: &Authority, name: &str) -> Issued {
    authority.issue(&name.parse().unwrap(), &[]).unwrap()
}

pub(crate) fn identity(authority: &Authority, name: &str) -> Identity {
    let issued = issue(authority, name);
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key).unwrap()
}

/// Security of a node that dials with a certificate that `Identity` would refuse to load.
fn showing(trusted: &Authority, me: &Identity, shown: &Issued) -> Security {
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(trusted.certificate().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    Security::Tls {
        server: me.server_config(),
        client: Arc::new(client),
    }
}

/// Starts nodes a and b with this security.
async fn secured(a: Security, b: Security) -> (Node, Node) {
    pair(|settings| {
        let of_a = settings.endpoint.name.as_str() == "a";
        settings.endpoint.security = if of_a { a.clone() } else { b.clone() };
    })
    .await
}

/// Waits until b has refused a's connection and both know the reason.
async fn refused(a: &Node, b: &Node, seen_by_a: &str, seen_by_b: &str) {
    a.links.send(B, b"x").unwrap();
    until("a knows", || a.seen.was_refused("b", seen_by_a)).await;
    until("b knows", || {
        let refusals = b.links.refusals();
        refusals
            .iter()
            .any(|refusal| refusal.reason.contains(seen_by_b))
    })
    .await;
    assert!(b.links.counters().refused > 0);
    assert_eq!(b.seen.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_one_ca_talk_both_ways() {
    let ca = Authority::new("orchestra").unwrap();
    let of = |name| Security::tls(&identity(&ca, name));
    let (a, b) = secured(of("a"), of("b")).await;
    for number in 0..2000u32 {
        a.links.send(B, &number.to_le_bytes()).unwrap();
        b.links.send(A, &number.to_le_bytes()).unwrap();
    }
    for (node, peer) in [(&a, B), (&b, A)] {
        until("all arrived", || node.seen.count() == 2000).await;
        let frames = node.seen.frames();
        for (number, frame) in (0..2000u32).zip(frames) {
            assert_eq!(frame, (peer, number.to_le_bytes().to_vec()));
        }
    }
    a.links.close(Duration::from_secs(10)).await;
    assert_eq!(a.links.status()[1].buffered_frames, 0);
}

#[tokio::test]
async fn a_node_of_another_ca_is_refused() {
    let (ours, theirs) = (
        Authority::new("ours").unwrap(),
        Authority::new("theirs").unwrap(),
    );
    let a = Security::tls(&identity(&theirs, "a"));
    let b = Security::tls(&identity(&ours, "b"));
    let (a, b) = secured(a, b).await;
    // Node a is the first to check a certificate.
    refused(&a, &b, "invalid peer certificate", "received fatal alert").await;
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused() {
    let (ours, theirs) = (
        Authority::new("ours").unwrap(),
        Authority::new("theirs").unwrap(),
    );
    let a = showing(&ours, &identity(&ours, "a"), &issue(&theirs, "a"));
    let (a, b) = secured(a, Security::tls(&identity(&ours, "b"))).await;
    let seen_by_a = "b refused this node's certificate: received fatal alert";
    refused(&a, &b, seen_by_a, "invalid peer certificate").await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let ca = Authority::new("orchestra").unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let past = Validity {
        from: SystemTime::now() - 2 * day,
        until: SystemTime::now() - day,
    };
    let expired = ca.issue_valid(&"a".parse().unwrap(), &[], past).unwrap();
    let a = showing(&ca, &identity(&ca, "a"), &expired);
    let (a, b) = secured(a, Security::tls(&identity(&ca, "b"))).await;
    refused(&a, &b, "CertificateExpired", "certificate expired").await;
}

#[tokio::test]
async fn a_node_that_claims_anothers_name_is_refused() {
    let ca = Authority::new("orchestra").unwrap();
    // It dials as a, with c's certificate.
    let a = showing(&ca, &identity(&ca, "a"), &issue(&ca, "c"));
    let (a, b) = secured(a, Security::tls(&identity(&ca, "b"))).await;
    let text = "its hello names node a, but its certificate is for node c";
    refused(&a, &b, text, text).await;
}

#[tokio::test]
async fn a_node_at_anothers_address_is_refused() {
    let ca = Authority::new("orchestra").unwrap();
    let a = Security::tls(&identity(&ca, "a"));
    // The node at b's address has c's certificate.
    let (a, b) = secured(a, Security::tls(&identity(&ca, "c"))).await;
    refused(
        &a,
        &b,
        "certificate not valid for name \"b\"",
        "received fatal alert",
    )
    .await;
}

#[tokio::test]
async fn bytes_that_are_not_tls_are_a_protocol_error() {
    let ca = Authority::new("orchestra").unwrap();
    let of = |name| Security::tls(&identity(&ca, name));
    let (a, b) = secured(of("a"), of("b")).await;
    let mut wire = Wire::to(&a).await;
    wire.send(b"GET / HTTP/1.1\r\n\r\n").await;
    until("it is counted", || a.links.counters().hostile == 1).await;
    b.links.send(A, b"x").unwrap();
    until("peers come in", || a.seen.count() == 1).await;
}

/// Writes the files that the API's TLS settings need.
fn files(
    folder: &std::path::Path,
    authority: &Authority,
    shown: &Issued,
) -> [std::path::PathBuf; 3] {
    use std::os::unix::fs::PermissionsExt;
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    [
        put("ca.pem", authority.certificate()),
        put("api.pem", &shown.certificate),
        put("api.key", &shown.key),
    ]
}

/// Security of a node that accepts with a certificate that `Identity` would refuse to load.
fn accepting_with(authority: &Authority, me: &Identity, shown: &Issued) -> Security {
    let folder = tempfile::tempdir().unwrap();
    let [ca, certificate, key] = files(folder.path(), authority, shown);
    Security::Tls {
        server: Arc::new(api_server(&certificate, &key, Some(&ca)).unwrap()),
        client: me.client_config(),
    }
}

#[tokio::test]
async fn an_api_certificate_is_not_a_nodes() {
    let ca = Authority::new("orchestra").unwrap();
    // The certificate of b's API. It is valid for the name b, too.
    let api = ca
        .issue(&"b".parse().unwrap(), &["api.example.org"])
        .unwrap();
    let b = accepting_with(&ca, &identity(&ca, "b"), &api);
    let (a, b) = secured(Security::tls(&identity(&ca, "a")), b).await;
    a.links.send(B, b"x").unwrap();
    until("it is refused, or goes through", || {
        b.seen.count() > 0 || a.seen.was_refused("b", "must have exactly one DNS name")
    })
    .await;
    assert_eq!(
        b.seen.count(),
        0,
        "a frame went to a peer with an API's certificate"
    );
}

/// A certificate for another role, with the right name and from the right CA, on either side.
#[tokio::test]
async fn certificates_of_other_roles_are_refused_by_both_sides() {
    let ca = Authority::new("orchestra").unwrap();
    let issue = |role, name: &str| ca.issue_as(role, &name.parse().unwrap(), &[]).unwrap();
    let (of_a, of_b) = (identity(&ca, "a"), identity(&ca, "b"));
    let api = accepting_with(&ca, &of_b, &issue(Role::ApiServer, "b"));
    let (a, b) = secured(Security::tls(&of_a), api).await;
    a.links.send(B, b"x").unwrap();
    let text = "the certificate of b is not accepted: the peer's certificate is an API server's";
    until("the dialler refuses", || a.seen.was_refused("b", text)).await;
    assert_eq!(b.seen.count(), 0);

    let client = showing(&ca, &of_a, &issue(Role::Client, "a"));
    let (a, b) = secured(client, Security::tls(&of_b)).await;
    let text = "the peer's certificate is a client's certificate, but a node's certificate is \
                needed";
    refused(&a, &b, text, text).await;
}

/// Standard TLS rules refuse a client certificate at a server and vice versa.
#[tokio::test]
async fn client_certificates_cannot_serve_and_api_certificates_cannot_dial() {
    let ca = Authority::new("orchestra").unwrap();
    let issue = |role, name: &str| ca.issue_as(role, &name.parse().unwrap(), &[]).unwrap();
    let (of_a, of_b) = (identity(&ca, "a"), identity(&ca, "b"));
    let client = accepting_with(&ca, &of_b, &issue(Role::Client, "b"));
    let (a, _b) = secured(Security::tls(&of_a), client).await;
    a.links.send(B, b"x").unwrap();
    until("it is refused", || {
        a.seen.was_refused("b", "invalid peer certificate")
    })
    .await;
    let api = showing(&ca, &of_a, &issue(Role::ApiServer, "a"));
    let (a, b) = secured(api, Security::tls(&of_b)).await;
    let seen_by_a = "b refused this node's certificate";
    refused(&a, &b, seen_by_a, "invalid peer certificate").await;
}

/// A certificate from a release before certificates had roles.
fn unmarked(authority: &Authority, name: &str) -> Issued {
    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
    let key = KeyPair::from_pem(&authority.key()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(authority.certificate(), key).unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().unwrap();
    Issued {
        certificate: params.signed_by(&key, &issuer).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

#[tokio::test]
async fn certificates_without_a_role_still_work_as_node_certificates() {
    let ca = Authority::new("orchestra").unwrap();
    let issued = unmarked(&ca, "a");
    let old = Identity::from_pem(ca.certificate(), &issued.certificate, &issued.key).unwrap();
    let new = Security::tls(&identity(&ca, "b"));
    let (a, b) = secured(Security::tls(&old), new).await;
    a.links.send(B, b"x").unwrap();
    b.links.send(A, b"x").unwrap();
    until("both arrive", || a.seen.count() + b.seen.count() == 2).await;
}
