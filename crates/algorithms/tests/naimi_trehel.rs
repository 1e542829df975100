//! Requests that travel in a cycle and unexpected tokens are refused.

use soloist_algorithms::naimi_trehel::{NaimiTrehel, NaimiTrehelMessage};
use soloist_algorithms::{Algorithm, Config, NodeId, Outbox, Violation};

use NaimiTrehelMessage::{Request, Token};

const HOME: NodeId = NodeId::new(0);
const ME: NodeId = NodeId::new(1);
const OTHER: NodeId = NodeId::new(2);

/// Node 1 of three, with the token at node 0.
fn idle() -> NaimiTrehel {
    NaimiTrehel::new(&Config::first(3).at(ME))
}

#[track_caller]
fn refusal(state: &NaimiTrehel, from: NodeId, message: NaimiTrehelMessage) -> Violation {
    let mut after = state.clone();
    let mut out = Outbox::new();
    let refused = after.receive(from, message, &mut out);
    assert_eq!(&after, state);
    assert!(out.is_empty());
    refused.unwrap_err()
}

#[track_caller]
fn is_unexpected(violation: Violation) {
    assert!(
        matches!(violation, Violation::Unexpected { .. }),
        "{violation}"
    );
}

/// This node's requests go to home, so no request can come from home or originate there.
#[test]
fn a_request_of_or_from_the_father_is_refused() {
    is_unexpected(refusal(&idle(), HOME, Request(HOME)));
    is_unexpected(refusal(&idle(), HOME, Request(OTHER)));
    is_unexpected(refusal(&idle(), OTHER, Request(HOME)));
}

#[test]
fn a_request_of_this_node_or_of_none_is_refused() {
    assert_eq!(
        refusal(&idle(), OTHER, Request(ME)),
        Violation::FromSelf(ME)
    );
    let (node, nodes) = (NodeId::new(3), 3);
    assert_eq!(
        refusal(&idle(), OTHER, Request(node)),
        Violation::NoSuchNode { node, nodes }
    );
}

#[test]
fn a_token_that_was_not_asked_for_is_refused() {
    is_unexpected(refusal(&idle(), HOME, Token));
    let mut inside = idle();
    let mut out = Outbox::new();
    inside.request(&mut out).unwrap();
    inside.receive(HOME, Token, &mut out).unwrap();
    is_unexpected(refusal(&inside, HOME, Token));
}
