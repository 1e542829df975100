//! The part of the list of locks that a client has in view.

use std::time::{Duration, Instant};

use serde_json::json;
use soloist_api::session::{Code, Listed, NodeMessage};
use soloist_node::Locks;

use super::next;
use crate::cluster::served;
use crate::sessions::Socket;

async fn listed(socket: &mut Socket, wanted: impl Fn(&Listed) -> bool) -> Listed {
    next(socket, |message| match message {
        NodeMessage::Listed(listed) if wanted(&listed) => Some(listed),
        _ => None,
    })
    .await
}

/// Asserts that the client gets nothing but answers for two looks at the list.
async fn nothing_is_sent(socket: &mut Socket, from: u64) {
    for n in from..from + 5 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        socket.send(json!({ "ping": { "n": n } })).await;
        let answer = socket.next().await;
        assert!(matches!(answer, NodeMessage::Pong(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn the_rows_in_view_are_sent_when_they_have_changed() {
    let served = served(2).await;
    let mut held = Vec::new();
    for name in ["a-1", "a-2", "a-3", "b"] {
        held.push(served.https[0].hold(name).await);
        // So that the holds differ in age.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (mut socket, _) = Socket::start(&served.https[1]).await;
    let list = |n: u64, first: u64, rows: u64| json!({ "list": { "n": n, "prefix": "a-", "first": first, "rows": rows } });
    socket.send(list(1, 1, 1)).await;
    assert_eq!(socket.done().await, 1);
    let second = listed(&mut socket, |_| true).await;
    assert_eq!((second.first, second.rows, second.total), (1, 3, 3));
    let names = |listed: &Listed| -> Vec<String> {
        let locks = listed.locks.iter();
        locks.map(|lock| lock.name.clone()).collect()
    };
    assert_eq!(names(&second), ["a-2"]);
    // The holds only get older.
    nothing_is_sent(&mut socket, 2).await;

    // Its row is another lock's when a client waits for a-3.
    let (mut waiter, _) = Socket::start(&served.https[0]).await;
    waiter.acquire(1, "a-3").await;
    let moved = listed(&mut socket, |listed| names(listed) == ["a-1"]).await;
    assert!(moved.locks[0].holder.as_ref().unwrap().held_for_ms >= 2_500);
    // Another part is there at once.
    socket.send(list(10, 0, 2)).await;
    assert_eq!(socket.done().await, 10);
    let top = listed(&mut socket, |listed| listed.first == 0).await;
    assert_eq!(names(&top), ["a-3", "a-1"]);
    assert_eq!(top.locks[0].waiting, 1);
    socket.send(list(11, 5, 1000)).await;
    let beyond = listed(&mut socket, |listed| listed.first == 5).await;
    assert_eq!((beyond.locks.len(), beyond.rows), (0, 3));

    // Nothing is in view.
    socket.send(list(12, 0, 0)).await;
    assert_eq!(next_done(&mut socket, 12).await, 12);
    for hold in &held[..2] {
        assert_eq!(served.https[0].release(hold).await.status, 204);
    }
    nothing_is_sent(&mut socket, 13).await;
    served.stop().await;
}

/// Waits for this answer.
async fn next_done(socket: &mut Socket, n: u64) -> u64 {
    next(socket, |message| match message {
        NodeMessage::Done(done) if done.n == n => Some(done.n),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_client_that_lists_and_stops_again_and_again_has_few_looks() {
    let served = served(2).await;
    let frames = || {
        let links = served.cluster.nodes[0].links();
        links.iter().map(|link| link.frames_sent).sum::<u64>()
    };
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let (before, since) = (frames(), Instant::now());
    for n in 1..=100 {
        let list = json!({ "n": 2 * n, "prefix": format!("{n:0256}"), "rows": 1 });
        socket.send(json!({ "list": list })).await;
        next_done(&mut socket, 2 * n).await;
        let stop = json!({ "n": 2 * n + 1, "rows": 0 });
        socket.send(json!({ "list": stop })).await;
        next_done(&mut socket, 2 * n + 1).await;
    }
    // Each is one question to the other member, because there are no locks.
    let looks = since.elapsed().as_millis() as u64 / 200 + 2;
    let questions = frames() - before;
    assert!(questions <= looks, "{questions} questions of {looks} looks");
    served.stop().await;
}

#[tokio::test]
async fn a_prefix_that_no_lock_can_have_is_refused() {
    let served = served(1).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let long = "a".repeat(257);
    for query in [
        json!({ "list": { "n": 1, "prefix": long, "rows": 1 } }),
        json!({ "locks": { "n": 2, "prefix": long, "sort": "wait" } }),
        json!({ "locks": { "n": 3, "prefix": long } }),
    ] {
        socket.send(query).await;
        let (code, detail) = socket.error().await;
        assert_eq!(code, Code::BadRequest);
        assert_eq!(
            detail,
            "the prefix has 257 bytes, and names of locks have at most 256: use a shorter prefix"
        );
    }
    served.stop().await;
}

#[tokio::test]
async fn a_list_without_all_locks_says_so() {
    let served = served(2).await;
    let node = &served.cluster.nodes[1];
    let mut guards = Vec::new();
    for number in 0..1_000 {
        let lock = node.lock(&format!("a-{number:04}")).unwrap();
        guards.push(lock.acquire().await.unwrap());
    }
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let list = json!({ "list": { "n": 1, "prefix": "a-", "rows": 1 } });
    socket.send(list).await;
    let all = listed(&mut socket, |listed| listed.rows == 1_000).await;
    assert_eq!((all.is_cut, all.total), (false, 1_000));
    let lock = node.lock("a-more").unwrap();
    guards.push(lock.acquire().await.unwrap());
    let cut = listed(&mut socket, |listed| listed.total == 1_001).await;
    assert_eq!((cut.is_cut, cut.rows), (true, 1_000));
    drop(guards);

    // Long names do not fit into an answer, though they are not many.
    let mut guards = Vec::new();
    for number in 0..999 {
        let name = format!("b-{number:0254}");
        guards.push(node.lock(&name).unwrap().acquire().await.unwrap());
    }
    let list = json!({ "list": { "n": 2, "prefix": "b-", "rows": 1 } });
    socket.send(list).await;
    let cut = listed(&mut socket, |listed| listed.prefix == "b-").await;
    assert!(cut.rows < 999, "{} rows", cut.rows);
    assert_eq!((cut.is_cut, cut.total), (true, 999));
    drop(guards);
    served.stop().await;
}
