//! Measures the memory that sessions and holds take of a node. The clients of this process add
//! nothing to speak of: their sockets have no buffers here.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Socket;
use crate::cluster::served;
use crate::http::{Http, Stream, resident};

const SESSIONS: usize = 1_000;
const HOLDS: u64 = 10_000;

/// Starts a session over a socket without a buffer, and returns when it is welcomed.
async fn start(http: &Http) -> Box<dyn Stream> {
    let mut stream = http.connect().await.unwrap();
    let request = "GET /v1/session HTTP/1.1\r\nhost: n\r\nconnection: upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let hello = br#"{"hello":{"ttl_ms":600000}}"#;
    // A text frame, with a mask of zeros.
    let head = [0x81, 0x80 | hello.len() as u8, 0, 0, 0, 0];
    let frame = [&head[..], hello].concat();
    stream.write_all(&frame).await.unwrap();
    let mut read = Vec::new();
    while !read.windows(9).any(|bytes| bytes == b"\"welcome\"") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{read:?}");
    }
    stream
}

#[tokio::test]
#[ignore = "prints figures for docs/sessions.md"]
async fn memory_of_sessions_and_holds() {
    let served = served(1).await;
    let http = &served.https[0];
    // What is allocated once is not counted.
    let (mut holder, _) = Socket::start(http).await;
    let _first = start(http).await;

    let before = resident();
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(start(http).await);
    }
    let each = (resident() - before) / SESSIONS as f64;
    println!("{:.1} KiB for each of {SESSIONS} sessions", each / 1024.0);

    let before = resident();
    for n in 1..=HOLDS {
        let seen = n - 1;
        let lock = format!("orders/customer-{n:08}");
        let acquire = json!({ "acquire": { "n": n, "lock": lock, "seen": seen } });
        holder.send(acquire).await;
        holder.granted().await;
    }
    let each = (resident() - before) / HOLDS as f64;
    println!("{:.1} KiB for each of {HOLDS} holds", each / 1024.0);
    served.stop().await;
}
