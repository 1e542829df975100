//! Connections that break at any byte: no frame is lost or delivered twice.

use std::sync::atomic::Ordering;
use std::time::Duration;

use soloist_core::Incarnation;
use soloist_testing::proxy::{Proxy, Temper};
use soloist_transport::Security;
use soloist_transport::identity::Authority;

use crate::certificates::identity;
use crate::net::{A, B, C, Node, listener, roster, settings, start, until};

const FRAMES: u32 = 10_000;

/// The incarnations of the three nodes.
const NODES: [Incarnation; 3] = [A, B, C];

/// Distinct frames of many sizes.
fn frame(from: usize, to: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![from as u8, to as u8];
    frame.extend(number.to_le_bytes());
    frame.resize(6 + number as usize * 7 % 90, 0xee);
    frame
}

/// Starts three nodes. Each reaches each of the others through a proxy of its own.
async fn three(seed: u64, security: impl Fn(&str) -> Security) -> (Vec<Node>, Vec<Proxy>) {
    let names = ["a", "b", "c"];
    let mut listeners = Vec::new();
    for _ in names {
        listeners.push(listener().await);
    }
    let addresses: Vec<String> = listeners.iter().map(|(_, at)| at.clone()).collect();
    let (mut nodes, mut proxies) = (Vec::new(), Vec::new());
    for (me, (listener, _)) in listeners.into_iter().enumerate() {
        let mut peers = roster(&names.map(|name| (name, "")));
        for (to, address) in addresses.iter().enumerate() {
            let proxy = Proxy::to(address, seed * 100 + (me * 10 + to) as u64, Temper::FLOOD).await;
            peers[to].address = proxy.address.clone();
            proxies.push(proxy);
        }
        let mut settings = settings(names[me]);
        settings.endpoint.security = security(names[me]);
        nodes.push(start(settings, peers, listener));
    }
    (nodes, proxies)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_frames_each_way_arrive_once_and_in_order() {
    let (nodes, proxies) = three(1, |_| Security::Plain).await;
    all_arrive(nodes, proxies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_under_tls() {
    let ca = Authority::new("orchestra").unwrap();
    let (nodes, proxies) = three(2, |name| Security::tls(&identity(&ca, name))).await;
    all_arrive(nodes, proxies).await;
}

async fn all_arrive(nodes: Vec<Node>, proxies: Vec<Proxy>) {
    let pairs = || {
        (0..3)
            .flat_map(|a| (0..3).map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
    };
    for number in 0..FRAMES {
        for (from, to) in pairs() {
            nodes[from]
                .links
                .send(NODES[to], &frame(from, to, number))
                .unwrap();
        }
        if number % 100 == 0 {
            // Let frames be sent while connections break, instead of all before that.
            tokio::task::yield_now().await;
        }
    }
    for node in &nodes {
        let all = 2 * FRAMES as usize;
        until("all frames arrived", || node.seen.count() >= all).await;
    }
    for (to, node) in nodes.iter().enumerate() {
        let frames = node.seen.frames();
        for from in (0..3).filter(|from| *from != to) {
            let got = frames.iter().filter(|(of, _)| *of == NODES[from]);
            let got: Vec<_> = got.map(|(_, bytes)| bytes.clone()).collect();
            let sent: Vec<_> = (0..FRAMES).map(|number| frame(from, to, number)).collect();
            assert!(got == sent, "frames from {from} to {to} differ");
        }
    }
    let cuts: u64 = proxies.iter().map(|p| p.cuts.load(Ordering::Relaxed)).sum();
    let resent: u64 = nodes.iter().map(|n| n.links.counters().frames_resent).sum();
    assert!(
        cuts > 50 && resent > 0,
        "{cuts} cuts, {resent} resent: too gentle"
    );

    for proxy in &proxies {
        proxy.healed.store(true, Ordering::Relaxed);
    }
    for node in &nodes {
        until("all is acknowledged", || {
            node.links
                .status()
                .iter()
                .all(|link| link.buffered_frames == 0)
        })
        .await;
        let counters = node.links.counters();
        assert_eq!(counters.frames_sent, 2 * u64::from(FRAMES));
        assert_eq!(counters.frames_received, 2 * u64::from(FRAMES));
        assert_eq!((counters.hostile, counters.refused), (0, 0));
    }
    for node in &nodes {
        node.links.close(Duration::from_secs(5)).await;
    }
}
