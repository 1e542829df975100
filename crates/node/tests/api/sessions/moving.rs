//! Clients that move to another node.

use serde_json::{Value, json};
use soloist_api::LockInfo;
use soloist_api::session::{NodeMessage, Welcome};

use super::Socket;
use crate::cluster::{Forming, served, until};
use crate::http::Http;

/// Opens a session on another node, and names the one that was left.
async fn moved(http: &Http, left: &Welcome, seen: u64, release: &[u64]) -> Socket {
    let left: Value = json!({
        "node": left.node, "session": left.session, "secret": left.secret, "seen": seen,
        "release": release,
    });
    let hello = json!({ "ttl_ms": 600_000, "left": left });
    let mut socket = Socket::hello(http, hello).await;
    socket.welcome().await;
    socket
}

/// Without `left`, the lock would be held for the time to live of the old session.
#[tokio::test]
async fn a_grant_that_was_not_read_is_released_when_its_client_moves() {
    let served = served(2).await;
    let (mut old, welcome) = Socket::start(&served.https[0]).await;
    old.acquire(1, "a").await;
    until("the lock is granted", async || {
        let lock: LockInfo = served.https[0].get("/v1/locks/a").await.ok();
        lock.holder
    })
    .await;
    drop(old);
    let mut new = moved(&served.https[1], &welcome, 0, &[]).await;
    new.acquire(1, "a").await;
    assert_eq!(new.granted().await.n, 1);
    served.stop().await;
}

#[tokio::test]
async fn waiters_and_unanswered_releases_move_and_holds_that_were_read_stay() {
    let served = served(2).await;
    let (mut old, welcome) = Socket::start(&served.https[0]).await;
    for (n, lock) in [(1, "kept"), (2, "released")] {
        old.acquire(n, lock).await;
        assert_eq!(old.granted().await.n, n);
    }
    let hold = served.https[1].hold("waited").await;
    old.acquire(3, "waited").await;
    served.waiting("waited", 1).await;
    drop(old);
    let mut new = moved(&served.https[1], &welcome, 2, &[2]).await;
    new.acquire(1, "released").await;
    assert_eq!(new.granted().await.n, 1);
    served.waiting("waited", 0).await;
    let lock: LockInfo = served.https[1].get("/v1/locks/kept").await.ok();
    assert_eq!(
        lock.holder.expect("it is bound to its node").node,
        welcome.node
    );
    // The old session still renews and releases it.
    let mut again = Socket::resume(&served.https[0], &welcome, 2).await;
    let listed = again.welcome().await;
    assert_eq!((listed.holds.len(), listed.waiting.len()), (1, 0));
    again.release(4, 1).await;
    assert_eq!(again.done().await, 4);
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn a_session_is_left_only_with_its_secret() {
    let served = served(2).await;
    let (mut old, mut welcome) = Socket::start(&served.https[0]).await;
    old.acquire(1, "a").await;
    old.granted().await;
    welcome.secret.0 = "0".repeat(32);
    let mut thief = moved(&served.https[1], &welcome, 0, &[1]).await;
    thief
        .send(json!({ "acquire": { "n": 1, "lock": "a", "wait_ms": 1 } }))
        .await;
    thief.error().await;
    old.release(2, 1).await;
    assert_eq!(old.done().await, 2);
    served.stop().await;
}

/// The nodes are no members while the client moves, and the request is granted when they are.
#[tokio::test]
async fn what_was_left_is_ended_as_soon_as_the_nodes_are_members() {
    let mut forming = Forming::start().await;
    let (mut old, welcome) = Socket::start(&forming.https[0]).await;
    old.acquire(1, "a").await;
    old.send(json!({ "ping": { "n": 2 } })).await;
    assert!(matches!(old.next().await, NodeMessage::Pong(_)));
    drop(old);
    let mut new = moved(&forming.https[1], &welcome, 0, &[]).await;
    forming.form().await;
    new.acquire(1, "a").await;
    assert_eq!(new.granted().await.n, 1);
    forming.stop().await;
}
