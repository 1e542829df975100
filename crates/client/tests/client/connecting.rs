//! Tests of finding a node and of authentication.

use std::path::PathBuf;
use std::time::Duration;

use soloist_api::NodeName;
use soloist_client::{Client, ClientError, Guard, Target};
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::Node;
use soloist_node::config::{Api, ApiTcp, ApiTls, Config, Metrics, Security, Ttl};
use soloist_node::http::{self, ApiServer};
use soloist_node::identity::Authority;
use soloist_testing::alone::alone;
use tempfile::TempDir;

use crate::{held, until};

const TOKEN: &str = "correct-horse-battery-staple-0001";

/// A node whose API requires TLS, a token and optionally client certificates.
struct Guarded {
    folder: TempDir,
    authority: Authority,
    server: ApiServer,
    _node: Node,
}

impl Guarded {
    async fn start(demand_certificate: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let authority = Authority::new("test").unwrap();
        let name: NodeName = "n1".parse().unwrap();
        let issued = authority.issue(&name, &["127.0.0.1"]).unwrap();
        let write = |file: &str, text: &str| private(&folder, file, text);
        let ca = write("ca.pem", authority.certificate());
        let tls = ApiTls {
            certificate: write("api.pem", &issued.certificate),
            key: write("api.key", &issued.key),
            client_ca: demand_certificate.then_some(ca),
        };
        let api = Api {
            tcp: Some(ApiTcp {
                listen: "127.0.0.1:0".parse().unwrap(),
                token_file: Some(write("token", TOKEN)),
                tls: Some(tls),
            }),
            ..Api::at(folder.path().join("s.sock"))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().into();
        let members = alone(&name, &address, &folder.path().join("data"));
        let config = Config {
            name,
            rules: Rules::for_any(&RuleSettings::default(), &[]).unwrap(),
            members,
            listen: None,
            security: Security::Insecure,
            ttl: Ttl::default(),
            api,
            limits: Limits::default(),
            metrics: Metrics::default(),
            io_threads: Config::IO_THREADS,
        };
        let node = Node::start_on(config, None, listener).await.unwrap();
        node.ready().await;
        Guarded {
            server: http::serve(&node).await.unwrap(),
            folder,
            authority,
            _node: node,
        }
    }

    fn target(&self) -> Target {
        let address = self.server.addresses().tcp.unwrap();
        let target = Target::parse(&format!("https://{address}")).unwrap();
        target.with_ca(self.folder.path().join("ca.pem"))
    }
}

fn private(folder: &TempDir, file: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.path().join(file);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[tokio::test]
async fn over_tls_with_a_token() {
    let node = Guarded::start(false).await;
    let target = node.target().with_token(TOKEN).unwrap();
    let client = Client::connect(target).await.unwrap();
    held(&client, "a").await.release().await.unwrap();
    let file = node
        .target()
        .with_token_file(&node.folder.path().join("token"));
    let client = Client::connect(file.unwrap()).await.unwrap();
    held(&client, "a").await.release().await.unwrap();
}

// The node needs a thread of its own: a caller that spins blocks its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spinning_client_over_tls() {
    let node = Guarded::start(false).await;
    let target = node.target().with_token(TOKEN).unwrap();
    let client = Client::builder().spin(Duration::from_millis(1));
    let client = client.connect(target).await.unwrap();
    until("an answer came while a caller was spinning", async || {
        held(&client, "a").await.release().await.unwrap();
        client.spin_hits() > 0
    })
    .await;
}

#[tokio::test]
async fn without_the_token_or_with_another_ca_it_does_not_work() {
    let node = Guarded::start(false).await;
    for target in [node.target(), node.target().with_token("wrong").unwrap()] {
        let client = Client::connect(target).await.unwrap();
        let error = client.cluster().await.unwrap_err();
        let refused = matches!(error, ClientError::Refused { status: 401, .. });
        assert!(refused, "{error}");
    }
    let other = Authority::new("other").unwrap();
    let ca = private(&node.folder, "other.pem", other.certificate());
    let error = Client::connect(node.target().with_ca(ca))
        .await
        .err()
        .unwrap();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn with_a_certificate() {
    let node = Guarded::start(true).await;
    let issued = node
        .authority
        .issue(&"client".parse().unwrap(), &[])
        .unwrap();
    let certificate = private(&node.folder, "client.pem", &issued.certificate);
    let key = private(&node.folder, "client.key", &issued.key);
    let target = node.target().with_token(TOKEN).unwrap();
    let target = target.with_certificate(certificate, key);
    let client = Client::connect(target).await.unwrap();
    held(&client, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let folder = TempDir::new().unwrap();
    let target = Target::parse("https://127.0.0.1:7400").unwrap();
    let error = Client::connect(target.clone()).await.err().unwrap();
    assert!(error.to_string().contains("SOLOIST_CA"), "{error}");
    let ca = folder.path().join("no-such-file.pem");
    let error = Client::connect(target.with_ca(ca)).await.err().unwrap();
    assert!(error.to_string().contains("no-such-file.pem"), "{error}");
}

#[tokio::test]
async fn a_token_never_goes_over_the_network_in_the_clear() {
    let target = Target::parse("http://192.0.2.1:7400").unwrap();
    let target = target.with_token(TOKEN).unwrap();
    let error = Client::connect(target).await.err().unwrap().to_string();
    assert!(error.contains("https"), "{error}");
    assert!(!error.contains(TOKEN));
}

#[tokio::test]
async fn other_certificates_are_not_taken_for_nodes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let answers = [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]",
            "rubbish\r\n\r\n",
        ];
        for answer in answers.iter().cycle() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    for _ in 0..4 {
        let client = Client::connect(Target::socket(&path)).await.unwrap();
        let error = client.cluster().await.unwrap_err();
        let told = matches!(
            error,
            ClientError::Garbled { .. } | ClientError::Broken { .. }
        );
        assert!(told, "{error}");
        assert!(error.to_string().contains("s.sock"), "{error}");
    }
}
