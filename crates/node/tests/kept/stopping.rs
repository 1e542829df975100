//! A stopping node: its holds end when they are released or expire.

use std::time::Duration;

use soloist_api::{EndReason, Hold};
use soloist_node::{Guard, Locks, Moment, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{TIMEOUT, cluster};

/// Sends a request with an empty JSON object over a new connection.
async fn send(socket: &std::path::Path, method: &str, path: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\n\
         content-length: 2\r\nconnection: close\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn answer(mut stream: UnixStream) -> Hold {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_keeps_its_lock_until_its_promise_ends() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let nodes = &cluster.nodes;
    let server = http::serve(&nodes[2]).await.unwrap();
    let acquire = send(server.socket(), "POST", "/v1/locks/x/acquire").await;
    let hold = answer(acquire).await;
    let renew = format!("/v1/holds/{}/renew", hold.hold);
    let sent = Moment::now();
    let hold = answer(send(server.socket(), "POST", &renew).await).await;
    let promised = sent + Duration::from_millis(hold.valid_for_ms);
    let watch = format!("/v1/holds/{}?wait_ms=60000", hold.hold);
    let _unread = send(server.socket(), "GET", &watch).await;
    let next = nodes[0].lock("x").unwrap();
    let next = tokio::spawn(async move { next.acquire().await });
    let stops = nodes[2].clone();
    let stops = tokio::spawn(async move { stops.stop(Duration::ZERO).await });
    let next = timeout(TIMEOUT, next).await.expect("it is served").unwrap();
    let early = promised.since(Moment::now());
    assert!(early.is_zero(), "another one entered {early:?} too early");
    drop(next);
    stops.await.unwrap();
    server.stop().await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_embedded_guards() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let nodes = &cluster.nodes;
    let guard = nodes[2].lock("x").unwrap().acquire().await.unwrap();
    let promised = Moment::now() + guard.valid_for();
    let next = nodes[0].lock("x").unwrap();
    let next = tokio::spawn(async move { next.acquire().await });
    let stops = nodes[2].clone();
    let stops = tokio::spawn(async move { stops.stop(Duration::ZERO).await });
    let lost = timeout(TIMEOUT, guard.lost()).await.expect("it is told");
    assert_eq!(lost.reason, EndReason::NodeStopped);
    let next = timeout(TIMEOUT, next).await.expect("it is served").unwrap();
    let early = promised.since(Moment::now());
    assert!(early.is_zero(), "another one entered {early:?} too early");
    assert_eq!(guard.valid_for(), Duration::ZERO);
    drop(next);
    stops.await.unwrap();
    cluster.stop().await;
}
