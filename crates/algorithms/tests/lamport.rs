//! Messages that no correct peer sends are refused, and the state is unchanged.

use soloist_algorithms::lamport::LamportMessage::{Ack, Release, Request};
use soloist_algorithms::lamport::{Lamport, LamportMessage};
use soloist_algorithms::{Algorithm, Config, NodeId, Outbox};

const PEER: NodeId = NodeId::new(1);

#[track_caller]
fn refuses(node: &Lamport, message: LamportMessage) {
    let mut after = node.clone();
    let mut out = Outbox::new();
    let result = after.receive(PEER, message, &mut out);
    assert!(result.is_err(), "{message} was taken");
    assert_eq!(after, *node, "{message}");
    assert!(out.is_empty(), "{message}");
}

#[test]
fn invalid_dates_are_refused() {
    let node = Lamport::new(&Config::first(2));
    for time in [0, 1 << 62, u64::MAX] {
        refuses(&node, Request { time });
        refuses(&node, Ack { time });
        refuses(&node, Release { time, request: 0 });
    }
}

#[test]
fn unexpected_messages_are_refused() {
    let mut node = Lamport::new(&Config::first(2));
    let mut out = Outbox::new();
    refuses(&node, Ack { time: 1 });
    let time = 2;
    node.receive(PEER, Request { time }, &mut out).unwrap();
    refuses(&node, Request { time: 3 });
    refuses(&node, Release { time, request: 1 });
    refuses(
        &node,
        Release {
            time: 1,
            request: 2,
        },
    );
    node.receive(PEER, Release { time, request: 2 }, &mut out)
        .unwrap();
    refuses(&node, Release { time, request: 2 });
}

#[test]
fn a_clock_that_runs_backwards_is_refused() {
    let mut node = Lamport::new(&Config::first(3));
    let mut out = Outbox::new();
    node.receive(PEER, Request { time: 4 }, &mut out).unwrap();
    node.request(&mut out).unwrap();
    node.receive(PEER, Ack { time: 5 }, &mut out).unwrap();
    refuses(
        &node,
        Release {
            time: 4,
            request: 4,
        },
    );
}
