//! Acquiring, renewing, watching and releasing holds.

use std::time::{Duration, Instant};

use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use serde_json::json;
use soloist_api::{EndReason, ErrorKind, Hold, LockInfo, LockState};

use crate::cluster::{served, until};
use crate::http::request;

#[tokio::test]
async fn a_lock_is_acquired_and_renewed_without_a_body() {
    let served = served(1).await;
    let http = &served.https[0];
    let send = async |path: &str, name: HeaderName, value: &'static str| {
        let mut request = request(Method::POST, path, None);
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
        http.send(request).await
    };
    for (name, value) in [
        (ACCEPT, "*/*"),
        (CONTENT_TYPE, "application/json"),
        (CONTENT_TYPE, "application/x-www-form-urlencoded"),
        (ORIGIN, "http://node"),
    ] {
        let hold: Hold = send("/v1/locks/a/acquire", name.clone(), value).await.ok();
        let renew = format!("/v1/holds/{}/renew", hold.hold);
        let renewed: Hold = send(&renew, name, value).await.ok();
        assert_eq!(renewed.hold, hold.hold);
        // A browser sends this for any page, without asking the node first.
        let foreign = "http://evil.example";
        let refused = send(&renew, ORIGIN, foreign).await.error(403);
        assert!(refused.detail.contains(foreign), "{}", refused.detail);
        assert_eq!(http.release(&hold).await.status, 204);
        send("/v1/locks/a/acquire", ORIGIN, foreign)
            .await
            .error(403);
    }
    served.stop().await;
}

#[tokio::test]
async fn a_lock_is_acquired_renewed_seen_and_released() {
    let served = served(3).await;
    let http = &served.https[0];
    let body = json!({ "owner": "ünï 1", "ttl_ms": 5_000 });
    let hold: Hold = http.acquire("nightly", body).await.ok();
    assert_eq!(hold.lock, "nightly");
    assert_eq!(hold.hold.len(), 32);
    assert!((1..=5_000).contains(&hold.valid_for_ms), "{hold:?}");
    assert!((1..=5_000).contains(&hold.expires_in_ms), "{hold:?}");

    let path = format!("/v1/holds/{}", hold.hold);
    let seen: Hold = http.get(&path).await.ok();
    assert_eq!((&seen.hold, seen.fence), (&hold.hold, hold.fence));
    let renew = format!("{path}/renew");
    let renewed = http.post(&renew, json!({ "ttl_ms": 60_000 }));
    let renewed: Hold = renewed.await.ok();
    assert!(renewed.expires_in_ms > 50_000, "{renewed:?}");
    // The promise is also limited by the node's lease.
    assert!(renewed.valid_for_ms < 50_000, "{renewed:?}");
    // Without `ttl_ms`, the hold is renewed for the same time as before.
    let renewed: Hold = http.send(request(Method::POST, &renew, None)).await.ok();
    assert!(renewed.expires_in_ms > 50_000, "{renewed:?}");

    let info: LockInfo = served.https[2].get("/v1/locks/nightly").await.ok();
    assert_eq!(info.state, LockState::Held);
    let holder = info.holder.unwrap();
    assert!(holder.expires_in_ms > Some(50_000), "{holder:?}");
    assert_eq!(
        (holder.owner.as_str(), holder.node.as_str()),
        ("ünï 1", "n1")
    );
    assert_eq!(holder.fence, hold.fence);

    let released = http.release(&hold).await;
    assert_eq!((released.status.as_u16(), released.body.len()), (204, 0));
    let again: Hold = served.https[1].hold("nightly").await;
    assert!(again.fence > hold.fence);
    served.stop().await;
}

#[tokio::test]
async fn a_released_hold_stays_released() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    assert_eq!(http.release(&hold).await.status, 204);
    let path = format!("/v1/holds/{}", hold.hold);
    for gone in [
        http.release(&hold).await,
        http.get(&path).await,
        http.post(&format!("{path}/renew"), json!({})).await,
    ] {
        let error = gone.error(410);
        assert_eq!(error.error, ErrorKind::Ended);
        assert_eq!(error.reason, Some(EndReason::Released));
    }
    served.stop().await;
}

