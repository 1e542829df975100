//! Links under TLS: who is let in, and what both sides see when somebody is not.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use soloist_node::identity::{Authority, Identity, Issued, Validity};
use soloist_node::transport::Security;

use crate::net::{Node, Wire, pair, until};

fn issue(authority: &Authority, name: &str) -> Issued {
    authority.issue(&name.parse().unwrap(), &[]).unwrap()
}

pub fn identity(authority: &Authority, name: &str) -> Identity {
    let issued = issue(authority, name);
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key).unwrap()
}

/// A node's security, but it dials with a certificate that `Identity` would refuse to load.
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

/// Nodes a and b, with this security.
async fn secured(a: Security, b: Security) -> (Node, Node) {
    pair(|settings| {
        let of_a = settings.endpoint.name.as_str() == "a";
        settings.endpoint.security = if of_a { a.clone() } else { b.clone() };
    })
    .await
}

/// Waits until b has refused what comes from a, and a knows why.
async fn refused(a: &Node, b: &Node, seen_by_a: &str, seen_by_b: &str) {
    a.links.send(1, b"x").unwrap();
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
        a.links.send(1, &number.to_le_bytes()).unwrap();
        b.links.send(0, &number.to_le_bytes()).unwrap();
    }
    for (node, peer) in [(&a, 1), (&b, 0)] {
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
    // It is a that looks at a certificate first.
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
    // It dials as a, with the certificate of c.
    let a = showing(&ca, &identity(&ca, "a"), &issue(&ca, "c"));
    let (a, b) = secured(a, Security::tls(&identity(&ca, "b"))).await;
    let text = "it calls itself a, and its certificate is that of node c";
    refused(&a, &b, text, text).await;
}

#[tokio::test]
async fn a_node_at_anothers_address_is_refused() {
    let ca = Authority::new("orchestra").unwrap();
    let a = Security::tls(&identity(&ca, "a"));
    // What listens at b's address has the certificate of c.
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
async fn what_is_no_tls_is_hostile() {
    let ca = Authority::new("orchestra").unwrap();
    let of = |name| Security::tls(&identity(&ca, name));
    let (a, b) = secured(of("a"), of("b")).await;
    let mut wire = Wire::to(&a).await;
    wire.send(b"GET / HTTP/1.1\r\n\r\n").await;
    until("it is counted", || a.links.counters().hostile == 1).await;
    b.links.send(0, b"x").unwrap();
    until("peers come in", || a.seen.count() == 1).await;
}
