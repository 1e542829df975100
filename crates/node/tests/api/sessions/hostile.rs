//! Clients that break the protocol. Each is told why, and nobody else notices.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use soloist_api::session::{Code, MESSAGE_BYTES_MAX, NodeMessage};
use soloist_node::http;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Socket;
use crate::cluster::{Forming, lonely, served, until};
use crate::http::Http;
use crate::tcp::{Files, loopback};

#[tokio::test]
async fn messages_that_cannot_be_used_end_the_connection_and_not_the_session() {
    let served = served(1).await;
    let http = &served.https[0];
    for (bad, code) in [
        (Message::text("{"), Code::BadMessage),
        (Message::text("null"), Code::BadMessage),
        (Message::text(r#"{"dance":{"n":2}}"#), Code::BadMessage),
        (Message::text(r#"{"acquire":{"n":2}}"#), Code::BadMessage),
        (
            Message::text(r#"{"acquire":{"n":"2","lock":"a"}}"#),
            Code::BadMessage,
        ),
        (
            Message::text(r#"{"ping":{"n":2,"more":1}}"#),
            Code::BadMessage,
        ),
        (Message::text(r#"{"ping":{"n":0}}"#), Code::BadMessage),
        (
            Message::text(r#"{"ping":{"n":9007199254740993}}"#),
            Code::BadMessage,
        ),
        (
            Message::text(r#"{"ping":{"n":2,"seen":7}}"#),
            Code::BadMessage,
        ),
        (
            Message::text(r#"{"acquire":{"n":1,"lock":"another"}}"#),
            Code::NumberUsed,
        ),
        (Message::text(r#"{"hello":{}}"#), Code::Hello),
        (
            Message::text("x".repeat(MESSAGE_BYTES_MAX + 1)),
            Code::BadMessage,
        ),
        (Message::binary(vec![0; 3]), Code::BadMessage),
    ] {
        let shown = format!("{bad:.60}");
        let (mut socket, welcome) = Socket::start(http).await;
        socket.acquire(1, "a").await;
        socket.granted().await;
        socket.send_raw(bad).await;
        let closed = socket.closed().await;
        assert_eq!(closed.code, code, "{shown}: {}", closed.detail);
        let mut socket = Socket::resume(http, &welcome, 1).await;
        assert_eq!(socket.welcome().await.holds.len(), 1, "{shown}");
        socket.send(json!({ "end": { "n": 3 } })).await;
        assert_eq!(socket.done().await, 3);
    }
    served.stop().await;
}

#[tokio::test]
async fn a_connection_begins_with_a_valid_hello() {
    let served = served(1).await;
    let http = &served.https[0];
    let (_socket, welcome) = Socket::start(http).await;
    let wrong = json!({ "session": welcome.session, "secret": "0".repeat(32) });
    let unknown = json!({ "session": "0".repeat(32), "secret": welcome.secret });
    let garbled = json!({ "session": "x", "secret": welcome.secret });
    for (first, code) in [
        (json!({ "ping": { "n": 1 } }), Code::Hello),
        (json!({ "hello": { "ttl_ms": 0 } }), Code::BadRequest),
        (json!({ "hello": { "ttl_ms": u64::MAX } }), Code::BadRequest),
        (
            json!({ "hello": { "name": "x".repeat(257) } }),
            Code::BadRequest,
        ),
        (json!({ "hello": { "resume": wrong } }), Code::NoSuchSession),
        (
            json!({ "hello": { "resume": unknown } }),
            Code::NoSuchSession,
        ),
        (
            json!({ "hello": { "resume": garbled } }),
            Code::NoSuchSession,
        ),
    ] {
        let mut socket = Socket::open(http, &[]).await.unwrap();
        socket.send(first.clone()).await;
        let closed = socket.closed().await;
        assert_eq!(closed.code, code, "{first}: {}", closed.detail);
    }
    served.stop().await;
}

fn status(refused: Result<Socket, Error>) -> u16 {
    match refused.err().expect("it is refused") {
        Error::Http(response) => response.status().as_u16(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn foreign_pages_and_unknown_hosts_are_refused() {
    let files = Files::new();
    let node = lonely(files.api(loopback(None, None)), Default::default()).await;
    let server = http::serve(&node).await.unwrap();
    let address = server.addresses().tcp.unwrap();
    let tcp = Http::Tcp(address);
    let own = address.to_string();
    for (host, origin) in [
        (own.as_str(), "http://evil.example"),
        (own.as_str(), "null"),
        ("evil.example", "http://evil.example"),
    ] {
        let opened = Socket::open(&tcp, &[("host", host), ("origin", origin)]).await;
        assert_eq!(status(opened), 403, "{host} {origin}");
    }
    let opened = Socket::open(&tcp, &[("host", "evil.example")]).await;
    assert_eq!(status(opened), 403);
    let origin = format!("http://{own}");
    let opened = Socket::open(&tcp, &[("host", &own), ("origin", &origin)]).await;
    assert!(opened.is_ok(), "the node's own page");
    let unix = Http::Unix(server.socket().to_owned());
    let opened = Socket::open(&unix, &[("origin", "http://evil.example")]).await;
    assert_eq!(status(opened), 403);
    unix.get("/v1/session").await.error(400);
    // Over TCP, nobody knows the process.
    let mut socket = Socket::hello(&tcp, json!({ "ends_with_process": true })).await;
    assert_eq!(socket.closed().await.code, Code::BadRequest);
    server.stop().await;
}

/// The node stops reading when its answers are not read, and the other clients go on.
#[tokio::test]
async fn a_client_that_never_reads_is_cut_and_disturbs_nobody() {
    let served = served(1).await;
    let http = &served.https[0];
    let (mut mute, welcome) = Socket::start(http).await;
    let (mut other, _) = Socket::start(http).await;
    let query = json!({ "lock": { "n": 1, "lock": "a".repeat(200) } }).to_string();
    let flood = async {
        for _ in 0..1_000_000 {
            if mute.try_send(Message::text(query.clone())).await.is_err() {
                return std::future::pending().await;
            }
        }
        panic!("the node takes everything");
    };
    let served_meanwhile = async {
        for n in (1..400).step_by(2) {
            other.acquire(n, "b").await;
            other.granted().await;
            other.release(n + 1, n).await;
            other.done().await;
        }
    };
    let cut = async {
        until("it is cut", async || {
            let metrics = http.get("/metrics").await;
            let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
            metrics
                .contains("closed_total{code=\"too-slow\"} 1")
                .then_some(())
        })
        .await;
    };
    tokio::select! {
        () = flood => {}
        ((), ()) = async { tokio::join!(served_meanwhile, cut) } => {}
    }
    // Its session is not affected.
    let mut again = Socket::resume(http, &welcome, 0).await;
    again.welcome().await;
    served.stop().await;
}

/// More messages than may wait to be written to a client.
const FLOOD: u64 = 20_000;

/// The node reads on only as fast as its answers leave, so none is dropped, and the others go on.
#[tokio::test]
async fn a_client_that_sends_faster_than_it_is_answered_is_slowed_down() {
    let served = served(1).await;
    let http = &served.https[0];
    let (socket, _) = Socket::start(http).await;
    let (mut other, _) = Socket::start(http).await;
    let (mut sink, mut stream) = socket.stream.split();
    let flood = async {
        for n in 1..=FLOOD {
            let ping = json!({ "ping": { "n": n } }).to_string();
            sink.send(Message::text(ping)).await.unwrap();
        }
    };
    let answers = async {
        for n in 1..=FLOOD {
            let message = stream.next().await.expect("it is open").unwrap();
            let pong: NodeMessage = serde_json::from_str(message.to_text().unwrap()).unwrap();
            let NodeMessage::Pong(pong) = pong else {
                panic!("{pong:?}");
            };
            assert_eq!(pong.n, n);
        }
    };
    let served_meanwhile = async {
        for n in (1..100).step_by(2) {
            other.acquire(n, "b").await;
            other.granted().await;
            other.release(n + 1, n).await;
            other.done().await;
        }
    };
    tokio::join!(flood, answers, served_meanwhile);
    served.stop().await;
}

/// No node knows who holds these locks, so each answer takes a second.
#[tokio::test]
async fn many_slow_requests_delay_neither_pings_nor_other_clients() {
    const REQUESTS: u64 = 200;
    let forming = Forming::start().await;
    let http = &forming.https[0];
    let (mut socket, _) = Socket::start(http).await;
    let (mut other, _) = Socket::start(http).await;
    for n in 1..=REQUESTS {
        let lock = format!("lock {n}");
        socket
            .send(json!({ "acquire": { "n": n, "lock": lock, "wait_ms": 0 } }))
            .await;
    }
    socket.send(json!({ "ping": { "n": REQUESTS + 1 } })).await;
    other.send(json!({ "ping": { "n": 1 } })).await;
    assert!(matches!(other.next().await, NodeMessage::Pong(_)));
    assert!(matches!(socket.next().await, NodeMessage::Pong(_)));
    for _ in 0..REQUESTS {
        assert_eq!(socket.error().await.0, Code::Unavailable);
    }
    forming.stop().await;
}

#[tokio::test]
async fn a_client_that_reports_nothing_as_seen_is_busy() {
    let served = served(1).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let mut n = 0;
    let code = loop {
        n += 1;
        socket
            .send(json!({ "acquire": { "n": n, "lock": format!("lock {n}") } }))
            .await;
        match socket.next().await {
            NodeMessage::Granted(_) => {}
            NodeMessage::Error(failure) => break failure.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((code, n), (Code::Busy, 1025));
    socket
        .send(json!({ "ping": { "n": n + 1, "seen": 1024 } }))
        .await;
    assert!(matches!(socket.next().await, NodeMessage::Pong(_)));
    socket.acquire(n + 2, "one more").await;
    assert_eq!(socket.granted().await.n, n + 2);
    served.stop().await;
}

/// Bytes after the handshake that are no frames.
#[tokio::test]
async fn bytes_that_are_no_frames_end_the_connection() {
    let served = served(1).await;
    let mut stream = served.https[0].connect().await.unwrap();
    let request = "GET /v1/session HTTP/1.1\r\nhost: n\r\nconnection: upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.write_all(&[0xff; 100]).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(answer.contains("bad-message"), "{answer}");
    served.stop().await;
}

/// Number of processes that this one watches.
fn watched() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let watched = links.filter(|link| link.to_string_lossy().contains("pidfd"));
    watched.count()
}

async fn watches(count: usize) {
    until(&format!("{count} processes are watched"), async || {
        (watched() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_resumed_in_a_loop_watches_one_process() {
    let served = served(1).await;
    let http = &served.https[0];
    let hello = json!({ "ttl_ms": 600_000, "ends_with_process": true });
    let mut socket = Socket::hello(http, hello.clone()).await;
    let welcome = socket.welcome().await;
    let resume = json!({ "session": welcome.session, "secret": welcome.secret });
    for _ in 0..100 {
        let again = json!({ "resume": resume, "ends_with_process": true });
        socket = Socket::hello(http, again).await;
        socket.welcome().await;
    }
    watches(1).await;
    // The last hello counts.
    let mut socket = Socket::resume(http, &welcome, 0).await;
    socket.welcome().await;
    watches(0).await;
    // Watchers end with their sessions.
    for _ in 0..100 {
        let mut socket = Socket::hello(http, hello.clone()).await;
        socket.welcome().await;
        socket.send(json!({ "end": { "n": 1 } })).await;
        assert_eq!(socket.done().await, 1);
    }
    watches(0).await;
    served.stop().await;
}
