//! Tokens that cannot be the only token are refused.

use soloist_algorithms::suzuki_kasami::{SuzukiKasami, SuzukiKasamiMessage, Token};
use soloist_algorithms::{Algorithm, Config, NodeId, Outbox, Phase, Violation};

use SuzukiKasamiMessage::{Privilege, Request};

const NODES: usize = 4;

fn node(number: u32) -> NodeId {
    NodeId::new(number)
}

fn token(ln: &[u64], queue: &[u32]) -> SuzukiKasamiMessage {
    Privilege(Token {
        ln: ln.into(),
        queue: queue.iter().copied().map(NodeId::new).collect(),
    })
}

/// Node 1 of four waits with its first request, and knows of the second request of node 2.
fn waiting() -> SuzukiKasami {
    let mut out = Outbox::new();
    let mut waiting = SuzukiKasami::new(&Config::first(NODES).at(node(1)));
    waiting.request(&mut out).unwrap();
    waiting.receive(node(2), Request(2), &mut out).unwrap();
    waiting
}

#[track_caller]
fn refuses(state: &SuzukiKasami, from: NodeId, message: SuzukiKasamiMessage) {
    let mut after = state.clone();
    let mut out = Outbox::new();
    let refused = after.receive(from, message, &mut out);
    assert!(
        matches!(refused, Err(Violation::Unexpected { .. })),
        "{refused:?}"
    );
    assert_eq!(&after, state);
    assert!(out.is_empty());
}

#[test]
fn a_token_that_fits_is_taken() {
    let mut state = waiting();
    let mut out = Outbox::new();
    state
        .receive(node(0), token(&[7, 0, 1, 0], &[2, 3]), &mut out)
        .unwrap();
    assert_eq!(state.phase(), Phase::Inside);
    refuses(&state, node(0), token(&[7, 0, 1, 0], &[2, 3])); // a second token
}

#[test]
fn a_token_nobody_asked_for_is_refused() {
    let idle = SuzukiKasami::new(&Config::first(NODES).at(node(1)));
    refuses(&idle, node(0), token(&[0, 0, 0, 0], &[]));
}

#[test]
fn a_token_of_another_cluster_is_refused() {
    refuses(&waiting(), node(0), token(&[0, 0, 1], &[]));
    refuses(&waiting(), node(0), token(&[0, 0, 1, 0, 0], &[]));
    refuses(&waiting(), node(0), token(&[0, 0, 1, 0], &[4]));
}

#[test]
fn a_token_with_impossible_numbers_is_refused() {
    refuses(&waiting(), node(0), token(&[u64::MAX, 0, 1, 0], &[]));
    // This node's request is not the next, or was already satisfied.
    refuses(&waiting(), node(0), token(&[0, 1, 1, 0], &[]));
    // The first request of node 2 must be satisfied, since its second one was seen.
    refuses(&waiting(), node(0), token(&[0, 0, 0, 0], &[]));
}

#[test]
fn a_token_with_an_impossible_queue_is_refused() {
    refuses(&waiting(), node(0), token(&[0, 0, 1, 0], &[2, 3, 2]));
    refuses(&waiting(), node(0), token(&[0, 0, 1, 0], &[1])); // the receiver
    refuses(&waiting(), node(0), token(&[0, 0, 1, 0], &[0])); // the node that was just served
}

#[test]
fn at_the_token_a_request_beyond_the_next_is_refused() {
    let home = SuzukiKasami::new(&Config::first(NODES));
    refuses(&home, node(1), Request(2));
    refuses(&home, node(1), Request(0));
    refuses(&home, node(1), Request(u64::MAX));
}
