//! Connections to the API that never send a valid request.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist_node::config::{ApiTcp, Metrics};
use soloist_node::http::{self, ApiServer};
use soloist_testing::client_hello::half_of_client_hello;
use soloist_testing::queue::all_wait_in_the_queue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tracing::field::Field;
use tracing::{Subscriber, span};

use crate::cluster::{Lonely, lonely};
use crate::http::{Http, Stream};
use crate::tcp::{Files, TOKEN, loopback, tls};

/// Half of these file descriptors are for clients, and each of the two listeners gets half of that.
const FILES: u64 = 160;
const PLACES: usize = 40;
const STRANGERS: usize = PLACES + 20;
const TIMEOUT: Duration = Duration::from_secs(20);

type Connection = Box<dyn Stream>;

/// What strangers send.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Nothing, not even a TLS handshake.
    Silent,
    HalfOfClientHello,
    /// A complete TLS handshake, but no request.
    OnlyTls,
    NoToken,
}

impl Manner {
    async fn connect(self, http: &Http) -> Connection {
        let plain = match http {
            Http::Tls(address, ..) => &Http::Tcp(*address),
            http => http,
        };
        match self {
            Manner::Silent => plain.connect().await.unwrap(),
            Manner::HalfOfClientHello => {
                let mut stream = plain.connect().await.unwrap();
                stream.write_all(&half_of_client_hello()).await.unwrap();
                stream
            }
            Manner::OnlyTls => http.connect().await.unwrap(),
            Manner::NoToken => {
                let mut stream = http.connect().await.unwrap();
                assert_eq!(ask(&mut stream, "").await, 401);
                stream
            }
        }
    }
}

/// Sends a request, keeps the connection open, and returns the status.
async fn ask(stream: &mut Connection, token: &str) -> u16 {
    let head = "GET /v1/cluster HTTP/1.1\r\nhost: node\r\nauthorization: Bearer";
    let request = format!("{head} {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let body = loop {
        assert!(
            stream.read_buf(&mut bytes).await.unwrap() > 0,
            "it is closed"
        );
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
    };
    let head = str::from_utf8(&bytes[..body]).unwrap().to_owned();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.unwrap().parse().unwrap();
    let mut rest = vec![0; body + length - bytes.len()];
    stream.read_exact(&mut rest).await.unwrap();
    status.parse().unwrap()
}

/// Waits until the node closes a connection.
async fn closed(mut stream: Connection) {
    let read = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await;
    // Whether the node closes or resets the connection does not matter.
    let _ = read.expect("a connection that shows nothing is closed");
}

/// Starts a node whose API accepts a quarter of `files_max` connections per listener.
async fn crowded(files: &Files, tcp: ApiTcp, files_max: u64) -> (Lonely, ApiServer) {
    let node = lonely(files.api(tcp), Metrics::default()).await;
    let server = http::serve_within(&node, files_max).await.unwrap();
    (node, server)
}

async fn stop(node: Lonely, server: ApiServer) {
    node.stop(Duration::ZERO).await;
    server.stop().await;
}

/// Asserts that clients are served while there are more strangers than connections allowed.
async fn keep_no_client_out(http: &Http, manner: Manner) {
    // This client has sent a valid request and has been idle since.
    let mut older = http.connect().await.unwrap();
    assert_eq!(ask(&mut older, TOKEN).await, 200);
    let mut strangers = Vec::new();
    for _ in 0..STRANGERS {
        strangers.push(manner.connect(http).await);
    }
    let newer = async {
        let mut newer = http.connect().await.unwrap();
        assert_eq!(ask(&mut newer, TOKEN).await, 200);
    };
    timeout(TIMEOUT, newer).await.expect("an answer");
    // Silent strangers are always disconnected. The others may stay until their places are needed.
    let closing = match manner {
        Manner::Silent | Manner::OnlyTls => STRANGERS,
        Manner::HalfOfClientHello | Manner::NoToken => STRANGERS - PLACES,
    };
    for stranger in strangers.into_iter().take(closing) {
        closed(stranger).await;
    }
    assert_eq!(ask(&mut older, TOKEN).await, 200);
}

#[tokio::test]
async fn silent_connections_keep_no_client_out() {
    let files = Files::new();
    let (node, server) = crowded(&files, loopback(None, None), FILES).await;
    let unix = Http::Unix(server.socket().to_owned());
    keep_no_client_out(&unix, Manner::Silent).await;
    let tcp = Http::Tcp(server.addresses().tcp.unwrap());
    keep_no_client_out(&tcp, Manner::Silent).await;
    stop(node, server).await;
}

#[tokio::test]
async fn connections_that_do_not_complete_tls_keep_no_client_out() {
    let files = Files::new();
    let tcp = loopback(None, Some(files.tls(false)));
    let (node, server) = crowded(&files, tcp, FILES).await;
    let http = tls(server.addresses().tcp.unwrap(), files.stranger());
    for manner in [Manner::Silent, Manner::HalfOfClientHello] {
        keep_no_client_out(&http, manner).await;
    }
    stop(node, server).await;
}

#[tokio::test]
async fn connections_without_a_request_or_a_token_keep_no_client_out() {
    let files = Files::new();
    let tcp = loopback(Some(files.token()), Some(files.tls(false)));
    let (node, server) = crowded(&files, tcp, FILES).await;
    let http = tls(server.addresses().tcp.unwrap(), files.stranger());
    for manner in [Manner::OnlyTls, Manner::NoToken] {
        keep_no_client_out(&http, manner).await;
    }
    stop(node, server).await;
}

#[tokio::test]
async fn many_connections_at_once_are_queued() {
    let files = Files::new();
    let tcp = loopback(None, None);
    let node = lonely(files.api(tcp), Metrics::default()).await;
    let server = http::serve(&node).await.unwrap();
    all_wait_in_the_queue(server.addresses().tcp.unwrap());
    stop(node, server).await;
}

/// Collects log lines of level warning and above.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            line += &format!("{field}={value:?} ");
        });
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn clients_that_are_turned_away_do_not_fill_the_log() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let files = Files::new();
    let (node, server) = crowded(&files, loopback(None, None), 40).await;
    let http = Http::Unix(server.socket().to_owned());
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut client = http.connect().await.unwrap();
        assert_eq!(ask(&mut client, TOKEN).await, 200);
        clients.push(client);
    }
    for _ in 0..50 {
        closed(http.connect().await.unwrap()).await;
    }
    let lines = log.0.lock().unwrap().clone();
    let lines: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("refused a client"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("the API already has 10 connections"),
        "{lines:?}"
    );
    drop(clients);
    stop(node, server).await;
}
