//! Nodes that do not belong together, or no longer.

use std::net::SocketAddr;
use std::sync::Arc;

use soloist_node::links::frame::Record;
use soloist_node::links::{Links, LinksError};
use tokio::net::TcpListener;

use crate::net::{Seen, Wire, encoded, hello, listener, pair, roster, settings, start, until};
use crate::proxy::plain;

const RESTARTED: &str = "has restarted and lost what it knew of its locks";

#[tokio::test]
async fn another_configuration_is_refused_and_both_see_the_fingerprints() {
    let (a, b) = pair(|settings| {
        if settings.me == "b" {
            settings.fingerprint = [0x1f; 32];
        }
    })
    .await;
    a.links.send(1, b"x").unwrap();
    let text = "the configurations differ: node b has fingerprint 1f1f1f1f, node a has 07070707";
    until("a sees it", || a.seen.was_refused(1, text)).await;
    until("b sees it", || b.seen.was_refused(0, text)).await;
    assert!(b.links.counters().refused >= 1);
    assert!(a.links.counters().refused_by_peers >= 1);
    assert!(
        a.links.status()[1]
            .last_error
            .as_ref()
            .unwrap()
            .contains(text)
    );
    assert_eq!(b.seen.count(), 0);
}

#[tokio::test]
async fn names_that_do_not_fit_are_refused() {
    let (a, _b) = pair(|_| {}).await;
    for (from, to, reason) in [
        ("z", "a", "node z is not in the roster of node a"),
        ("b", "c", "node b looks for node c at the address of node a"),
        ("a", "a", "node a calls itself as this node is called"),
    ] {
        let mut wire = Wire::to(&a).await;
        wire.send(&encoded(&[Record::Hello(hello(from, to))])).await;
        let answer = wire.next().await.unwrap();
        assert!(answer.contains(reason), "{answer}");
        assert_eq!(wire.next().await, None);
    }
    until("all are counted", || a.links.counters().refused == 3).await;
}

#[tokio::test]
async fn another_version_is_refused_with_both_numbers() {
    let (a, _b) = pair(|_| {}).await;
    let mut bytes = encoded(&[Record::Hello(hello("b", "a"))]);
    bytes[9] = 9;
    let mut wire = Wire::to(&a).await;
    wire.send(&bytes).await;
    let answer = wire.next().await.unwrap();
    assert!(answer.contains("version 9 of the wire format, where this node speaks version 1"));
}

#[tokio::test]
async fn a_restarted_node_is_refused_in_both_directions_until_it_is_forgotten() {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let proxy = plain(&b).await;
    let peers = roster(&[("a", &a), ("b", &proxy.address)]);
    let a = start(settings("a", peers.clone()), at_a);
    let first = start(settings("b", peers.clone()), at_b);
    a.links.send(1, b"to b").unwrap();
    first.links.send(0, b"to a").unwrap();
    until("both talk", || first.seen.count() + a.seen.count() == 2).await;
    first.links.close(std::time::Duration::from_secs(5)).await;

    let (at_b, b) = listener().await;
    *proxy.target.lock().unwrap() = b;
    let mut again = settings("b", peers);
    again.incarnation = 1000;
    let again = start(again, at_b);
    again.links.send(0, b"again").unwrap();
    a.links.send(1, b"more").unwrap();
    until("b is told", || again.seen.was_refused(0, RESTARTED)).await;
    until("a refuses b's answer", || {
        let error = a.links.status()[1].last_error.clone();
        error.is_some_and(|error| error.contains(RESTARTED))
    })
    .await;
    assert!(a.seen.was_refused(1, "node b has restarted"));
    assert_eq!((a.seen.count(), again.seen.count()), (1, 0));

    a.links.forget(1);
    a.links.send(1, b"anew").unwrap();
    until("both talk again", || {
        a.seen.count() + again.seen.count() == 3
    })
    .await;
    assert_eq!(again.seen.frames(), [(0, b"anew".to_vec())]);
    assert_eq!(a.seen.frames()[1], (1, b"again".to_vec()));
}

#[tokio::test]
async fn who_begins_anew_alone_is_refused_until_the_other_does() {
    let (a, b) = pair(|_| {}).await;
    for number in 0..10 {
        a.links.send(1, &[number]).unwrap();
        b.links.send(0, &[number]).unwrap();
    }
    until("all arrived", || a.seen.count() + b.seen.count() == 20).await;
    a.links.forget(1);
    a.links.send(1, b"anew").unwrap();
    b.links.send(0, b"old").unwrap();
    until("b refuses a", || {
        a.seen
            .was_refused(1, "node a has begun its links with this node anew")
    })
    .await;
    until("a refuses b", || {
        b.seen.was_refused(0, "and node b has not yet")
    })
    .await;
    b.links.forget(0);
    b.links.send(0, b"new").unwrap();
    until("both go on", || a.seen.count() + b.seen.count() == 22).await;
    assert_eq!(b.seen.frames()[10], (0, b"anew".to_vec()));
    assert_eq!(
        a.seen.frames()[10],
        (1, b"new".to_vec()),
        "what was old is gone"
    );
    assert_eq!(a.links.counters().frames_received, 11);
}

fn refusal(me: &str, names: &[&str], listener: TcpListener) -> LinksError {
    let peers: Vec<_> = names.iter().map(|name| (*name, "127.0.0.1:1")).collect();
    let started = Links::start(
        settings(me, roster(&peers)),
        listener,
        Arc::new(Seen::default()),
    );
    match started {
        Ok(_) => panic!("these links must not start"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn links_do_not_start_with_bad_settings() {
    let at = || async { listener().await.0 };
    let error = refusal("a", &["a", "b", "b"], at().await);
    assert_eq!(
        error.to_string(),
        "two nodes are called \"b\"; give each its own name"
    );
    let error = refusal("a", &[""], at().await);
    assert!(error.to_string().contains("it has 0 bytes, not 1 to 255"));
    let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = refusal("a", &["b"], everywhere);
    assert!(matches!(
        error,
        LinksError::PlainOffLoopback(SocketAddr::V4(_))
    ));
    assert!(error.to_string().contains("give it a certificate"));
    let mut bad = settings("a", roster(&[]));
    bad.limits.probe_every = bad.limits.silence_max;
    let started = Links::start(bad, at().await, Arc::new(Seen::default()));
    let error = started.err().unwrap().to_string();
    assert!(
        error.contains("probe_every must be longer than 0"),
        "{error}"
    );
}

#[tokio::test]
async fn without_tls_no_other_machine_is_dialled() {
    let (at_a, a) = listener().await;
    // An address of the range that is kept for examples: nobody is there.
    let a = start(
        settings("a", roster(&[("a", &a), ("b", "192.0.2.1:7")])),
        at_a,
    );
    a.links.send(1, b"x").unwrap();
    until("it is refused", || {
        a.seen.was_refused(
            1,
            "without TLS only loopback addresses are allowed, and 192.0.2.1:7 is none",
        )
    })
    .await;
}
