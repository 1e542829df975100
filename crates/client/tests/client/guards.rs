//! Tests of guards: holding, renewal, loss and release.

use std::time::Duration;

use soloist_client::api::LockState;
use soloist_client::{
    AcquireError, Client, EndReason, Fence, Guard, LockName, Locks, Moment, ReleaseError, Request,
    reached,
};

use crate::{Nodes, held, soon, until, waiting};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn fences_rise_from_holder_to_holder() {
    let nodes = Nodes::start(2).await;
    let clients = [nodes.client(0).await, nodes.client(1).await];
    let mut last = Fence::default();
    for round in 0..20 {
        let guard = held(&clients[round % 2], "a/b").await;
        assert_eq!(guard.name().as_str(), "a/b");
        assert!(guard.fence() > last);
        last = guard.fence();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn one_holder_at_a_time_and_no_waiting_if_none_is_wanted() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client(0).await, nodes.client(1).await);
    let guard = held(&one, "a").await;
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let asked = Moment::now();
        let lock = two.lock("a").unwrap();
        let denied = soon("denied", lock.acquire_within(wait)).await;
        assert!(
            matches!(denied, Err(AcquireError::NotGranted { lock, .. }) if lock.as_str() == "a")
        );
        assert!(Moment::now().since(asked) >= wait);
    }
    guard.release().await.unwrap();
    held(&two, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_guard_outlives_its_time_to_live_by_renewal() {
    let nodes = Nodes::start(1).await;
    let ttl = Duration::from_millis(600);
    let client = nodes.client_with_ttl(0, ttl).await;
    let guard = held(&client, "a").await;
    let first = guard.valid_until();
    while guard.valid_until() < first + ttl * 3 {
        let known = guard.valid_until();
        soon("it is renewed", guard.renewed_after(known)).await;
        // Counted from when the renewal was sent, so never longer than the node holds it.
        assert!(guard.valid_for() <= ttl);
    }
    guard.release().await.unwrap();
}

#[tokio::test]
async fn validity_is_counted_from_before_the_answer_also_after_a_long_wait() {
    let nodes = Nodes::start(1).await;
    let ttl = Duration::from_millis(800);
    let (one, two) = (nodes.client(0).await, nodes.client_with_ttl(0, ttl).await);
    let guard = held(&one, "a").await;
    let asked = Moment::now();
    let waiter = tokio::spawn(async move {
        let granted = two.lock("a").unwrap().acquire().await;
        (granted, Moment::now())
    });
    until("it waits", async || waiting(&one, "a").await == 1).await;
    reached(asked + ttl * 2).await;
    guard.release().await.unwrap();
    let (granted, answered) = soon("granted", waiter).await.unwrap();
    let granted = granted.unwrap();
    assert!(
        granted.valid_until() > answered,
        "it waited longer than the ttl, and is valid"
    );
    assert!(granted.valid_until() <= answered + ttl);
    granted.release().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_waiter_leaves_the_queue() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client(0).await, nodes.client(1).await);
    let guard = held(&one, "a").await;
    let lock = two.lock("a").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    until("it waits", async || waiting(&one, "a").await == 1).await;
    waiter.abort();
    until("it has left", async || waiting(&one, "a").await == 0).await;
    guard.release().await.unwrap();
    held(&one, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_dropped_guard_is_released_in_the_background() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client_with_ttl(0, LONG).await, nodes.client(1).await);
    drop(held(&one, "a").await);
    held(&two, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_loss_is_reported_immediately_with_its_reason() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client_with_ttl(0, LONG).await;
    let guard = held(&client, "a").await;
    assert!(!guard.valid_for().is_zero());
    nodes.cluster.nodes[0].stop(Duration::ZERO).await;
    let loss = soon("it is told", guard.lost()).await;
    assert_eq!(loss.reason, EndReason::NodeStopped);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    assert_eq!(guard.lost().await, loss, "as often as one asks");
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Lost(same) if same == loss));
}

#[tokio::test]
async fn without_renewal_a_guard_ends_by_its_own_clock() {
    let mut nodes = Nodes::start(2).await;
    let client = nodes.client_with_ttl(0, Duration::from_millis(700)).await;
    let guard = held(&client, "a").await;
    nodes.cut(0);
    let loss = soon("it notices", guard.lost()).await;
    assert_eq!(loss.reason, EndReason::Expired);
    assert_eq!(loss.since, guard.valid_until());
    assert_eq!(guard.valid_for(), Duration::ZERO);
    // The node has ended the hold as well, so another client gets the lock.
    let other = nodes.client(1).await;
    let next = held(&other, "a").await;
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
}

#[tokio::test]
async fn refusals_are_shown_in_the_nodes_words() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    for (name, word) in [("", "1 to 256"), ("x".repeat(257).as_str(), "256")] {
        let error = client.lock(name).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        let error = client.lock_info(name).await.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let request = |name: &str| Request::new(LockName::new(name).unwrap());
    for (ttl, request, word) in [
        (Some(Duration::ZERO), request("a"), "more than 0"),
        (Some(LONG * 2), request("a"), "3600"),
        (None, request("a").owner(&"x".repeat(257)), "256"),
        (None, request("a").owner("a\nb"), "control character"),
    ] {
        let client = match ttl {
            Some(ttl) => nodes.client_with_ttl(0, ttl).await,
            None => client.clone(),
        };
        let error = soon("refused", client.request(request))
            .await
            .err()
            .unwrap();
        assert!(matches!(&error, AcquireError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let state = client.lock_info("a").await.unwrap().state;
    assert_eq!(state, LockState::Free);
}

#[tokio::test]
async fn a_guard_that_outlives_its_runtime_is_lost_in_time() {
    let nodes = Nodes::start(1).await;
    let target = nodes.target(0);
    let acquired = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = Client::builder().ttl(Duration::from_secs(1));
            let client = client.connect(target).await.unwrap();
            held(&client, "a").await
        })
    });
    let guard = acquired.await.unwrap();
    let loss = soon("no task renews it", guard.lost()).await;
    assert_eq!(loss.reason, EndReason::Expired);
    assert!(guard.valid_for().is_zero());
}

/// The node holds the answer back, because no caller waits for it: until the next ping, if nothing
/// asks for it.
#[tokio::test]
async fn settling_does_not_wait_for_the_next_ping() {
    let nodes = Nodes::start_steady(1).await;
    let client = nodes.client_with_ttl(0, Duration::from_secs(60)).await;
    let began = Moment::now();
    drop(held(&client, "a").await);
    client.settle(LONG).await;
    assert!(Moment::now().since(began) < Duration::from_secs(15));
}
