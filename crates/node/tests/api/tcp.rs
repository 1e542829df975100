//! The API over TCP: tokens, TLS and client certificates.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Method;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};
use serde_json::{Value, json};
use soloist_api::ErrorKind;
use soloist_node::EventKind;
use soloist_node::config::{Api, ApiTcp, ApiTls, Metrics};
use soloist_node::http::{self, ApiError, ApiServer};
use soloist_node::identity::{Authority, Identity, Role};
use tempfile::TempDir;

use crate::cluster::{Lonely, lonely, until};
use crate::http::{Http, request};

pub(crate) const TOKEN: &str = "correct-horse-battery-staple-0001";

pub(crate) struct Files {
    folder: TempDir,
    authority: Authority,
}

impl Files {
    pub(crate) fn new() -> Self {
        Files {
            folder: TempDir::new().unwrap(),
            authority: Authority::new("test").unwrap(),
        }
    }

    fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub(crate) fn token(&self) -> PathBuf {
        self.write("token", &format!("{TOKEN}\n"), 0o600)
    }

    pub(crate) fn tls(&self, client_ca: bool) -> ApiTls {
        let issued = self.authority.issue(&"n1".parse().unwrap(), &[]).unwrap();
        let ca = self.write("ca.pem", self.authority.certificate(), 0o644);
        ApiTls {
            certificate: self.write("api.pem", &issued.certificate, 0o644),
            key: self.write("api.key", &issued.key, 0o600),
            client_ca: client_ca.then_some(ca),
        }
    }

    pub(crate) fn api(&self, tcp: ApiTcp) -> Api {
        let socket = self.folder.path().join("s.sock");
        let tcp = Some(tcp);
        Api {
            tcp,
            ..Api::at(socket)
        }
    }

    async fn serve(&self, tcp: ApiTcp) -> Result<(Lonely, ApiServer), ApiError> {
        let node = lonely(self.api(tcp), Metrics::default()).await;
        let server = http::serve(&node).await?;
        Ok((node, server))
    }

    fn trusting(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = rustls::RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.authority.certificate().as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
    }

    /// A client that trusts the CA but has no certificate.
    pub(crate) fn stranger(&self) -> Arc<ClientConfig> {
        Arc::new(self.trusting().with_no_client_auth())
    }

    /// A client with a certificate issued for the client role.
    pub(crate) fn client(&self, name: &str) -> Arc<ClientConfig> {
        let name = name.parse().unwrap();
        let issued = self.authority.issue_as(Role::Client, &name, &[]).unwrap();
        let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes());
        let config = self
            .trusting()
            .with_client_auth_cert(vec![certificate.unwrap()], key.unwrap());
        Arc::new(config.unwrap())
    }

    /// A client with a node certificate from the CA `by`, which it trusts.
    fn known(&self, by: &Authority) -> Arc<ClientConfig> {
        let issued = by.issue(&"client".parse().unwrap(), &[]).unwrap();
        let (certificate, key) = (&issued.certificate, &issued.key);
        let identity = Identity::from_pem(by.certificate(), certificate, key).unwrap();
        identity.client_config()
    }
}

pub(crate) fn loopback(token_file: Option<PathBuf>, tls: Option<ApiTls>) -> ApiTcp {
    ApiTcp {
        listen: "127.0.0.1:0".parse().unwrap(),
        token_file,
        tls,
    }
}

pub(crate) fn tls(address: SocketAddr, config: Arc<ClientConfig>) -> Http {
    Http::Tls(address, config, "n1".to_owned())
}

async fn with_token(http: &Http, path: &str, authorization: &'static str) -> crate::http::Answer {
    let mut request = request(Method::GET, path, None);
    let value = hyper::header::HeaderValue::from_static(authorization);
    request.headers_mut().insert("authorization", value);
    http.send(request).await
}

#[tokio::test]
async fn loopback_needs_no_token_unless_one_is_configured() {
    let files = Files::new();
    let (_node, server) = files.serve(loopback(None, None)).await.unwrap();
    let http = Http::Tcp(server.addresses().tcp.unwrap());
    let hold = http.hold("a").await;
    assert_eq!(http.release(&hold).await.status, 204);
    let document: Value = http.get("/openapi.json").await.ok();
    assert_eq!(document["security"], json!([{}]));
    server.stop().await;
}