#[tokio::test]
async fn a_hold_that_is_not_renewed_expires_and_its_watcher_is_told_immediately() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold: Hold = http.acquire("a", json!({ "ttl_ms": 200 })).await.ok();
    let began = Instant::now();
    let path = format!("/v1/holds/{}?wait_ms=60000", hold.hold);
    let error = http.get(&path).await.error(410);
    assert_eq!(error.reason, Some(EndReason::Expired));
    assert!(began.elapsed() < Duration::from_secs(30), "it waited on");
    let next = http.hold("a").await;
    assert!(next.fence > hold.fence);
    served.stop().await;
}

#[tokio::test]
async fn a_watcher_of_a_live_hold_is_answered_at_its_timeout() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let began = Instant::now();
    let path = format!("/v1/holds/{}?wait_ms=100", hold.hold);
    let _: Hold = http.get(&path).await.ok();
    assert!(began.elapsed() >= Duration::from_millis(100));
    served.stop().await;
}

#[tokio::test]
async fn holds_of_other_nodes_and_unknown_holds_are_refused() {
    let served = served(3).await;
    let hold = served.https[0].hold("a").await;
    let other = &served.https[1];
    let path = format!("/v1/holds/{}", hold.hold);
    for unknown in [
        other.release(&hold).await,
        other.get(&path).await,
        other.post(&format!("{path}/renew"), json!({})).await,
        other.delete(&format!("/v1/holds/{:032x}", 0)).await,
        other.delete("/v1/holds/mine").await,
    ] {
        assert_eq!(unknown.error(404).error, ErrorKind::NoSuchHold);
    }
    assert_eq!(served.https[0].release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn a_waiter_is_told_when_its_time_is_over() {
    let served = served(3).await;
    let _hold = served.https[0].hold("a").await;
    let began = Instant::now();
    let late = served.https[1]
        .acquire("a", json!({ "wait_ms": 100 }))
        .await;
    assert_eq!(late.error(409).error, ErrorKind::NotGranted);
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert_eq!(served.waiting("a", 0).await.state, LockState::Held);
    served.stop().await;
}

#[tokio::test]
async fn a_waiter_is_served_when_the_holder_leaves() {
    let served = served(3).await;
    let hold = served.https[0].hold("a").await;
    let http = served.https[2].clone();
    let waits = tokio::spawn(async move { http.hold("a").await });
    let info = served.waiting("a", 1).await;
    assert_eq!(info.waiters[0].node, "n3");
    assert_eq!(info.waiters[0].owner, "anonymous");
    assert_eq!(info.waiters[0].position, 1);
    assert_eq!(served.https[0].release(&hold).await.status, 204);
    assert!(waits.await.unwrap().fence > hold.fence);
    served.stop().await;
}

#[tokio::test]
async fn a_try_gets_a_free_lock_wherever_its_token_is_and_gives_up_a_held_one_at_once() {
    let served = served(3).await;
    for number in 0..20 {
        let http = &served.https[number % 3];
        let lock = format!("free-{}", number / 2);
        let hold: Hold = http.acquire(&lock, json!({ "wait_ms": 0 })).await.ok();
        assert_eq!(http.release(&hold).await.status, 204);
    }
    let hold = served.https[0].hold("a").await;
    for http in &served.https {
        let taken = http.acquire("a", json!({ "wait_ms": 0 })).await.error(409);
        assert_eq!(taken.error, ErrorKind::NotGranted);
        assert!(taken.detail.contains("\"a\""), "{}", taken.detail);
    }
    served.waiting("a", 0).await;
    assert_eq!(served.https[0].release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn one_of_several_simultaneous_tries_succeeds() {
    let served = served(3).await;
    for round in 0..10 {
        let tries: Vec<_> = (0..6)
            .map(|number| {
                let http = served.https[number % 3].clone();
                let lock = format!("round-{round}");
                let body = json!({ "wait_ms": 0, "ttl_ms": 60_000 });
                tokio::spawn(async move { http.acquire(&lock, body).await })
            })
            .collect();
        let mut got = 0;
        for answer in tries {
            let answer = answer.await.unwrap();
            match answer.status.as_u16() {
                200 => got += 1,
                _ => assert_eq!(answer.error(409).error, ErrorKind::NotGranted),
            }
        }
        assert_eq!(got, 1, "in round {round}");
    }
    served.stop().await;
}

#[tokio::test]
async fn waiters_that_disconnect_leave_the_queue_immediately() {
    let served = served(3).await;
    let hold = served.https[0].hold("a").await;
    let http = served.https[1].clone();
    let waits = tokio::spawn(async move { http.acquire("a", json!({})).await });
    served.waiting("a", 1).await;
    // Aborting the task closes its connection.
    waits.abort();
    served.waiting("a", 0).await;
    assert_eq!(served.https[0].release(&hold).await.status, 204);
    let next = served.https[2].hold("a").await;
    assert!(next.fence > hold.fence);
    served.stop().await;
}

#[tokio::test]
async fn names_are_percent_encoded_text() {
    let served = served(2).await;
    for (written, name) in [
        ("a%2Fb%2Fc", "a/b/c"),
        ("100%25", "100%"),
        ("gr%C3%B6%C3%9Fe", "größe"),
        ("a+b%20c", "a+b c"),
        ("%2E%2E", ".."),
    ] {
        let hold = served.https[0].hold(written).await;
        assert_eq!(hold.lock, name);
        let info: LockInfo = served.https[1]
            .get(&format!("/v1/locks/{written}"))
            .await
            .ok();
        assert_eq!((info.name.as_str(), info.state), (name, LockState::Held));
    }
    served.stop().await;
}

#[tokio::test]
async fn invalid_input_is_refused_with_value_and_limit() {
    let served = served(1).await;
    let http = &served.https[0];
    let long = "x".repeat(257);
    for (lock, body, says) in [
        ("a", json!({ "ttl_ms": 0 }), &["0ns", "3600s"][..]),
        ("a", json!({ "ttl_ms": 3_600_001 }), &["3600.001s", "3600s"]),
        ("a", json!({ "ttl_ms": u64::MAX }), &["3600s"]),
        ("a", json!({ "ttl_ms": -1 }), &["-1"]),
        (
            "a",
            json!({ "wait_ms": 86_400_001 }),
            &["86400001", "86400000"],
        ),
        ("a", json!({ "wait_ms": "long" }), &["long"]),
        ("a", json!({ "owner": long }), &["257", "256"]),
        ("a", json!({ "owner": "a\nb" }), &["\\n"]),
        ("a", json!({ "ttl": 1 }), &["ttl", "ttl_ms"]),
        ("a", json!([]), &[]),
        (&long, json!({}), &["257", "256"]),
        ("", json!({}), &["empty", "256"]),
        ("%00", json!({}), &["\\0"]),
        ("%FF", json!({}), &["UTF-8"]),
    ] {
        let error = http.acquire(lock, body.clone()).await.error(400);
        assert_eq!(error.error, ErrorKind::BadRequest);
        for part in says {
            assert!(error.detail.contains(part), "{body}: {}", error.detail);
        }
    }
    let hold = http.hold("a").await;
    let path = format!("/v1/holds/{}", hold.hold);
    let renew = format!("{path}/renew");
    assert!(
        http.post(&renew, json!({ "ttl_ms": 0 }))
            .await
            .error(400)
            .detail
            .contains("3600s")
    );
    assert!(
        http.get(&format!("{path}?wait_ms=86400001"))
            .await
            .error(400)
            .detail
            .contains("86400000")
    );
    for wrong in ["wait_ms=-1", "wait_ms=x", "wait=1", "wait_ms=1&wait_ms=2"] {
        http.get(&format!("{path}?{wrong}")).await.error(400);
    }
    // None of these requests affected the hold.
    assert_eq!(http.release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn a_stopping_node_answers_waiters_and_watchers_and_grants_nothing() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let spawn = |request| {
        let http = http.clone();
        tokio::spawn(async move { http.send(request).await })
    };
    let waits = spawn(request(
        Method::POST,
        "/v1/locks/a/acquire",
        Some(json!({})),
    ));
    served.waiting("a", 1).await;
    let path = format!("/v1/holds/{}?wait_ms=60000", hold.hold);
    let watches = spawn(request(Method::GET, &path, None));
    let node = served.cluster.nodes[0].clone();
    let stops = tokio::spawn(async move { node.stop(Duration::from_secs(60)).await });
    assert_eq!(waits.await.unwrap().error(503).error, ErrorKind::Stopping);
    until("it says that it stops", async || {
        (http.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(
        http.acquire("b", json!({})).await.error(503).error,
        ErrorKind::Stopping
    );
    // The node stops once its last hold is released.
    assert_eq!(http.release(&hold).await.status, 204);
    assert_eq!(
        watches.await.unwrap().error(410).reason,
        Some(EndReason::Released)
    );
    stops.await.unwrap();
    served.stop().await;
}
