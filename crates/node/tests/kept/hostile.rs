//! Bytes that no node sends to a keeper, on a cluster without TLS, where everybody on this machine may speak.

use std::time::Duration;

use soloist_node::config::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{PATIENCE, settle, start};

/// Says something to a node, and hears what it says until it closes.
async fn say(to: &Address, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to.to_string()).await.unwrap();
    // It may be closed before all is said.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut heard = Vec::new();
    let hearing = stream.read_to_end(&mut heard);
    let _ = timeout(PATIENCE, hearing).await.expect("it is closed");
    heard
}

fn frame(content: &[u8]) -> Vec<u8> {
    let length = 8 + content.len() as u32;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend([0; 8]);
    bytes.extend(content);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_told_why_and_do_no_harm() {
    let (cluster, _folder) = start(3, "raymond", false).await;
    let preface = b"SOLOMEMB";
    let with = |rest: &[u8]| [preface, rest].concat();
    let hello = |version: u8, from: &str, to: &str| {
        let mut content = vec![version];
        content.extend([7; 32]);
        for name in [from, to] {
            content.push(name.len() as u8);
            content.extend(name.as_bytes());
        }
        with(&frame(&content))
    };
    for (bytes, word) in [
        (with(&frame(b"")), "cannot be read"),
        (with(&frame(&[255; 900])), "cannot be read"),
        (with(&u32::MAX.to_le_bytes()), "a frame of 4294967295 bytes"),
        (with(&[3, 0, 0, 0]), "a frame of 3 bytes"),
        (hello(9, "n2", "n1"), "speaks version 9"),
        (hello(2, "n2", "n9"), "looks for keeper n9"),
        (
            hello(2, "n2", "n1"),
            "the configurations of nodes n2 and n1 differ",
        ),
    ] {
        let heard = say(&cluster.addresses[0], &bytes).await;
        let heard = String::from_utf8_lossy(&heard);
        assert!(heard.contains(word), "no {word:?} in {heard:?}");
    }
    for silent in [
        &b"SOLOMEMB"[..],
        b"SOLOMEM",
        b"SOLO",
        b"SOLOXXXX",
        b"SOLOKEEP",
    ] {
        say(&cluster.addresses[1], silent).await;
    }
    // They stand as before, and the lock works.
    settle(&cluster.nodes).await;
    assert_eq!(cluster.nodes[0].epoch(), Some(1));
    let lock = cluster.nodes[2].lock("x").unwrap();
    let guard = lock.try_acquire(PATIENCE).await.unwrap();
    assert!(guard.valid_for().unwrap() > Duration::ZERO);
    guard.release().await.unwrap();
    cluster.stop().await;
}
