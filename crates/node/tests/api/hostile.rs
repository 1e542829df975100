//! Malformed requests.

use hyper::{Method, Request};
use serde_json::json;
use soloist_api::{ErrorKind, Hold};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{served, until};
use crate::http::{Answer, Http, request};

/// Sends raw bytes, then reads until the node closes the connection.
async fn raw(http: &Http, bytes: &[u8]) -> String {
    let mut stream = http.connect().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn post(http: &Http, kind: Option<&str>, body: Vec<u8>) -> Answer {
    let mut request = Request::post("/v1/locks/a/acquire").header("host", "node");
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    http.send(request.body(body.into()).unwrap()).await
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let served = served(1).await;
    let http = &served.https[0];
    for path in [
        "/",
        "/v1",
        "/v2/locks",
        "/v1/locks/",
        "/v1/locks/a/b/acquire",
        "/v1/holds",
        "/%ff",
    ] {
        let error = http.get(path).await.error(404);
        assert_eq!(error.error, ErrorKind::BadRequest);
        assert!(error.detail.contains("/openapi.json"), "{}", error.detail);
    }
    for (method, path, allowed) in [
        (Method::GET, "/v1/locks/a/acquire", "POST"),
        (Method::POST, "/v1/locks/a", "GET,HEAD"),
        (Method::PUT, "/v1/holds/a", "GET,HEAD,DELETE"),
        (Method::DELETE, "/healthz", "GET,HEAD"),
        (Method::TRACE, "/v1/cluster", "GET,HEAD"),
    ] {
        let answer = http.send(request(method.clone(), path, None)).await;
        assert_eq!(answer.error(405).error, ErrorKind::BadRequest);
        assert_eq!(answer.headers["allow"], allowed, "{method} {path}");
        let answer = http.send(request(Method::OPTIONS, path, None)).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
        assert_eq!(answer.headers["allow"], allowed, "{method} {path}");
    }
    let head = http.send(request(Method::HEAD, "/v1/cluster", None)).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    served.stop().await;
}

#[tokio::test]
async fn bodies_that_are_not_json_or_too_long() {
    let served = served(1).await;
    let http = &served.https[0];
    let json = Some("application/json");
    for broken in [
        &b"{"[..],
        b" ",
        b"null",
        b"[]",
        b"{}{}",
        b"\xff",
        b"{\"owner\": \"\xff\"}",
    ] {
        let error = post(http, json, broken.to_vec()).await.error(400);
        assert_eq!(error.error, ErrorKind::BadRequest);
    }
    let deep = [b"{\"owner\":".to_vec(), b"[".repeat(30_000)].concat();
    post(http, json, deep).await.error(400);
    for kind in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some(""),
    ] {
        let error = post(http, kind, b"{}".to_vec()).await.error(415);
        assert!(
            error.detail.contains("application/json"),
            "{}",
            error.detail
        );
    }
    let error = post(http, json, b" ".repeat((64 << 10) + 1))
        .await
        .error(413);
    assert!(error.detail.contains("65536"), "{}", error.detail);
    let most = [b"{}".to_vec(), b" ".repeat((64 << 10) - 2)].concat();
    let hold: Hold = post(http, Some("Application/JSON; charset=utf-8"), most)
        .await
        .ok();
    assert_eq!(http.release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn bytes_that_are_not_http() {
    let served = served(1).await;
    let http = &served.https[0];
    assert!(
        raw(http, b"\x16\x03\x01\x00\x05hello\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 400")
    );
    assert!(
        raw(http, b"GET / HTTP/9.9\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 4")
    );
    let long = [
        b"GET /".to_vec(),
        b"x".repeat(100 << 10),
        b" HTTP/1.1\r\n\r\n".to_vec(),
    ]
    .concat();
    let answer = raw(http, &long).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    let heads = [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"a: b\r\n".repeat(1000),
        b"\r\n".to_vec(),
    ]
    .concat();
    let answer = raw(http, &heads).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    assert_eq!(http.get("/healthz").await.body, "ok");
    served.stop().await;
}

#[tokio::test]
async fn a_pipelining_client_still_leaves_the_queue_when_it_disconnects() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let mut stream = http.connect().await.unwrap();
    let body = json!({ "wait_ms": 1000 }).to_string();
    let acquire = format!(
        "POST /v1/locks/a/acquire HTTP/1.1\r\nhost: n\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(acquire.as_bytes()).await.unwrap();
    stream.write_all(acquire.as_bytes()).await.unwrap();
    served.waiting("a", 1).await;
    drop(stream);
    // The node does not notice the disconnect while a pipelined request is unread. It does when the
    // first wait times out.
    served.waiting("a", 0).await;
    assert_eq!(http.release(&hold).await.status, 204);
    until("no client waits or holds", async || {
        let locks: soloist_api::LockList = http.get("/v1/locks").await.ok();
        locks.locks.is_empty().then_some(())
    })
    .await;
    served.stop().await;
}
