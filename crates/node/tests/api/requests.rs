//! Requests with ids: resent, cancelled, and with responses that are not read.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use soloist_api::{EndReason, ErrorKind, Hold, LockInfo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{served, until};
use crate::http::{Http, Stream};

const ID: &str = "0f0e0d0c-0b0a-0908-0706-050403020100";

/// Longer than any test takes, so a hold that ends within a test did not expire.
const TTL_MS: u64 = 600_000;

fn body(id: &str) -> Value {
    json!({ "ttl_ms": TTL_MS, "request_id": id })
}

/// Sends the request without reading the response.
async fn send(http: &Http, lock: &str, body: &Value) -> Box<dyn Stream> {
    let mut stream = http.connect().await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /v1/locks/{lock}/acquire HTTP/1.1\r\nhost: n\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn a_resent_request_gets_the_same_hold() {
    let served = served(1).await;
    let http = &served.https[0];
    for wait in [json!(null), json!(0), json!(60_000)] {
        let lock = format!("lock-{wait}");
        let mut body = body(&ID.replace("0f", &format!("{:02x}", wait.as_u64().unwrap_or(1) % 7)));
        body["wait_ms"] = wait;
        let first: Hold = http.acquire(&lock, body.clone()).await.ok();
        let again: Hold = http.acquire(&lock, body.clone()).await.ok();
        assert_eq!((&first.hold, first.fence), (&again.hold, again.fence));
        assert!(again.valid_for_ms <= 3_000, "{again:?}");
        let renew = format!("/v1/holds/{}/renew", first.hold);
        let _: Hold = http.post(&renew, json!({})).await.ok();
        let again: Hold = http.acquire(&lock, body.clone()).await.ok();
        assert_eq!(again.hold, first.hold);
        // The renewal confirmed the hold, and resending did not shorten it again.
        assert!(again.expires_in_ms > TTL_MS / 2, "{again:?}");
        assert_eq!(http.release(&first).await.status, 204);
        let late = http.acquire(&lock, body).await.error(410);
        assert_eq!(late.reason, Some(EndReason::Released));
    }
    served.stop().await;
}

#[tokio::test]
async fn a_request_that_is_resent_while_it_waits_keeps_its_place() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let first = send(http, "a", &body(ID)).await;
    served.waiting("a", 1).await;
    let spawn = |body: Value| {
        let http = http.clone();
        tokio::spawn(async move { http.acquire("a", body).await })
    };
    let other = spawn(json!({ "ttl_ms": TTL_MS }));
    served.waiting("a", 2).await;
    drop(first);
    let again = spawn(body(ID));
    // The resent request takes over the waiter: there are never three, and it stays ahead of the
    // other one.
    until("the first connection is seen to be gone", async || {
        let info: LockInfo = http.get("/v1/locks/a").await.ok();
        assert!(info.waiting <= 2, "{info:?}");
        (info.waiters[0].waited_for_ms > 2_500).then_some(())
    })
    .await;
    assert_eq!(http.release(&hold).await.status, 204);
    let again: Hold = again.await.unwrap().ok();
    assert_eq!(
        served.waiting("a", 1).await.holder.unwrap().fence,
        again.fence
    );
    assert_eq!(http.release(&again).await.status, 204);
    let _: Hold = other.await.unwrap().ok();
    served.stop().await;
}

#[tokio::test]
async fn the_later_of_two_connections_with_the_same_request_is_answered() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let spawn = || {
        let http = http.clone();
        tokio::spawn(async move { http.acquire("a", body(ID)).await })
    };
    let first = spawn();
    served.waiting("a", 1).await;
    let second = spawn();
    assert_eq!(first.await.unwrap().error(409).error, ErrorKind::Conflict);
    assert_eq!(http.release(&hold).await.status, 204);
    let _: Hold = second.await.unwrap().ok();
    served.stop().await;
}

/// Acquires a lock, and asserts that this takes far less than the time to live of an unread hold.
async fn soon_free(http: &Http, lock: &str) {
    let began = Instant::now();
    let wait = json!({ "wait_ms": TTL_MS });
    let _: Hold = http.acquire(lock, wait).await.ok();
    assert!(began.elapsed() < Duration::from_secs(30), "{lock}");
}

#[tokio::test]
async fn an_unread_grant_is_released_long_before_its_time_to_live() {
    let served = served(1).await;
    let http = &served.https[0];
    let half_read = async {
        let mut stream = send(http, "half-read", &body(ID)).await;
        stream.read_exact(&mut [0]).await.unwrap();
        drop(stream);
        soon_free(http, "half-read").await;
    };
    let never_read = async {
        let stream = send(http, "never-read", &body(&ID.replace("0f", "01"))).await;
        until("it is held", async || {
            let info: LockInfo = http.get("/v1/locks/never-read").await.ok();
            info.holder
        })
        .await;
        soon_free(http, "never-read").await;
        drop(stream);
    };
    let gone_while_it_waits = async {
        let hold = http.hold("gone").await;
        let waits = send(http, "gone", &body(&ID.replace("0f", "02"))).await;
        served.waiting("gone", 1).await;
        drop(waits);
        assert_eq!(http.release(&hold).await.status, 204);
        soon_free(http, "gone").await;
    };
    tokio::join!(half_read, never_read, gone_while_it_waits);
    served.stop().await;
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_id() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let waits = {
        let http = http.clone();
        tokio::spawn(async move { http.acquire("a", body(ID)).await })
    };
    served.waiting("a", 1).await;
    let path = format!("/v1/requests/{ID}");
    assert_eq!(http.delete(&path).await.status, 204);
    served.waiting("a", 0).await;
    assert_eq!(waits.await.unwrap().error(409).error, ErrorKind::Conflict);
    assert_eq!(
        http.delete(&path).await.error(404).error,
        ErrorKind::BadRequest
    );
    assert_eq!(http.release(&hold).await.status, 204);
    // Cancelling a granted request ends its hold.
    let hold: Hold = http.acquire("a", body(ID)).await.ok();
    assert_eq!(http.delete(&path).await.status, 204);
    let ended = http
        .get(&format!("/v1/holds/{}", hold.hold))
        .await
        .error(410);
    assert_eq!(ended.reason, Some(EndReason::Released));
    assert_eq!(http.delete(&path).await.status, 204);
    http.delete("/v1/requests/mine").await.error(400);
    served.stop().await;
}

#[tokio::test]
async fn an_invalid_id_is_refused() {
    let served = served(1).await;
    let http = &served.https[0];
    for id in ["", "1", "0123456789abcdef0123456789abcdefg"] {
        let error = http.acquire("a", body(id)).await.error(400);
        assert!(error.detail.contains("UUID"), "{}", error.detail);
    }
    let _: Hold = http.acquire("a", body(ID)).await.ok();
    let error = http.acquire("b", body(ID)).await.error(409);
    assert_eq!(error.error, ErrorKind::Conflict);
    assert!(error.detail.contains("\"a\""), "{}", error.detail);
    served.stop().await;
}
