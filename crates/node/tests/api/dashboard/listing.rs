//! The part of the list of locks that a client has in view.

use std::time::Duration;

use serde_json::json;
use soloist_api::session::{Listed, NodeMessage};

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
    assert_eq!(next_done(&mut socket).await, 12);
    for hold in &held[..2] {
        assert_eq!(served.https[0].release(hold).await.status, 204);
    }
    nothing_is_sent(&mut socket, 13).await;
    served.stop().await;
}

async fn next_done(socket: &mut Socket) -> u64 {
    next(socket, |message| match message {
        NodeMessage::Done(done) if done.n == 12 => Some(done.n),
        _ => None,
    })
    .await
}
