//! The first bytes that a TLS client sends.

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// The first half of a ClientHello. A server waits for the rest.
pub fn half_of_client_hello() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = "n1".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello.truncate(hello.len() / 2);
    hello
}
