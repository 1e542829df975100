//! Messages that no correct peer sends are refused, and the state is unchanged.

use soloist_algorithms::lodha_kshemkalyani::LodhaKshemkalyaniMessage::{Flush, Reply, Request};
use soloist_algorithms::lodha_kshemkalyani::{
    CLOCK_EVERYWHERE, Errand, LodhaKshemkalyani, LodhaKshemkalyaniMessage, ONE_REPLY,
};
use soloist_algorithms::{Algorithm, Config, NodeId, Outbox, Phase, RequestId, Start};

const ME: NodeId = NodeId::new(0);
const PEER: NodeId = NodeId::new(1);
const OTHER: NodeId = NodeId::new(2);

fn request(sequence: u64) -> LodhaKshemkalyaniMessage {
    Request {
        request: RequestId::new(sequence, PEER),
        satisfied: None,
        had_yours: None,
    }
}

fn request_after(sequence: u64, satisfied: RequestId) -> LodhaKshemkalyaniMessage {
    Request {
        request: RequestId::new(sequence, PEER),
        satisfied: Some(satisfied),
        had_yours: None,
    }
}

fn reply(satisfied: Option<RequestId>) -> LodhaKshemkalyaniMessage {
    reply_with(satisfied, 0, vec![])
}

fn reply_with(
    satisfied: Option<RequestId>,
    highest: u64,
    errands: Vec<Errand>,
) -> LodhaKshemkalyaniMessage {
    Reply {
        satisfied,
        highest,
        errands,
    }
}

fn flush(sequence: u64, node: NodeId) -> LodhaKshemkalyaniMessage {
    Flush {
        satisfied: RequestId::new(sequence, node),
        highest: 0,
        errands: vec![],
    }
}

fn errand(sequence: u64, node: u32, answers: u32) -> Errand {
    Errand {
        request: RequestId::new(sequence, NodeId::new(node)),
        answers: NodeId::new(answers),
    }
}

/// Node 0 of three, in its initial state.
fn idle() -> LodhaKshemkalyani {
    LodhaKshemkalyani::new(&Config::first(3))
}

/// Node 0 of three, which has seen request 4 of node 1 and waits with its own request, 5.
fn waiting(mut node: LodhaKshemkalyani) -> LodhaKshemkalyani {
    let mut out = Outbox::new();
    node.receive(PEER, request(4), &mut out).unwrap();
    node.request(&mut out).unwrap();
    assert_eq!(node.my_request(), RequestId::new(5, ME));
    node
}

#[track_caller]
fn refuses(node: &LodhaKshemkalyani, message: LodhaKshemkalyaniMessage) {
    let mut after = node.clone();
    let mut out = Outbox::new();
    let result = after.receive(PEER, message.clone(), &mut out);
    assert!(result.is_err(), "{message} was taken");
    assert_eq!(after, *node, "{message}");
    assert!(out.is_empty(), "{message}");
}

#[test]
fn invalid_identities_are_refused() {
    for node in [idle(), waiting(idle())] {
        refuses(&node, request(0));
        refuses(&node, request(1 << 62));
        refuses(&node, request(u64::MAX));
        refuses(&node, request_after(6, RequestId::new(6, PEER)));
        refuses(&node, request_after(6, RequestId::new(3, OTHER)));
        refuses(&node, request_after(7, RequestId::new(6, PEER)));
        refuses(&node, flush(0, PEER));
        refuses(&node, flush(4, OTHER));
        refuses(&node, flush(6, PEER));
        refuses(&node, flush(u64::MAX, PEER));
    }
}

#[test]
fn number_0_belongs_to_the_node_that_started_inside() {
    let zero = Some(RequestId::new(0, PEER));
    refuses(&waiting(idle()), reply(zero));
    let start = Start::inside(PEER);
    let config = Config {
        start,
        ..Config::first(3)
    };
    let mut node = LodhaKshemkalyani::new(&config);
    let mut out = Outbox::new();
    node.request(&mut out).unwrap();
    node.receive(PEER, reply(zero), &mut out).unwrap();
}

#[test]
fn a_second_answer_is_refused() {
    refuses(&idle(), reply(None));
    let mut node = waiting(idle());
    node.receive(PEER, reply(None), &mut Outbox::new()).unwrap();
    refuses(&node, reply(None));
    // The peer has answered, so its next request comes after ours.
    refuses(&node, request(4));
    node.receive(PEER, request(6), &mut Outbox::new()).unwrap();
    refuses(&node, request(7));
}

#[test]
fn a_later_request_cannot_be_satisfied_before_ours() {
    let mut node = waiting(idle());
    node.receive(PEER, request(5), &mut Outbox::new()).unwrap();
    refuses(&node, flush(5, PEER));
    refuses(&node, request_after(6, RequestId::new(5, PEER)));
}

#[test]
fn messages_of_a_variant_are_refused_without_it() {
    let node = waiting(idle());
    refuses(&node, reply_with(None, 9, vec![]));
    refuses(&node, reply_with(None, 0, vec![errand(5, 0, 2)]));
    let had_yours = Request {
        request: RequestId::new(6, PEER),
        satisfied: None,
        had_yours: Some(5),
    };
    refuses(&node, had_yours);
}

#[test]
fn invalid_errands_are_refused() {
    let first = Config::first(3);
    let variants = first.variants.with(ONE_REPLY).with(CLOCK_EVERYWHERE);
    let node = waiting(LodhaKshemkalyani::new(&Config { variants, ..first }));
    let carried = |errands: &[Errand]| reply_with(None, 5, errands.to_vec());
    for errands in [
        &[errand(5, 0, 3)][..],
        &[errand(6, 3, 1)],
        &[errand(6, 2, 2)],
        &[errand(6, 2, 0)],
        &[errand(6, 0, 2)],
        &[errand(4, 2, 1)],
        &[errand(u64::MAX, 2, 1)],
        &[errand(6, 2, 1), errand(5, 0, 2)],
        &[errand(6, 2, 1), errand(6, 2, 1)],
    ] {
        refuses(&node, carried(errands));
    }
    refuses(&node, reply_with(None, u64::MAX, vec![]));
    let mut node = node;
    let good = carried(&[errand(5, 0, 2), errand(6, 2, 1)]);
    node.receive(PEER, good, &mut Outbox::new()).unwrap();
    assert_eq!(node.phase(), Phase::Inside);
}
