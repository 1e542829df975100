//! Tests of clients that know several nodes.

use std::time::Duration;

use soloist_client::{AcquireError, Client, Fence, Guard, Locks, Target};
use soloist_core::epochs::lease::Lease;
use soloist_testing::served::Served;

use crate::{Nodes, TIMEOUT, held, soon, until, waiting};

/// A client of the nodes, beginning with the first.
async fn client_of(nodes: &Nodes, count: usize) -> Client {
    let targets = (0..count).map(|node| nodes.target(node));
    Client::connect(Target::any_of(targets)).await.unwrap()
}

/// The nodes on which the lock is waited for.
async fn waits_on(observer: &Client) -> Vec<String> {
    let waiters = observer.lock_info("a").await.unwrap().waiters;
    waiters.into_iter().map(|waiter| waiter.node).collect()
}

/// A waiter on the first node moves when `fault` happens to that node. It is the only one then, and
/// is granted the lock. Returns the fences of the holder before and of the waiter.
async fn moves(fault: impl AsyncFnOnce(&mut Nodes)) -> (Fence, Fence) {
    let mut nodes = Nodes::start_steady(3).await;
    let observer = nodes.client(2).await;
    let guard = held(&observer, "a").await;
    let client = client_of(&nodes, 2).await;
    let lock = client.lock("a").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire_within(TIMEOUT).await });
    until("it waits", async || waits_on(&observer).await == ["n1"]).await;
    fault(&mut nodes).await;
    until("it has moved", async || waits_on(&observer).await == ["n2"]).await;
    let before = guard.fence();
    guard.release().await.unwrap();
    let next = soon("granted", waiter).await.unwrap().unwrap();
    let fences = (before, next.fence());
    next.release().await.unwrap();
    // Later requests go to the second node at once.
    held(&client, "b").await.release().await.unwrap();
    assert_eq!(waiting(&observer, "a").await, 0);
    fences
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_moves_when_its_node_stops() {
    let (before, next) = moves(async |nodes| {
        let node = nodes.cluster.nodes[0].clone();
        soon("it stops", node.stop(TIMEOUT)).await;
    })
    .await;
    assert!(next > before);
}

