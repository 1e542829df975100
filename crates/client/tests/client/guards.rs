//! Tests of guards: holding, renewal, loss and release.

use std::time::Duration;

use soloist_client::api::LockState;
use soloist_client::{
    AcquireError, Client, ClientError, LossReason, Moment, ReleaseError, reached,
};

use crate::{Nodes, held, soon, until, waiting};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn fences_rise_from_holder_to_holder() {
    let nodes = Nodes::start(2).await;
    let clients = [nodes.client(0).await, nodes.client(1).await];
    let mut last = 0;
    for round in 0..20 {
        let guard = held(&clients[round % 2], "a/b").await;
        assert_eq!(guard.lock(), "a/b");
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
        let denied = soon("denied", two.acquire("a").wait(wait).into_future()).await;
        assert!(matches!(denied, Err(AcquireError::NotGranted { lock, .. }) if lock == "a"));
        assert!(Moment::now().since(asked) >= wait);
    }
    guard.release().await.unwrap();
    held(&two, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_guard_outlives_its_time_to_live_by_renewal() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    let ttl = Duration::from_millis(600);
    let guard = client.acquire("a").ttl(ttl).await.unwrap();
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
    let (one, two) = (nodes.client(0).await, nodes.client(0).await);
    let guard = held(&one, "a").await;
    let ttl = Duration::from_millis(800);
    let asked = Moment::now();
    let waiter = tokio::spawn(async move {
        let granted = two.acquire("a").ttl(ttl).await;
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
async fn who_no_longer_wants_the_lock_leaves_the_queue() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client(0).await, nodes.client(1).await);
    let guard = held(&one, "a").await;
    let waiter = tokio::spawn(two.acquire("a").into_future());
    until("it waits", async || waiting(&one, "a").await == 1).await;
    waiter.abort();
    until("it has left", async || waiting(&one, "a").await == 0).await;
    guard.release().await.unwrap();
    held(&one, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_dropped_guard_is_released_in_the_background() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client(0).await, nodes.client(1).await);
    let guard = one.acquire("a").ttl(LONG).await.unwrap();
    drop(guard);
    held(&two, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_loss_is_told_at_once_with_its_reason() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    let guard = client.acquire("a").ttl(LONG).await.unwrap();
    assert!(!guard.valid_for().is_zero());
    nodes.cluster.nodes[0].stop(Duration::ZERO).await;
    let loss = soon("it is told", guard.lost()).await;
    assert_eq!(loss.reason, LossReason::NodeStopped);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    assert_eq!(guard.lost().await, loss, "as often as one asks");
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Lost(same) if same == loss));
}

#[tokio::test]
async fn without_renewal_a_guard_ends_by_its_own_clock() {
    let mut nodes = Nodes::start(2).await;
    let client = nodes.client(0).await;
    let ttl = Duration::from_millis(700);
    let guard = client.acquire("a").ttl(ttl).await.unwrap();
    nodes.cut(0);
    let loss = soon("it notices", guard.lost()).await;
    assert_eq!(loss.reason, LossReason::Expired);
    assert_eq!(loss.since, guard.valid_until());
    assert_eq!(guard.valid_for(), Duration::ZERO);
    // The node has ended the hold as well, so another client gets the lock.
    let other = nodes.client(1).await;
    let next = held(&other, "a").await;
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
}

#[tokio::test]
async fn what_the_node_refuses_is_said_in_its_words() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    let long = "x".repeat(257);
    for (acquire, word) in [
        (client.acquire(""), "1 to 256"),
        (client.acquire(&long), "256"),
        (client.acquire("a").ttl(Duration::ZERO), "longer than 0"),
        (client.acquire("a").ttl(LONG * 2), "3600"),
        (client.acquire("a").owner(&long), "256"),
    ] {
        let error = soon("refused", acquire.into_future()).await.err().unwrap();
        let refused = matches!(&error, AcquireError::Client(ClientError::Refused { .. }));
        assert!(refused, "{error:?}");
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
            let client = Client::connect(target).await.unwrap();
            let ttl = Duration::from_secs(1);
            client.acquire("a").ttl(ttl).await.unwrap()
        })
    });
    let guard = acquired.await.unwrap();
    let loss = soon("nobody renews it", guard.lost()).await;
    assert_eq!(loss.reason, LossReason::Expired);
    assert!(guard.valid_for().is_zero());
}
