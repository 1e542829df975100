//! Tests of callers that spin before they sleep.

use std::time::Duration;

use soloist_client::{AcquireError, Client, Guard, Locks};

use crate::{Nodes, held, soon, until, waiting};

/// The longest that is allowed, so that answers come while callers spin.
const SPIN: Duration = Duration::from_millis(1);

async fn spinning_client(nodes: &Nodes, node: usize) -> Client {
    let client = Client::builder().spin(SPIN);
    client.connect(nodes.target(node)).await.unwrap()
}

// The nodes need a thread of their own: a caller that spins blocks its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spinning_client_acquires_and_releases() {
    let nodes = Nodes::start(1).await;
    let client = spinning_client(&nodes, 0).await;
    let mut last = held(&client, "a").await.fence();
    until("an answer came while a caller was spinning", async || {
        let guard = held(&client, "a").await;
        assert!(guard.fence() > last);
        last = guard.fence();
        guard.release().await.unwrap();
        client.spin_hits() > 0
    })
    .await;
}

#[tokio::test]
async fn without_a_limit_no_caller_spins() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    for _ in 0..20 {
        held(&client, "a").await.release().await.unwrap();
    }
    assert_eq!(client.spin_hits(), 0);
}

// The first rounds spin and miss. In later ones the waiter sleeps at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_comes_after_spinning_wakes_the_waiter() {
    let nodes = Nodes::start(1).await;
    let (holder, waiter) = (nodes.client(0).await, spinning_client(&nodes, 0).await);
    for _ in 0..20 {
        let guard = held(&holder, "a").await;
        let waits = tokio::spawn({
            let lock = waiter.lock("a").unwrap();
            async move { lock.acquire().await }
        });
        until("it waits", async || waiting(&holder, "a").await == 1).await;
        guard.release().await.unwrap();
        let granted = soon("granted", waits).await.unwrap().unwrap();
        granted.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spinning_waiter_is_told_that_its_node_is_gone() {
    let mut nodes = Nodes::start(1).await;
    let (holder, waiter) = (nodes.client(0).await, spinning_client(&nodes, 0).await);
    let _guard = held(&holder, "a").await;
    let waits = tokio::spawn({
        let lock = waiter.lock("a").unwrap();
        async move { lock.acquire().await }
    });
    until("it waits", async || waiting(&holder, "a").await == 1).await;
    nodes.cut(0);
    let refused = soon("refused", waits).await.unwrap();
    assert!(
        matches!(refused, Err(AcquireError::Unavailable(_))),
        "{refused:?}"
    );
}
