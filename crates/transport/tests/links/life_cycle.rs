//! Life cycle of a link: it opens when needed, and is probed, replaced and closed.

use std::time::Duration;

use soloist_testing::proxy::plain;
use soloist_transport::links::frame::Record;
use soloist_transport::links::{LinkChange, Settings};

use crate::net::{A, B, Wire, encoded, hello, listener, pair, roster, settings, start, until};

fn watchful(settings: &mut Settings) {
    settings.limits.probe_every = Duration::from_millis(20);
    settings.limits.silence_max = Duration::from_millis(200);
}

#[tokio::test]
async fn only_links_that_are_needed_are_opened() {
    let (a, b) = pair(|_| {}).await;
    a.links.send(B, b"x").unwrap();
    until("it arrived", || b.seen.count() == 1).await;
    assert_eq!(
        (a.links.counters().dialled, b.links.counters().dialled),
        (1, 0)
    );
    assert_eq!(a.seen.changes(), [("b".to_owned(), LinkChange::Up)]);
    let (of_a, of_b) = (&a.links.status()[1], &b.links.status()[0]);
    assert!(of_a.out_up && !of_a.in_up && of_b.in_up && !of_b.out_up);
    assert_eq!((of_a.frames_sent, of_b.frames_received), (1, 1));
    assert_eq!((of_a.incarnation, of_b.incarnation), (B, A));
}

#[tokio::test]
async fn pending_frames_leave_in_one_write_and_are_resent_if_lost() {
    let (at_a, a) = listener().await;
    let (at_b, b) = listener().await;
    let a = start(settings("a"), roster(&[("a", &a), ("b", &b)]), at_a);
    for number in 0..100u8 {
        a.links.send(B, &[number]).unwrap();
    }
    let (mut wire, _) = Wire::accepted(&at_b).await;
    wire.send(&encoded(&[Record::Welcome {
        incarnation: B,
        next: 1,
    }]))
    .await;
    for number in 1..=100 {
        let record = wire.next().await.unwrap();
        assert!(
            record.starts_with(&format!("Data {{ number: {number},")),
            "{record}"
        );
    }
    assert_eq!(a.links.counters().writes, 1);
    wire.send(&encoded(&[Record::Ack { up_to: 60 }])).await;
    until("some are acknowledged", || {
        a.links.status()[1].buffered_frames == 40
    })
    .await;
    // The next connection starts at the receiver's current position, not at its last
    // acknowledgement.
    drop(wire);
    let (mut wire, _) = Wire::accepted(&at_b).await;
    wire.send(&encoded(&[Record::Welcome {
        incarnation: B,
        next: 81,
    }]))
    .await;
    let record = wire.next().await.unwrap();
    assert!(record.starts_with("Data { number: 81,"), "{record}");
    until("they are counted", || {
        a.links.counters().frames_resent == 20
    })
    .await;
}

#[tokio::test]
async fn acknowledgements_are_lazy() {
    let (a, _b) = pair(|settings| settings.limits.ack_delay = Duration::from_secs(3600)).await;
    let mut wire = Wire::to(&a).await;
    let frame = |number| Record::Data {
        number,
        payload: b"x",
    };
    wire.send(&hello("b", "a").encode()).await;
    assert!(wire.next().await.unwrap().starts_with("Welcome"));
    let frames: Vec<_> = (1..=64).map(frame).collect();
    wire.send(&encoded(&frames)).await;
    assert_eq!(wire.next().await.unwrap(), "Ack { up_to: 64 }");
    let big = vec![0; 64 << 10];
    wire.send(&encoded(&[Record::Data {
        number: 65,
        payload: &big,
    }]))
    .await;
    assert_eq!(wire.next().await.unwrap(), "Ack { up_to: 65 }");
    wire.send(&encoded(&[frame(66), Record::Ping])).await;
    assert_eq!(wire.next().await.unwrap(), "Ack { up_to: 66 }");
    // A duplicate frame is dropped.
    wire.send(&encoded(&[frame(66), Record::Ping])).await;
    assert_eq!(wire.next().await.unwrap(), "Ack { up_to: 66 }");
    assert_eq!(a.seen.count(), 66);
}

#[tokio::test]
async fn an_idle_link_stays_up() {
    let (a, b) = pair(watchful).await;
    a.links.send(B, b"x").unwrap();
    until("it arrived", || b.seen.count() == 1).await;
    // A Ping has 5 bytes. Sending 30 of them takes longer than the silence that would close the
    // link.
    let enough = 14 + 30 * 5;
    until("it was probed", || {
        b.links.counters().bytes_received >= enough
    })
    .await;
    assert_eq!(a.links.counters().dialled, 1);
    assert_eq!(a.seen.changes(), [("b".to_owned(), LinkChange::Up)]);
}

#[tokio::test]
async fn a_silent_receiver_is_noticed() {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let mut settings = settings("a");
    watchful(&mut settings);
    let a = start(settings, roster(&[("a", &a), ("b", &b)]), at_a);
    a.links.send(B, b"x").unwrap();
    let (mut wire, _) = Wire::accepted(&at_b).await;
    wire.send(&encoded(&[Record::Welcome {
        incarnation: B,
        next: 1,
    }]))
    .await;
    until("it is noticed", || a.seen.went_down("b", "b was silent")).await;
}

#[tokio::test]
async fn a_silent_sender_is_noticed() {
    let (a, _b) = pair(watchful).await;
    let mut wire = Wire::to(&a).await;
    wire.send(&hello("b", "a").encode()).await;
    assert!(wire.next().await.unwrap().starts_with("Welcome"));
    wire.closed().await;
    until("it is down", || !a.links.status()[1].in_up).await;
    let error = a.links.status()[1].last_error.clone().unwrap();
    assert!(error.contains("b was silent"), "{error}");
}

