//! Nodes that learn of a change at different times. A "later" reply is neither a refusal nor an
//! error.

use std::time::{Duration, Instant};

use soloist_core::Incarnation;
use soloist_transport::links::frame::Record;
use soloist_transport::links::{LinkChange, Settings};
use soloist_transport::{Hello, Purpose};

use crate::net::{
    Node, Wire, encoded, greeting, hello, hello_of, listener, lone, member, settings, until,
};

/// Settings with which the back-off after failed attempts would soon reach hours.
fn retrying_soon(me: &str) -> Settings {
    let mut settings = settings(me);
    settings.limits.retry_min = Duration::from_millis(5);
    settings.limits.retry_max = Duration::from_secs(24 * 3600);
    settings
}

async fn nodes() -> (Node, Node) {
    let ((at_a, _), (at_b, _)) = (listener().await, listener().await);
    (
        lone(retrying_soon("a"), at_a),
        lone(retrying_soon("b"), at_b),
    )
}

fn nothing_went_wrong(node: &Node) {
    let counters = node.links.counters();
    assert_eq!(
        (
            counters.refused,
            counters.refused_by_peers,
            counters.hostile
        ),
        (0, 0, 0)
    );
    assert_eq!(node.links.refusals(), []);
}

/// Sends a frame that b does not accept yet, and waits for 20 attempts. A link that backs off as
/// after failures would not get that far. Then calls `change`, and asserts that the frame arrives
/// soon.
async fn comes_through(a: &Node, b: &Node, change: impl FnOnce()) {
    let to = a.links.status()[0].incarnation;
    let before = b.links.counters().accepted;
    a.links.send(to, b"x").unwrap();
    until("it was tried often", || {
        b.links.counters().accepted >= before + 20
    })
    .await;
    assert_eq!(b.seen.count(), 0);
    assert_eq!(a.seen.changes(), [], "neither up nor down nor refused");
    assert_eq!(a.links.status()[0].last_error, None);
    let began = Instant::now();
    change();
    until("it comes through", || b.seen.count() == 1).await;
    // One pause is at most 250 ms. The rest is for busy machines.
    assert!(began.elapsed() < Duration::from_secs(20));
    until("a knows", || {
        a.seen.changes() == [("b".to_owned(), LinkChange::Up)]
    })
    .await;
    nothing_went_wrong(a);
    nothing_went_wrong(b);
}

#[tokio::test]
async fn a_peer_that_connects_before_the_first_list_waits_for_it() {
    let (a, b) = nodes().await;
    a.links
        .set_peers(Incarnation(1), vec![member("b", 2, &b.address)])
        .unwrap();
    comes_through(&a, &b, || {
        b.links
            .set_peers(Incarnation(2), vec![member("a", 1, &a.address)])
            .unwrap();
    })
    .await;
    assert_eq!(b.seen.frames(), [(Incarnation(1), b"x".to_vec())]);
}

#[tokio::test]
async fn an_unknown_incarnation_waits_for_its_peer_list() {
    let (a, b) = nodes().await;
    b.links
        .set_peers(Incarnation(2), vec![member("a", 1, &a.address)])
        .unwrap();
    a.links
        .set_peers(Incarnation(5), vec![member("b", 2, &b.address)])
        .unwrap();
    comes_through(&a, &b, || {
        b.links
            .set_peers(Incarnation(2), vec![member("a", 5, &a.address)])
            .unwrap();
    })
    .await;
    assert_eq!(b.seen.frames(), [(Incarnation(5), b"x".to_vec())]);
}

#[tokio::test]
async fn a_sender_that_expects_another_incarnation_waits_for_it() {
    let (a, b) = nodes().await;
    let of_a = vec![member("a", 1, &a.address)];
    b.links.set_peers(Incarnation(2), of_a.clone()).unwrap();
    a.links
        .set_peers(Incarnation(1), vec![member("b", 6, &b.address)])
        .unwrap();
    comes_through(&a, &b, || b.links.set_peers(Incarnation(6), of_a).unwrap()).await;
}

#[tokio::test]
async fn an_empty_peer_list_admits_nobody() {
    let (a, b) = nodes().await;
    b.links.set_peers(Incarnation(2), Vec::new()).unwrap();
    a.links
        .set_peers(Incarnation(1), vec![member("b", 2, &b.address)])
        .unwrap();
    comes_through(&a, &b, || {
        b.links
            .set_peers(Incarnation(2), vec![member("a", 1, &a.address)])
            .unwrap();
    })
    .await;
}

