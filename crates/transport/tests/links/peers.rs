//! Peers that are added, kept, removed, and added again in another incarnation.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use soloist_core::Incarnation;
use soloist_transport::links::frame::Record;
use soloist_transport::links::{Handler, LinkChange, Links, Peer, SendError};

use crate::net::{
    A, B, Node, Wire, encoded, greeting, hello_of, listener, lone, member, roster, settings, start,
    until,
};

/// Incarnations of a and b in most of these tests.
const FIRST_A: Incarnation = Incarnation(1);
const FIRST_B: Incarnation = Incarnation(2);

const NOBODY: &str = "127.0.0.1:1";

fn data(number: u64, payload: &[u8]) -> Record<'_> {
    Record::Data { number, payload }
}

fn welcome(incarnation: u64) -> Vec<u8> {
    encoded(&[Record::Welcome {
        incarnation: Incarnation(incarnation),
        next: 1,
    }])
}

/// Starts node a in incarnation 1, with b in incarnation 2 at this address.
async fn node_a(b: &str) -> Node {
    let (at_a, a) = listener().await;
    let node = lone(settings("a"), at_a);
    let peers = vec![member("a", 1, &a), member("b", 2, b)];
    node.links.set_peers(FIRST_A, peers).unwrap();
    node
}

/// Sets a's peers, with this incarnation of a and this one of b.
fn set_incarnations(a: &Node, mine: u64, of_b: u64, b: &str) {
    let peers = vec![member("a", mine, &a.address), member("b", of_b, b)];
    a.links.set_peers(Incarnation(mine), peers).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn remaining_peers_lose_nothing_while_others_come_and_go() {
    const FRAMES: u32 = 20_000;
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let nodes = [("a", 1, at_a), ("b", 2, at_b)].map(|(me, incarnation, listener)| {
        let node = lone(settings(me), listener);
        let peers = vec![member("a", 1, &a), member("b", 2, &b)];
        node.links
            .set_peers(Incarnation(incarnation), peers)
            .unwrap();
        node
    });
    let [a, b] = &nodes;
    for number in 0..FRAMES {
        a.links.send(FIRST_B, &number.to_le_bytes()).unwrap();
        b.links.send(FIRST_A, &number.to_le_bytes()).unwrap();
        if number % 100 == 0 {
            let round = u64::from(number) / 100;
            // Each round has other additional peers, so that a and b are at other positions.
            let others = (0..round % 4).map(|other| {
                let name = format!("n{other}");
                member(&name, 1000 + 10 * round + other, NOBODY)
            });
            let mut peers: Vec<Peer> = others.collect();
            let place = peers.len() / 2;
            peers.insert(place, member("b", 2, &b.address));
            peers.insert(place, member("a", 1, &a.address));
            a.links.set_peers(FIRST_A, peers.clone()).unwrap();
            b.links.set_peers(FIRST_B, peers).unwrap();
            tokio::task::yield_now().await;
        }
    }
    for (node, from) in [(a, FIRST_B), (b, FIRST_A)] {
        until("all arrived", || node.seen.count() == FRAMES as usize).await;
        for (number, frame) in (0..FRAMES).zip(node.seen.frames()) {
            assert_eq!(frame, (from, number.to_le_bytes().to_vec()));
        }
        assert_eq!(node.links.counters().dialled, 1, "one connection is enough");
        assert_eq!(node.links.counters().frames_resent, 0);
    }
}

#[tokio::test]
async fn a_remaining_peer_may_change_its_place_and_address() {
    let ((at_b, b), (other_b, elsewhere)) = (listener().await, listener().await);
    let a = node_a(&b).await;
    let mut wire = Wire::to(&a).await;
    wire.send(&greeting(&hello_of(("b", 2), ("a", 1)), &[data(1, b"one")]))
        .await;
    until("a frame came", || a.seen.count() == 1).await;
    a.links.send(FIRST_B, b"x").unwrap();
    let (first, _) = Wire::accepted(&at_b).await;
    let b = member("b", 2, &elsewhere);
    a.links.set_peers(FIRST_A, vec![b]).unwrap();
    assert!(a.links.send_if_room(FIRST_B, b"y"));
    let nobody = Incarnation(77);
    assert!(!a.links.send_if_room(nobody, b"there is no such peer"));
    wire.send(&encoded(&[data(2, b"two")])).await;
    until("the link continues", || a.seen.count() == 2).await;
    assert_eq!(
        a.seen.frames(),
        [(FIRST_B, b"one".to_vec()), (FIRST_B, b"two".to_vec())]
    );
    drop(first);
    let (mut second, _) = Wire::accepted(&other_b).await;
    second.send(&welcome(2)).await;
    assert!(second.next().await.unwrap().starts_with("Data { number: 1"));
    assert!(second.next().await.unwrap().starts_with("Data { number: 2"));
}

#[tokio::test]
async fn frames_to_an_earlier_incarnation_never_reach_the_next() {
    let (at_b, b) = listener().await;
    let a = node_a(&b).await;
    a.links.send(FIRST_B, b"sent").unwrap();
    let (mut first, hello) = Wire::accepted(&at_b).await;
    assert!(
        hello.contains("incarnation: Incarnation(1), to_incarnation: Some(Incarnation(2))"),
        "{hello}"
    );
    first.send(&welcome(2)).await;
    assert!(first.next().await.unwrap().starts_with("Data { number: 1"));
    a.links.send(FIRST_B, b"waits").unwrap();
    set_incarnations(&a, 1, 3, &b);
    assert_eq!(a.links.status()[1].buffered_frames, 0);
    let earlier = a.links.send(FIRST_B, b"to the earlier one");
    assert_eq!(earlier, Err(SendError::NotAPeer(FIRST_B)));
    let itself = a.links.send(FIRST_A, b"to itself");
    assert_eq!(itself, Err(SendError::NotAPeer(FIRST_A)));
    a.links.send(Incarnation(3), b"new").unwrap();
    // Frames in flight may still reach the incarnation that they were sent to.
    let mut last = String::new();
    while let Some(record) = first.next().await {
        assert!(!record.contains("payload: [110, 101, 119]"), "{record}");
        last = record;
    }
    assert_eq!(last, "Goodbye");
    let (mut second, hello) = Wire::accepted(&at_b).await;
    assert!(
        hello.contains("incarnation: Incarnation(1), to_incarnation: Some(Incarnation(3))"),
        "{hello}"
    );
    second.send(&welcome(3)).await;
    let record = second.next().await.unwrap();
    assert_eq!(record, format!("{:?}", data(1, b"new")));
    assert_eq!(
        a.seen.changes().len(),
        2,
        "up, and up again: {:?}",
        a.seen.changes()
    );
}

#[tokio::test]
async fn frames_of_an_earlier_incarnation_are_not_delivered() {
    let a = node_a(NOBODY).await;
    let mut first = Wire::to(&a).await;
    first
        .send(&greeting(&hello_of(("b", 2), ("a", 1)), &[data(1, b"old")]))
        .await;
    until("a frame came", || a.seen.count() == 1).await;
    assert!(a.links.status()[1].in_up);
    set_incarnations(&a, 1, 3, NOBODY);
    assert!(!a.links.status()[1].in_up);
    first.send(&encoded(&[data(2, b"late")])).await;
    let mut last = String::new();
    while let Some(record) = first.next().await {
        last = record;
    }
    assert_eq!(last, "Goodbye");
    let mut again = Wire::to(&a).await;
    again.send(&hello_of(("b", 2), ("a", 1)).encode()).await;
    assert_eq!(again.next().await.unwrap(), "Later");
    again.closed().await;
    let mut second = Wire::to(&a).await;
    second
        .send(&greeting(&hello_of(("b", 3), ("a", 1)), &[data(1, b"new")]))
        .await;
    assert!(second.next().await.unwrap().ends_with("next: 1 }"));
    until("the new incarnation is heard", || a.seen.count() == 2).await;
    assert_eq!(a.seen.frames()[1], (Incarnation(3), b"new".to_vec()));
    let counters = a.links.counters();
    assert_eq!((counters.refused, counters.hostile), (0, 0));
    assert_eq!(counters.frames_received, 2, "totals do not go down");
}

#[tokio::test]
async fn a_new_incarnation_starts_with_an_empty_window() {
    let (at_b, b) = listener().await;
    let a = node_a(&b).await;
    let mut from_b = Wire::to(&a).await;
    from_b
        .send(&greeting(&hello_of(("b", 2), ("a", 1)), &[data(1, b"one")]))
        .await;
    a.links.send(FIRST_B, b"x").unwrap();
    let (mut to_b, _) = Wire::accepted(&at_b).await;
    to_b.send(&welcome(2)).await;
    until("both are up", || {
        let link = &a.links.status()[1];
        link.in_up && link.out_up
    })
    .await;
    set_incarnations(&a, 9, 2, &b);
    from_b.closed().await;
    to_b.closed().await;
    for (meant, answer) in [
        (1, "Later"),
        (9, "Welcome { incarnation: Incarnation(9), next: 1 }"),
    ] {
        let mut wire = Wire::to(&a).await;
        wire.send(&hello_of(("b", 2), ("a", meant)).encode()).await;
        assert_eq!(wire.next().await.unwrap(), answer);
    }
    a.links.send(FIRST_B, b"y").unwrap();
    let (mut to_b, hello) = Wire::accepted(&at_b).await;
    assert!(
        hello.contains("incarnation: Incarnation(9), to_incarnation: Some(Incarnation(2))"),
        "{hello}"
    );
    to_b.send(&welcome(2)).await;
    let record = to_b.next().await.unwrap();
    assert_eq!(record, format!("{:?}", data(1, b"y")));
}

#[tokio::test]
async fn frames_for_a_peer_that_leaves_are_freed_immediately() {
    const FRAME: usize = 1000;
    // Nothing accepts there.
    let (_at_b, b) = listener().await;
    let a = node_a(&b).await;
    for _ in 0..1000 {
        a.links.send(FIRST_B, &[0; FRAME]).unwrap();
    }
    until("it was dialled", || a.links.counters().dialled == 1).await;
    let freed = allocation_counter::measure(|| a.links.set_peers(FIRST_A, Vec::new()).unwrap());
    assert!(freed.bytes_current < -(1000 * FRAME as i64), "{freed:?}");
    let closing = a.links.close(Duration::from_secs(3600));
    tokio::time::timeout(Duration::from_secs(60), closing)
        .await
        .expect("there is nothing to wait for");
}

#[tokio::test]
async fn close_does_not_wait_for_peers_that_leave_during_it() {
    let (_at_b, b) = listener().await;
    let a = node_a(&b).await;
    a.links.send(FIRST_B, b"x").unwrap();
    let closing = a.links.close(Duration::from_secs(3600));
    let changing = async {
        tokio::task::yield_now().await;
        a.links.set_peers(FIRST_A, Vec::new()).unwrap();
    };
    let both = async { tokio::join!(closing, changing) };
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .expect("there is nothing to wait for");
}

#[tokio::test]
async fn totals_remain_when_peers_leave() {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let peers = roster(&[("a", &a), ("b", &b)]);
    let a = start(settings("a"), peers.to_vec(), at_a);
    let b = start(settings("b"), peers.to_vec(), at_b);
    for number in 0..100 {
        a.links.send(B, &[number]).unwrap();
        b.links.send(A, &[number]).unwrap();
    }
    until("everything is sent and acknowledged", || {
        let buffered = a.links.status()[1].buffered_frames + b.links.status()[0].buffered_frames;
        buffered == 0 && a.seen.count() + b.seen.count() == 200
    })
    .await;
    let before = a.links.counters();
    assert_eq!((before.frames_sent, before.frames_received), (100, 100));
    assert_eq!(before.links_up, 1);
    a.links.set_peers(A, peers[..1].to_vec()).unwrap();
    let after = a.links.counters();
    assert_eq!(after.links_up, 0);
    assert_eq!((after.frames_sent, after.frames_received), (100, 100));
    assert!(after.bytes_sent >= before.bytes_sent && after.writes >= before.writes);
    assert!(after.bytes_received >= before.bytes_received);
    until("b heard it", || b.seen.said_goodbye("a")).await;
}

#[tokio::test]
async fn a_thousand_peers_without_traffic_cost_little() {
    const PEERS: u64 = 1000;
    let (at_a, _) = listener().await;
    let a = lone(settings("a"), at_a);
    let peers = |first: u64| -> Vec<Peer> {
        (0..PEERS)
            .map(|index| member(&format!("n{index}"), first + index, NOBODY))
            .collect()
    };
    for (mine, first) in [(1, 1000), (1, 5000), (2, 5000)] {
        let mine = Incarnation(mine);
        let list = peers(first);
        let cost = allocation_counter::measure(|| a.links.set_peers(mine, list).unwrap());
        // The previous peers are freed once their tasks have noticed.
        assert!(cost.bytes_max < 3000 * PEERS, "{cost:?}");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(a.links.status().len(), PEERS as usize);
    assert_eq!(a.links.counters().dialled, 0);
    let freed = allocation_counter::measure(|| {
        // The tasks of this test run on its own thread.
        a.links.set_peers(Incarnation(2), Vec::new()).unwrap();
    });
    assert!(freed.bytes_current < 0, "{freed:?}");
}

/// A handler that holds a mutex during its calls, as a node's lock table does, and that changes the
/// peers from within.
struct Changing {
    links: OnceLock<Links>,
    state: Mutex<Vec<(Incarnation, Vec<u8>)>>,
    /// Peers to set on receiving a frame, by the first byte of the frame.
    lists: Vec<Vec<Peer>>,
}

impl Handler for Changing {
    fn receive(
        &self,
        from: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String> {
        let mut state = self.state.lock().unwrap();
        for frame in frames {
            state.push((from, frame.to_vec()));
            let list = self.lists.get(usize::from(frame[0]));
            if let Some(list) = list.filter(|list| !list.is_empty()) {
                let links = self.links.get().ok_or("not started")?;
                links
                    .set_peers(FIRST_A, list.clone())
                    .map_err(|error| error.to_string())?;
                links
                    .send(list[list.len() - 1].incarnation, b"changed")
                    .unwrap();
            }
        }
        Ok(())
    }

    fn link_changed(&self, _: &str, _: LinkChange) {
        drop(self.state.lock().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_handler_may_change_the_list() {
    const ROUNDS: u8 = 100;
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let incarnation = |round: u8| 1000 + u64::from(round);
    let mut lists: Vec<Vec<Peer>> = vec![Vec::new()];
    // In each round b returns in another incarnation, and a learns of it from a frame of the
    // previous one.
    lists.extend((1..ROUNDS).map(|round| vec![member("b", incarnation(round), &b)]));
    let handler = Arc::new(Changing {
        links: OnceLock::new(),
        state: Mutex::default(),
        lists,
    });
    let links = Links::start(settings("a"), at_a, handler.clone()).unwrap();
    links
        .set_peers(FIRST_A, vec![member("b", incarnation(0), &b)])
        .unwrap();
    assert!(handler.links.set(links).is_ok());
    let b = lone(settings("b"), at_b);
    for round in 0..ROUNDS {
        b.links
            .set_peers(Incarnation(incarnation(round)), vec![member("a", 1, &a)])
            .unwrap();
        until("a sends to this incarnation", || {
            b.seen.count() == usize::from(round)
        })
        .await;
        // The last frame changes nothing; each of the others announces the next incarnation.
        b.links.send(FIRST_A, &[round + 1]).unwrap();
        until("a heard it", || {
            handler.state.lock().unwrap().len() == usize::from(round) + 1
        })
        .await;
    }
    let heard = handler.state.lock().unwrap().clone();
    let sent = (0..ROUNDS).map(|round| (Incarnation(incarnation(round)), vec![round + 1]));
    assert_eq!(heard, sent.collect::<Vec<_>>());
    assert_eq!(b.seen.count(), usize::from(ROUNDS) - 1);
}