/// The node itself stays, so its waiter would stay as well if the second node did not end it.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_moves_when_its_node_is_cut_off_and_leaves_nothing_there() {
    let (before, next) = moves(async |nodes| nodes.cut(0)).await;
    assert_eq!(Some(next), before.next(), "no other client was granted it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_stays_on_its_node_and_is_released_there() {
    let mut nodes = Nodes::start_steady(3).await;
    let observer = nodes.client(2).await;
    let client = client_of(&nodes, 2).await;
    let guard = held(&client, "a").await;
    nodes.cut(0);
    // The client moves with its next request.
    held(&client, "b").await.release().await.unwrap();
    let again = soloist_node::http::serve(&nodes.cluster.nodes[0]).await;
    nodes.servers[0] = Some(again.unwrap());
    let known = guard.valid_until();
    soon("it is renewed", guard.renewed_after(known)).await;
    let holder = observer.lock_info("a").await.unwrap().holder;
    assert_eq!(holder.unwrap().node, "n1");
    guard.release().await.unwrap();
    held(&observer, "a").await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_waits_for_the_releases_on_a_node_that_was_left() {
    let mut nodes = Nodes::start_steady(3).await;
    let observer = nodes.client(2).await;
    let client = client_of(&nodes, 2).await;
    let guard = held(&client, "a").await;
    nodes.cut(0);
    // The client moves with its next request.
    held(&client, "b").await.release().await.unwrap();
    drop(guard);
    let mut settling = std::pin::pin!(client.settle(TIMEOUT));
    tokio::select! {
        biased;
        () = &mut settling => panic!("its node cannot have answered"),
        () = std::future::ready(()) => {}
    }
    let again = soloist_node::http::serve(&nodes.cluster.nodes[0]).await;
    nodes.servers[0] = Some(again.unwrap());
    soon("the release is answered", settling).await;
    let holder = observer.lock_info("a").await.unwrap().holder;
    assert!(holder.is_none(), "{holder:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_at_its_deadline_if_no_node_is_left() {
    let mut nodes = Nodes::start(2).await;
    let client = client_of(&nodes, 2).await;
    held(&client, "a").await.release().await.unwrap();
    nodes.cut(0);
    nodes.cut(1);
    let lock = client.lock("a").unwrap();
    let limit = Duration::from_secs(2);
    let denied = soon("it ends", lock.acquire_within(limit)).await;
    assert!(
        matches!(denied, Err(AcquireError::Unavailable(_))),
        "{denied:?}"
    );
    let denied = soon("it does not wait", lock.try_acquire()).await;
    assert!(
        matches!(denied, Err(AcquireError::Unavailable(_))),
        "{denied:?}"
    );
}

/// A client of a node that has lost its cluster and still answers, and of a member.
struct Outside {
    /// The second node is outside once the first one, the only keeper, has stopped.
    lost: Nodes,
    member: Nodes,
}

impl Outside {
    async fn start() -> Self {
        let lease = Lease {
            length: Duration::from_secs(1),
            ..Lease::default()
        };
        Outside {
            lost: Nodes(Served::start_with(2, lease).await),
            member: Nodes::start(1).await,
        }
    }

    async fn client(&self) -> Client {
        let targets = [self.lost.target(1), self.member.target(0)];
        Client::connect(Target::any_of(targets)).await.unwrap()
    }

    async fn lose(&self) {
        let keeper = self.lost.cluster.nodes[0].clone();
        soon("it stops", keeper.stop(TIMEOUT)).await;
        let other = &self.lost.cluster.nodes[1];
        until("the other is outside", async || other.epoch().is_none()).await;
    }

    fn has_moved(&self, client: &Client) -> bool {
        let socket = self.member.socket(0).display().to_string();
        client.address().ends_with(&socket)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_move_when_their_node_has_lost_the_cluster_and_still_answers() {
    let nodes = Outside::start().await;
    let blocker = nodes.lost.client(1).await;
    // Held by the program of the node, for as long as the node has its lease.
    let blocking = nodes.lost.cluster.nodes[1].lock("a").unwrap();
    let blocking = blocking.acquire().await.unwrap();
    let waits = nodes.client().await;
    let holds = nodes.client().await;
    let guard = held(&holds, "b").await;
    let lock = waits.lock("a").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire_within(TIMEOUT).await });
    until("it waits", async || waiting(&blocker, "a").await == 1).await;
    nodes.lose().await;
    let next = soon("it moves", waiter).await.unwrap().unwrap();
    assert!(nodes.has_moved(&waits));
    assert_eq!(waiting(&blocker, "a").await, 0, "it waits nowhere else");
    // A client that has lost a hold with the epoch asks its node nothing more.
    soon("it is lost", guard.lost()).await;
    let lock = holds.lock("b").unwrap();
    let asked = tokio::time::timeout(Duration::ZERO, lock.acquire()).await;
    assert!(nodes.has_moved(&holds));
    drop((asked, next, blocking));
    // A request that may not wait tries each node.
    let tries = nodes.client().await;
    let lock = tries.lock("c").unwrap();
    let guard = soon("it tries", lock.try_acquire()).await.unwrap();
    assert!(guard.is_some() && nodes.has_moved(&tries));
}

/// Only the lost cluster is known: the request lasts until its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_its_deadline_if_all_nodes_are_outside() {
    let nodes = Outside::start().await;
    let client = nodes.lost.client(1).await;
    let guard = held(&client, "a").await;
    nodes.lose().await;
    soon("it is lost", guard.lost()).await;
    let targets = [nodes.lost.target(1), nodes.lost.target(1)];
    for client in [
        client,
        Client::connect(Target::any_of(targets)).await.unwrap(),
    ] {
        let lock = client.lock("a").unwrap();
        let began = std::time::Instant::now();
        let limit = Duration::from_secs(3);
        let denied = soon("it ends", lock.acquire_within(limit)).await;
        assert!(
            matches!(denied, Err(AcquireError::Unknown { .. })),
            "{denied:?}"
        );
        assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
        let denied = soon("it does not wait", lock.try_acquire()).await;
        assert!(
            matches!(denied, Err(AcquireError::Unknown { .. })),
            "{denied:?}"
        );
    }
}
