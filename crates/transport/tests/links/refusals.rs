//! Nodes that do not belong together, or no longer do.

use std::net::SocketAddr;
use std::sync::Arc;

use soloist_transport::Versions;
use soloist_transport::hello::VERSIONS;
use soloist_transport::links::{LinkStatus, Links, LinksError, Settings};
use tokio::net::TcpListener;

use crate::net::{A, B, Seen, Wire, hello, listener, pair, roster, settings, start, until};

#[tokio::test]
async fn another_configuration_is_refused_and_both_see_the_fingerprints() {
    let (a, b) = pair(|settings| {
        if settings.endpoint.name.as_str() == "b" {
            settings.fingerprint = [0x1f; 32];
        }
    })
    .await;
    a.links.send(B, b"x").unwrap();
    let text = "the configurations differ: node b has fingerprint 1f1f1f1f, node a has 07070707";
    until("a sees it", || a.seen.was_refused("b", text)).await;
    until("b sees it", || b.seen.was_refused("a", text)).await;
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
        ("b", "c", "node b looks for node c at the address of node a"),
        ("a", "a", "node a has the same name as this node"),
    ] {
        let mut wire = Wire::to(&a).await;
        wire.send(&hello(from, to).encode()).await;
        let answer = wire.next().await.unwrap();
        assert!(answer.contains(reason), "{answer}");
        assert_eq!(wire.next().await, None);
    }
    until("all are counted", || a.links.counters().refused == 2).await;
}

#[tokio::test]
async fn another_version_is_refused_with_both_numbers() {
    let (a, _b) = pair(|_| {}).await;
    let (lowest, highest) = (VERSIONS.highest + 1, VERSIONS.highest + 3);
    for (versions, text) in [
        (
            Versions { lowest, highest },
            format!(
                "it supports versions {lowest} to {highest} of the protocol, and this node \
                 {VERSIONS}; upgrade this node"
            ),
        ),
        (
            // The last release that sent names of locks in changes of epoch.
            Versions {
                lowest: 4,
                highest: 4,
            },
            format!(
                "it supports version 4 of the protocol, and this node {VERSIONS}; upgrade the \
                 node that dialled"
            ),
        ),
    ] {
        let mut newer = hello("b", "a");
        newer.versions = versions;
        let mut wire = Wire::to(&a).await;
        wire.send(&newer.encode()).await;
        let answer = wire.next().await.unwrap();
        assert!(answer.contains(&text), "{answer}");
    }
    until("both are counted", || a.links.counters().refused == 2).await;
}

fn refused_start(settings: Settings, listener: TcpListener) -> LinksError {
    match Links::start(settings, listener, Arc::new(Seen::default())) {
        Ok(_) => panic!("these links must not start"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn links_refuse_invalid_settings() {
    let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = refused_start(settings("a"), everywhere);
    assert!(matches!(
        error,
        LinksError::PlainOffLoopback(SocketAddr::V4(_))
    ));
    assert!(error.to_string().contains("give it a certificate"));
    let mut bad = settings("a");
    bad.limits.probe_every = bad.limits.silence_max;
    let error = refused_start(bad, listener().await.0).to_string();
    assert!(
        error.contains("probe_every must be longer than 0"),
        "{error}"
    );
}

#[tokio::test]
async fn a_bad_list_of_peers_changes_nothing() {
    let (a, b) = pair(|_| {}).await;
    a.links.send(B, b"before").unwrap();
    until("it arrived", || b.seen.count() == 1).await;
    let before = a.links.status();
    let names = |names: &[&str]| {
        let peers: Vec<_> = names.iter().map(|name| (*name, "127.0.0.1:1")).collect();
        roster(&peers)
    };
    let mut same = names(&["c", "d"]);
    same[1].incarnation = same[0].incarnation;
    for (peers, text) in [
        (names(&["a", "b", "b"]), "two nodes have the name \"b\""),
        (names(&["a", ""]), "use 1 to 63 characters"),
        (names(&["a", &"n".repeat(64)]), "has 64 bytes (maximum: 63)"),
        (same, "two nodes have the incarnation 99"),
    ] {
        let error = a.links.set_peers(A, peers).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        let names = |links: &[LinkStatus]| -> Vec<String> {
            links.iter().map(|link| link.name.clone()).collect()
        };
        assert_eq!(names(&a.links.status()), names(&before));
    }
    a.links.send(B, b"after").unwrap();
    until("the link continues", || b.seen.count() == 2).await;
    assert_eq!(a.links.counters().dialled, 1);
}

#[tokio::test]
async fn without_tls_no_other_machine_is_dialled() {
    let (at_a, a) = listener().await;
    // An address of a range reserved for documentation: nothing is there.
    let peers = roster(&[("a", &a), ("b", "192.0.2.1:7")]);
    let a = start(settings("a"), peers, at_a);
    a.links.send(B, b"x").unwrap();
    until("it is refused", || {
        a.seen.was_refused(
            "b",
            "192.0.2.1:7 is not a loopback address, and there is no TLS",
        )
    })
    .await;
}
