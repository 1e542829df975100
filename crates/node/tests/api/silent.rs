//! Connections to the API that show nothing.

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use soloist_api::Cluster;
use soloist_node::api;
use soloist_node::config::{Api, ApiTcp, Metrics};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::cluster::lonely;
use crate::http::{Http, Stream};

/// Half of these are for clients, and each of two listeners gets half of that.
const FILES: u64 = 400;
const SILENT: usize = 120;
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks over a connection that stays open.
async fn ask(stream: &mut Box<dyn Stream>) {
    let request = b"GET /healthz HTTP/1.1\r\nhost: node\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

fn limit_files(current: Option<u64>) {
    let limit = getrlimit(Resource::Nofile);
    let current = current.or(limit.maximum);
    setrlimit(
        Resource::Nofile,
        rustix::process::Rlimit { current, ..limit },
    )
    .unwrap();
}

#[tokio::test]
async fn silent_connections_keep_no_client_out() {
    let folder = TempDir::new().unwrap();
    let tcp = ApiTcp {
        listen: "127.0.0.1:0".parse().unwrap(),
        token_file: None,
        tls: None,
    };
    let config = Api {
        socket: folder.path().join("s.sock"),
        tcp: Some(tcp),
    };
    let node = lonely(config, Metrics::default()).await;
    limit_files(Some(FILES));
    let server = api::serve(&node).await.unwrap();
    limit_files(None);
    let unix = Http::Unix(server.socket().to_owned());
    let tcp = Http::Tcp(server.addresses().tcp.unwrap());
    for http in [unix, tcp] {
        // This one has shown a request, and is idle since then.
        let mut older = http.connect().await.unwrap();
        ask(&mut older).await;
        let mut silent = Vec::new();
        for _ in 0..SILENT {
            silent.push(http.connect().await.unwrap());
        }
        let cluster = timeout(PATIENCE, http.get("/v1/cluster")).await;
        let cluster: Cluster = cluster.expect("an answer").ok();
        assert_eq!(cluster.nodes.len(), 1);
        for mut stream in silent {
            let read = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
            // Closed, however.
            let _ = read.expect("a silent connection is closed");
        }
        let mut rest = vec![0; 1 << 16];
        let left = timeout(PATIENCE, older.read(&mut rest)).await;
        assert!(left.expect("the rest of the answer").unwrap() > 0);
        ask(&mut older).await;
    }
    node.stop(Duration::ZERO).await;
    server.stop().await;
}
