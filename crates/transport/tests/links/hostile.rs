//! Bytes that no correct peer sends.

use std::time::Duration;

use soloist_testing::queue::all_wait_in_the_queue;
use soloist_transport::hello::PREFACE;
use soloist_transport::links::frame::Record;

use crate::net::{
    A, B, Node, Wire, encoded, greeting, hello, listener, pair, roster, settings, start, until,
};

/// Starts node a with two peers: b, which the test plays, and c, a real node.
async fn victim() -> (Node, Node) {
    let ((at_a, a), (at_c, c)) = (listener().await, listener().await);
    let peers = roster(&[("a", &a), ("b", "127.0.0.1:1"), ("c", &c)]);
    let a = start(settings("a"), peers.clone(), at_a);
    (a, start(settings("c"), peers, at_c))
}

#[tokio::test]
async fn hostile_bytes_are_counted_and_the_links_go_on() {
    let (a, c) = victim().await;
    c.links.send(A, b"before").unwrap();
    until("a frame arrived", || a.seen.count() == 1).await;
    let from_b = |records: &[Record<'_>]| greeting(&hello("b", "a"), records);
    let data = |number| Record::Data {
        number,
        payload: b"from b",
    };
    let kinds: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "HTTP",
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            "begins with GET / HT: it does not come from a Soloist node",
        ),
        (
            "a record",
            encoded(&[data(1)]),
            "it does not come from a Soloist node",
        ),
        (
            "an earlier release",
            b"SOLOMEMB...".to_vec(),
            "it comes from an earlier release",
        ),
        (
            "a huge hello",
            [&PREFACE[..], &[0xff; 2]].concat(),
            "a hello of 65535 bytes (maximum: 4096)",
        ),
        (
            "an empty hello",
            [&PREFACE[..], &[0; 2]].concat(),
            "cannot be decoded",
        ),
        (
            "a gap",
            from_b(&[data(2)]),
            "received frame 2 instead of frame 1",
        ),
        (
            "an unknown kind",
            [from_b(&[]), vec![1, 0, 0, 0, 77]].concat(),
            "kind 77",
        ),
        (
            "a receiver's record",
            from_b(&[Record::Ack { up_to: 1 }]),
            "only a receiver may send",
        ),
        (
            "a second hello",
            [from_b(&[]), from_b(&[])].concat(),
            "bytes (maximum:",
        ),
    ];
    for (index, (kind, bytes, reason)) in kinds.iter().enumerate() {
        let mut wire = Wire::to(&a).await;
        wire.send(bytes).await;
        let mut last = String::new();
        while let Some(record) = wire.next().await {
            last = record;
        }
        assert!(last.contains(reason), "{kind}: {last}");
        until(kind, || a.links.counters().hostile == index as u64 + 1).await;
        let refusals = a.links.refusals();
        assert!(refusals.last().unwrap().reason.contains(reason), "{kind}");
    }
    c.links.send(A, b"after").unwrap();
    until("another arrived", || a.seen.count() == 2).await;
    assert_eq!(
        c.links.counters().dialled,
        1,
        "its connection was not touched"
    );
}

#[tokio::test]
async fn a_frame_that_the_handler_refuses_closes_the_connection_and_is_not_redelivered() {
    let (a, b) = pair(|_| {}).await;
    *b.seen.unwanted.lock().unwrap() = Some((b"bad".to_vec(), "not a lock's message".into()));
    for frame in [&b"one"[..], b"bad", b"two", b"three"] {
        a.links.send(B, frame).unwrap();
    }
    until("the rest arrived", || b.seen.count() == 3).await;
    let got: Vec<_> = b
        .seen
        .frames()
        .into_iter()
        .map(|(_, frame)| frame)
        .collect();
    assert_eq!(got, [&b"one"[..], b"two", b"three"]);
    assert_eq!(b.links.counters().hostile, 1);
    until("a is told why", || {
        a.seen
            .was_refused("b", "b refused: a: not a lock's message")
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_acknowledges_too_much_is_disconnected() {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let a = start(settings("a"), roster(&[("a", &a), ("b", &b)]), at_a);
    a.links.send(B, b"x").unwrap();
    let (mut wire, _) = Wire::accepted(&at_b).await;
    let welcome = Record::Welcome {
        incarnation: B,
        next: 1,
    };
    wire.send(&encoded(&[welcome, Record::Ack { up_to: 1000 }]))
        .await;
    until("it was noticed", || {
        a.seen.went_down("b", "acknowledged frame 1000")
    })
    .await;
    assert_eq!(a.links.counters().hostile, 1);
    assert_eq!(
        a.links.status()[1].buffered_frames,
        1,
        "nothing was forgotten"
    );
}

#[tokio::test]
async fn the_oldest_of_too_many_unauthenticated_connections_is_closed() {
    let (a, b) = pair(|settings| {
        settings.limits.unauthenticated_max = 2;
        settings.limits.first_bytes = Duration::from_secs(30);
        settings.limits.handshake = Duration::from_secs(30);
    })
    .await;
    let mut first = Wire::to(&a).await;
    until("it connected", || a.links.counters().accepted == 1).await;
    let mut others = vec![Wire::to(&a).await];
    until("another connected", || a.links.counters().accepted == 2).await;
    assert_eq!(a.links.counters().turned_away, 0);
    others.push(Wire::to(&a).await);
    first.closed().await;
    assert_eq!(a.links.counters().turned_away, 1);
    b.links.send(A, b"x").unwrap();
    until("a peer connects", || a.seen.count() == 1).await;
    others.remove(0).closed().await;
    // Now the peer is authenticated, so the third stranger may stay.
    assert_eq!(a.links.counters().turned_away, 2);
}

#[tokio::test]
async fn many_connections_at_once_are_queued() {
    let (a, _b) = pair(|_| {}).await;
    all_wait_in_the_queue(a.address.parse().unwrap());
}

#[tokio::test]
async fn an_unauthenticated_connection_must_send_its_first_bytes_soon() {
    let (a, _b) = pair(|settings| {
        settings.limits.first_bytes = Duration::from_millis(50);
        settings.limits.handshake = Duration::from_secs(3600);
    })
    .await;
    Wire::to(&a).await.closed().await;
}

#[tokio::test]
async fn a_silent_unauthenticated_connection_is_closed() {
    let (a, _b) = pair(|settings| settings.limits.handshake = Duration::from_millis(50)).await;
    Wire::to(&a).await.closed().await;
}