/// Returns the node's reply to this hello.
async fn answer(node: &Node, hello: &Hello) -> String {
    let mut wire = Wire::to(node).await;
    wire.send(&hello.encode()).await;
    let answer = wire.next().await.unwrap();
    if !answer.starts_with("Welcome") {
        assert_eq!(wire.next().await, None, "it closes");
    }
    answer
}

#[tokio::test]
async fn frames_that_can_never_fit_are_refused_even_before_the_first_list() {
    let (a, _b) = nodes().await;
    let mut other = hello("b", "a");
    other.purpose = Purpose::Link {
        fingerprint: [0x1f; 32],
        incarnation: Incarnation(99),
        to_incarnation: None,
    };
    for (hello, text) in [
        (hello("a", "a"), "has the same name as this node"),
        (hello("b", "c"), "looks for node c at the address of node a"),
        (other, "the configurations differ"),
    ] {
        let answer = answer(&a, &hello).await;
        assert!(answer.contains(text), "{answer}");
    }
    assert_eq!(answer(&a, &hello("b", "a")).await, "Later");
    assert_eq!(a.links.counters().refused, 3);
}

#[tokio::test]
async fn incarnations_are_distinguished() {
    let (a, _b) = nodes().await;
    let peers = vec![member("a", 1, &a.address), member("b", 2, "127.0.0.1:1")];
    a.links.set_peers(Incarnation(1), peers).unwrap();
    for (from, to, expected) in [
        (("b", 2), ("a", 1), "Welcome"),
        (("b", 3), ("a", 1), "Later"),
        (("b", 2), ("a", 2), "Later"),
        (("c", 2), ("a", 1), "Later"),
    ] {
        let answer = answer(&a, &hello_of(from, to)).await;
        assert!(answer.starts_with(expected), "{from:?} {to:?}: {answer}");
    }
    nothing_went_wrong(&a);
    // A peer that names no incarnation accepts any.
    let mut whichever = hello("b", "a");
    whichever.purpose = Purpose::Link {
        fingerprint: [7; 32],
        incarnation: Incarnation(2),
        to_incarnation: None,
    };
    let answer = answer(&a, &whichever).await;
    assert!(answer.starts_with("Welcome"), "{answer}");
}

#[tokio::test]
async fn an_unexpected_welcome_is_a_protocol_error() {
    let (at_b, b) = listener().await;
    let (a, _) = nodes().await;
    let peers = vec![member("b", 2, &b), member("c", 3, "127.0.0.1:1")];
    a.links.set_peers(Incarnation(1), peers).unwrap();
    a.links.send(Incarnation(2), b"x").unwrap();
    let welcome = Record::Welcome {
        incarnation: Incarnation(2),
        next: 1,
    };
    let stranger = Record::Welcome {
        incarnation: Incarnation(7),
        next: 1,
    };
    for (index, (bytes, text)) in [
        (
            encoded(&[welcome.clone(), welcome]),
            "sent a Welcome out of turn",
        ),
        (
            vec![3, 0, 0, 0, 2, 1, 2],
            "a Welcome record with 2 bytes of content",
        ),
        (
            encoded(&[stranger]),
            "sent Welcome as incarnation 7, but incarnation 2 was expected",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (mut wire, _) = Wire::accepted(&at_b).await;
        wire.send(&bytes).await;
        until(text, || a.links.counters().hostile == index as u64 + 1).await;
        let error = a.links.status()[0].last_error.clone();
        assert!(
            error.as_ref().is_some_and(|error| error.contains(text)),
            "{error:?}"
        );
        wire.closed().await;
    }
    let mut wire = Wire::to(&a).await;
    let welcome = Record::Welcome {
        incarnation: Incarnation(3),
        next: 1,
    };
    wire.send(&greeting(&hello_of(("c", 3), ("a", 1)), &[welcome]))
        .await;
    let mut last = String::new();
    while let Some(record) = wire.next().await {
        last = record;
    }
    assert!(last.contains("only a receiver may send"), "{last}");
    until("all are counted", || a.links.counters().hostile == 4).await;
}