#[tokio::test]
async fn a_token_is_required_on_tcp_except_for_health_checks() {
    let files = Files::new();
    let served = files.serve(loopback(Some(files.token()), None)).await;
    let (_node, server) = served.unwrap();
    let http = Http::Tcp(server.addresses().tcp.unwrap());
    for path in [
        "/v1/cluster",
        "/metrics",
        "/openapi.json",
        "/v1/events",
        "/nowhere",
    ] {
        let answer = http.get(path).await;
        assert_eq!(answer.error(401).error, ErrorKind::Unauthorized, "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    http.acquire("a", json!({})).await.error(401);
    for wrong in [
        "Bearer wrong",
        "Bearer ",
        "Basic correct-horse-battery-staple-0001",
        "correct-horse-battery-staple-0001",
        "Bearer correct-horse-battery-staple-00011",
    ] {
        with_token(&http, "/v1/cluster", wrong).await.error(401);
    }
    assert_eq!(http.get("/healthz").await.body, "ok");
    let right = "Bearer correct-horse-battery-staple-0001";
    assert_eq!(with_token(&http, "/v1/cluster", right).await.status, 200);
    let document: Value = with_token(&http, "/openapi.json", right).await.ok();
    assert_eq!(document["security"], json!([{ "token": [] }]));
    let unix = Http::Unix(server.socket().to_owned());
    assert_eq!(unix.get("/v1/cluster").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn over_tls_a_client_that_disconnects_leaves_the_queue() {
    let files = Files::new();
    let served = files.serve(loopback(None, Some(files.tls(false)))).await;
    let (node, server) = served.unwrap();
    let http = tls(server.addresses().tcp.unwrap(), files.stranger());
    let mut events = node.events();
    let hold = http.hold("a").await;
    let waits = {
        let http = http.clone();
        tokio::spawn(async move { http.acquire("a", json!({})).await })
    };
    while events.next().await.unwrap().event != EventKind::Waiting {}
    waits.abort();
    until("no client waits", async || {
        let lock: soloist_api::LockInfo = http.get("/v1/locks/a").await.ok();
        (lock.waiting == 0).then_some(())
    })
    .await;
    assert_eq!(http.release(&hold).await.status, 204);
    // Plain HTTP is refused.
    let plain = Http::Tcp(server.addresses().tcp.unwrap());
    assert!(
        plain
            .open(request(Method::GET, "/healthz", None))
            .await
            .is_err()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_of_the_right_ca_and_a_token_are_required() {
    let files = Files::new();
    let tcp = loopback(Some(files.token()), Some(files.tls(true)));
    let (_node, server) = files.serve(tcp).await.unwrap();
    let address = server.addresses().tcp.unwrap();
    let known = tls(address, files.known(&files.authority));
    let right = "Bearer correct-horse-battery-staple-0001";
    assert_eq!(with_token(&known, "/v1/cluster", right).await.status, 200);
    known.get("/v1/cluster").await.error(401);
    let document: Value = with_token(&known, "/openapi.json", right).await.ok();
    assert_eq!(
        document["security"],
        json!([{ "token": [], "certificate": [] }])
    );
    // With TLS 1.3, a client may learn of the refusal only when it sends its first request.
    let health = || request(Method::GET, "/healthz", None);
    let stranger = tls(address, files.stranger());
    assert!(stranger.open(health()).await.is_err());
    let other = Authority::new("other").unwrap();
    let connected = tls(address, files.known(&other)).connect().await;
    assert!(connected.is_err(), "it trusts another CA");
    server.stop().await;
}

#[tokio::test]
async fn an_unprotected_listener_is_refused() {
    let files = Files::new();
    let refused = async |tcp| files.serve(tcp).await.err().unwrap();
    let mut open = loopback(None, None);
    open.listen = "0.0.0.0:0".parse().unwrap();
    let error = refused(open.clone()).await;
    assert!(matches!(error, ApiError::Unprotected { .. }), "{error}");
    open.tls = Some(files.tls(false));
    let error = refused(open.clone()).await.to_string();
    assert!(error.contains("token_file"), "{error}");
    let token = |path: &Path| loopback(Some(path.to_owned()), None);
    let exposed = files.write("exposed", TOKEN, 0o640);
    let error = refused(token(&exposed)).await.to_string();
    assert!(error.contains("640") && error.contains("600"), "{error}");
    for unusable in ["", " \n", "two words", "tökén", &"x".repeat(5000)] {
        let error = refused(token(&files.write("unusable", unusable, 0o600))).await;
        assert!(matches!(error, ApiError::TokenUnusable { .. }), "{error}");
    }
    let error = refused(token(&files.folder.path().join("missing"))).await;
    assert!(error.to_string().contains("missing"), "{error}");
    let mut tls = files.tls(false);
    tls.key = files.write("loose.key", "x", 0o644);
    let error = refused(loopback(None, Some(tls))).await;
    assert!(matches!(error, ApiError::Certificate(_)), "{error}");
    // The same settings with a token are accepted.
    open.token_file = Some(files.token());
    let (_node, server) = files.serve(open).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let files = Files::new();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut tcp = loopback(None, None);
    tcp.listen = taken.local_addr().unwrap().into();
    let address = tcp.listen.to_string();
    let error = files.serve(tcp).await.err().unwrap().to_string();
    assert!(error.contains(&address), "{error}");
}
