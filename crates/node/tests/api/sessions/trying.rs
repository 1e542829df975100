//! Requests that may not wait, and queries: they take a while, and hold up nothing else.

use serde_json::{Value, json};
use soloist_api::session::{Code, LocksAnswer, NodeMessage};
use tokio_tungstenite::tungstenite::Message;

use super::Socket;
use crate::cluster::served;

/// More than the node handles at a time.
const MANY: u64 = 200;

fn attempt(n: u64, lock: &str) -> Value {
    json!({ "acquire": { "n": n, "lock": lock, "wait_ms": 0 } })
}

fn text(message: &Value) -> Message {
    Message::text(message.to_string())
}

/// The connection ends before the node has asked who holds the lock.
#[tokio::test]
async fn a_request_that_may_not_wait_is_decided_although_its_connection_ends() {
    let served = served(2).await;
    let http = &served.https[0];
    served.https[1].hold("a").await;
    let (mut socket, welcome) = Socket::start(http).await;
    let last = [text(&attempt(1, "a")), Message::Close(None)];
    socket.send_at_once(last).await;
    assert_eq!(socket.try_next().await, None);
    let mut socket = Socket::resume(http, &welcome, 0).await;
    assert_eq!(socket.welcome().await.handled, 1);
    assert_eq!(socket.error().await.0, Code::NotGranted);
    served.stop().await;
}

#[tokio::test]
async fn a_ping_is_answered_while_very_many_queries_are_not() {
    let served = served(2).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let query = |n| text(&json!({ "lock": { "n": n, "lock": "a" } }));
    let ping = text(&json!({ "ping": { "n": MANY + 1 } }));
    let all = (1..=MANY).map(query).chain([ping]);
    socket.send_at_once(all).await;
    assert!(matches!(socket.next().await, NodeMessage::Pong(_)));
    for _ in 0..MANY {
        assert!(matches!(socket.next().await, NodeMessage::Lock(_)));
    }
    served.stop().await;
}

#[tokio::test]
async fn a_ping_is_answered_while_very_many_requests_are_not_decided() {
    let served = served(2).await;
    let lock = |n: u64| format!("lock-{n}");
    for n in 1..=MANY {
        served.https[1].hold(&lock(n)).await;
    }
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let ping = text(&json!({ "ping": { "n": MANY + 1 } }));
    let attempts = (1..=MANY).map(|n| text(&attempt(n, &lock(n))));
    socket.send_at_once(attempts.chain([ping])).await;
    assert!(matches!(socket.next().await, NodeMessage::Pong(_)));
    for _ in 0..MANY {
        assert_eq!(socket.error().await.0, Code::NotGranted);
    }
    served.stop().await;
}

/// Queries beyond those that are handled and those that wait are refused. Nothing else is.
#[tokio::test]
async fn queries_with_texts_that_are_longer_than_any_name_are_refused() {
    let served = served(1).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let (long, longest) = ("x".repeat(257), "x".repeat(256));
    for query in [
        json!({ "locks": { "n": 1, "prefix": long } }),
        json!({ "locks": { "n": 2, "sort": "wait", "prefix": long } }),
        json!({ "locks": { "n": 3, "after": long } }),
        json!({ "watch": { "n": 4, "prefix": long } }),
        json!({ "watch": { "n": 5, "all": true, "prefix": long } }),
    ] {
        socket.send(query).await;
        let (code, detail) = socket.error().await;
        assert_eq!(code, Code::BadRequest);
        assert!(
            detail.contains("has 257 bytes, and names of locks have at most 256: use"),
            "{detail}"
        );
    }
    let query = json!({ "locks": { "n": 6, "prefix": longest, "after": longest } });
    socket.send(query).await;
    let answer = socket.next().await;
    assert!(
        matches!(answer, NodeMessage::Locks(LocksAnswer { n: 6, .. })),
        "{answer:?}"
    );
    for path in ["/v1/locks?after=", "/v1/events?prefix="] {
        let answer = served.https[0].get(&format!("{path}{long}")).await;
        assert!(answer.error(400).detail.contains("has 257 bytes"));
    }
    served.stop().await;
}

#[tokio::test]
async fn queries_are_refused_while_too_many_wait() {
    let served = served(2).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let queries = 2_000;
    let query = |n| text(&json!({ "lock": { "n": n, "lock": "a" } }));
    let (mut answered, mut refused) = (0, 0);
    socket.send_at_once((1..=queries).map(query)).await;
    while answered + refused < queries {
        match socket.next().await {
            NodeMessage::Lock(_) => answered += 1,
            NodeMessage::Error(failure) => {
                assert_eq!(failure.code, Code::TooMany, "{}", failure.detail);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(answered >= MANY, "{answered} answered, {refused} refused");
    socket.acquire(queries + 1, "a").await;
    socket.granted().await;
    served.stop().await;
}