#[tokio::test]
async fn a_second_connection_replaces_the_first() {
    let (a, _b) = pair(|_| {}).await;
    let greeting = hello("b", "a").encode();
    let frame = |number| {
        encoded(&[Record::Data {
            number,
            payload: &[number as u8],
        }])
    };
    let mut first = Wire::to(&a).await;
    first.send(&greeting).await;
    first.next().await.unwrap();
    first.send(&frame(1)).await;
    until("a frame came", || a.seen.count() == 1).await;
    let mut second = Wire::to(&a).await;
    second.send(&greeting).await;
    let welcome = second.next().await.unwrap();
    assert!(welcome.ends_with("next: 2 }"), "{welcome}");
    first.closed().await;
    second.send(&frame(2)).await;
    until("the second connection continues", || a.seen.count() == 2).await;
    assert!(a.links.status()[1].in_up);
}

#[tokio::test]
async fn closing_flushes_the_buffer_and_closes_in_order() {
    let (a, b) = pair(|_| {}).await;
    b.links.send(A, b"x").unwrap();
    until("b's link is up", || a.seen.count() == 1).await;
    for number in 0..5000u32 {
        a.links.send(B, &number.to_le_bytes()).unwrap();
    }
    a.links.close(Duration::from_secs(30)).await;
    assert_eq!(b.seen.count(), 5000);
    assert_eq!(a.links.status()[1].buffered_frames, 0);
    until("b knows", || b.seen.said_goodbye("a")).await;
    until("and that a does not connect", || !b.links.status()[0].in_up).await;
    until("b tries again", || b.links.counters().dialled > 3).await;
    let told = [LinkChange::Up, LinkChange::Goodbye].map(|change| ("a".to_owned(), change));
    assert_eq!(
        b.seen.changes(),
        told,
        "a failed dial to a stopped node is not logged"
    );
}

#[tokio::test]
async fn closing_waits_no_longer_than_its_timeout() {
    let (at_a, a) = listener().await;
    let (_at_b, b) = listener().await;
    let a = start(settings("a"), roster(&[("a", &a), ("b", &b)]), at_a);
    a.links.send(B, b"never read").unwrap();
    let closing = a.links.close(Duration::from_millis(50));
    tokio::time::timeout(Duration::from_secs(30), closing)
        .await
        .unwrap();
    assert_eq!(a.links.status()[1].buffered_frames, 1);
}

#[tokio::test]
async fn dropping_the_links_stops_them() {
    let (a, b) = pair(|_| {}).await;
    a.links.send(B, b"x").unwrap();
    until("it is up", || b.links.status()[0].in_up).await;
    drop(a);
    until("it is down", || !b.links.status()[0].in_up).await;
}

#[tokio::test]
async fn a_peer_that_starts_late_is_reached() {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let proxy = plain("").await;
    let peers = roster(&[("a", &a), ("b", &proxy.address)]);
    let a = start(settings("a"), peers.clone(), at_a);
    a.links.send(B, b"x").unwrap();
    until("a few tries failed", || a.links.counters().dialled > 3).await;
    let changes = a.seen.changes();
    assert!(
        matches!(&changes[..], [(peer, LinkChange::Down { .. })] if peer == "b"),
        "{changes:?}"
    );
    let at = b.clone();
    let b = start(settings("b"), peers, at_b);
    *proxy.target.lock().unwrap() = at;
    until("it arrived", || b.seen.count() == 1).await;
    until("all is well", || a.links.status()[1].last_error.is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_second_connection_waits_for_what_the_first_is_handing_over() {
    let (a, _b) = pair(|_| {}).await;
    let greeting = hello("b", "a").encode();
    let frames = [1, 2, 3].map(|number| Record::Data {
        number,
        payload: b"x",
    });
    let gate = a.seen.shut();
    let mut first = Wire::to(&a).await;
    first.send(&greeting).await;
    first.next().await.unwrap();
    first.send(&encoded(&frames)).await;
    until("the handler has them", || a.seen.is_waiting()).await;
    let mut second = Wire::to(&a).await;
    second.send(&greeting).await;
    until("it connected", || a.links.counters().accepted == 2).await;
    drop(gate);
    let welcome = second.next().await.unwrap();
    assert!(welcome.ends_with("next: 4 }"), "{welcome}");
    assert_eq!(a.seen.count(), 3);
}

#[tokio::test]
async fn a_panicking_handler_loses_only_its_frame() {
    let (a, b) = pair(|_| {}).await;
    for frame in [&b"one"[..], b"panic", b"two"] {
        a.links.send(B, frame).unwrap();
    }
    until("the others arrived", || b.seen.count() == 2).await;
    b.links.send(A, b"back").unwrap();
    until("b continues", || a.seen.count() == 1).await;
}

#[tokio::test]
async fn a_peer_with_long_pending_frames_is_unreachable() {
    let (at_a, a) = listener().await;
    let (at_b, b) = listener().await;
    let peers = roster(&[("a", &a), ("b", &b)]);
    let a = start(settings("a"), peers.clone(), at_a);
    let long = Duration::from_millis(50);
    assert!(
        a.links.unreached(Duration::ZERO).is_empty(),
        "nothing waits"
    );
    a.links.send(B, b"x").unwrap();
    // Nothing answers there yet.
    assert_eq!(a.links.unreached(Duration::ZERO), [B]);
    assert!(a.links.unreached(Duration::from_secs(3600)).is_empty());
    until("it is not reached", || a.links.unreached(long) == [B]).await;
    let b = start(settings("b"), peers, at_b);
    until("it arrived", || b.seen.count() == 1).await;
    until("it is reached", || {
        a.links.unreached(Duration::ZERO).is_empty()
    })
    .await;
}
