//! Tests of queries and events: holders, waiters, pages, and the cluster.

use std::collections::BTreeSet;

use soloist_client::api::{EventKind, LockState};
use soloist_client::{Guard, Locks};

use crate::{Nodes, held, soon, until, waiting};

#[tokio::test]
async fn holders_and_waiters() {
    let nodes = Nodes::start(2).await;
    let (one, two) = (nodes.client(0).await, nodes.client(1).await);
    let lock = one.lock("a/ü").unwrap().owner("ann");
    let guard = lock.acquire().await.unwrap();
    let lock = two.lock("a/ü").unwrap().owner("bob");
    let waiter = tokio::spawn(async move { lock.acquire().await });
    until("it waits", async || waiting(&two, "a/ü").await == 1).await;
    let info = two.lock_info("a/ü").await.unwrap();
    assert_eq!(info.state, LockState::Held);
    let holder = info.holder.unwrap();
    assert_eq!(
        (holder.owner.as_str(), holder.fence),
        ("ann", guard.fence())
    );
    assert_eq!(info.waiters[0].owner, "bob");
    guard.release().await.unwrap();
    let guard = soon("granted", waiter).await.unwrap().unwrap();
    guard.release().await.unwrap();
    let info = one.lock_info("a/ü").await.unwrap();
    assert_eq!(info.state, LockState::Free);
}

#[tokio::test]
async fn locks_of_all_pages_are_listed() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    // More locks than fit a page. They are acquired through the node in this process, which is
    // faster.
    let mut guards = Vec::new();
    let mut names = BTreeSet::new();
    for number in 0..1_500 {
        let name = format!("lock/{number}");
        let lock = nodes.cluster.nodes[0].lock(&name).unwrap();
        guards.push(lock.acquire().await.unwrap());
        names.insert(name);
    }
    let locks = soon("listed", client.locks()).await.unwrap();
    assert_eq!(locks.next, None);
    let listed: BTreeSet<String> = locks.locks.into_iter().map(|lock| lock.name).collect();
    assert_eq!(listed, names);
}

#[tokio::test]
async fn events_come_as_they_happen_and_end_with_the_node() {
    let mut nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    let mut events = client.events().await.unwrap();
    let lock = client.lock("a").unwrap().owner("ann");
    let guard = lock.acquire().await.unwrap();
    let fence = guard.fence();
    guard.release().await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&EventKind::Released) {
        let event = soon("an event", events.next()).await.unwrap().unwrap();
        assert_eq!((event.lock.as_str(), event.owner.as_str()), ("a", "ann"));
        if event.event != EventKind::Waiting {
            assert_eq!(event.fence, Some(fence));
        }
        seen.push(event.event);
    }
    assert!(seen.contains(&EventKind::Acquired), "{seen:?}");
    nodes.cluster.stop().await;
    nodes.servers[0].take().unwrap().stop().await;
    let end = soon("the stream ends", events.next()).await;
    assert!(!matches!(end, Ok(Some(_))), "{end:?}");
}

#[tokio::test]
async fn the_cluster_is_described() {
    let nodes = Nodes::start(3).await;
    let client = nodes.client(1).await;
    let cluster = client.cluster().await.unwrap();
    assert_eq!(cluster.node, "n2");
    assert_eq!(cluster.nodes.len(), 3);
    until("all answer", async || {
        let nodes = client.cluster().await.unwrap().nodes;
        nodes.iter().all(|node| node.health.is_some())
    })
    .await;
}

#[tokio::test]
async fn connections_are_used_again_and_survive_a_restart_of_the_api() {
    let mut nodes = Nodes::start(1).await;
    let client = nodes.client(0).await;
    held(&client, "a").await.release().await.unwrap();
    nodes.servers[0].take().unwrap().stop().await;
    let again = soloist_node::http::serve(&nodes.cluster.nodes[0]).await;
    nodes.servers[0] = Some(again.unwrap());
    held(&client, "a").await.release().await.unwrap();
}
