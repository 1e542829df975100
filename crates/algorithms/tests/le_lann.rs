//! The ring's shape, and messages that its nodes refuse.

use soloist_algorithms::le_lann::{LeLann, LeLannMessage, RESTING};
use soloist_algorithms::shape::Ring;
use soloist_algorithms::{
    Algorithm, Config, NodeId, Outbox, Shape, ShapeError, Start, VariantSet, Violation,
};

use LeLannMessage::{Request, RestingToken, Token};

#[test]
fn moving_right_visits_the_whole_ring() {
    for nodes in [1, 2, 3, 100] {
        let ring = Ring::default_for(nodes);
        let mut node = NodeId::new(0);
        for next in 1..nodes {
            node = ring.right(node);
            assert_eq!(node.index(), next);
        }
        assert_eq!(ring.right(node), NodeId::new(0));
    }
}

#[test]
fn a_ring_reads_its_own_form() {
    let ring = Ring::default_for(5);
    assert_eq!(Ring::parse(&ring.to_string(), 5), Ok(ring));
    assert_eq!(Ring::parse("ring", 0), Err(ShapeError::Nodes(0)));
    assert!(Ring::parse("rings", 5).is_err());
}

/// Node `me` of four, with the circulating or the resting token.
fn node(me: u32, start: Start, variants: VariantSet) -> LeLann {
    let first = Config::<Ring>::first(4);
    LeLann::new(&Config {
        start,
        variants,
        ..first.at(NodeId::new(me))
    })
}

/// Asserts that the message is refused and the state is unchanged.
#[track_caller]
fn refuses(node: &LeLann, from: u32, message: LeLannMessage) {
    let mut after = node.clone();
    let mut out = Outbox::new();
    let result = after.receive(NodeId::new(from), message, &mut out);
    assert!(result.is_err());
    assert_eq!(&after, node);
    assert!(out.is_empty());
}

#[test]
fn messages_that_no_correct_peer_sends_are_refused() {
    let home = Start::idle(NodeId::new(0));
    let restless = VariantSet::default();
    let resting = restless.with(RESTING);
    let again = RestingToken { again: true };

    let two = node(2, home, restless);
    for stranger in [0, 2, 3, 4, u32::MAX] {
        refuses(&two, stranger, Token);
    }
    refuses(&two, 1, Request);
    refuses(&two, 1, again);
    refuses(&node(2, home, resting), 1, Token);

    // Nothing is forwarded beyond the resting place.
    refuses(&node(1, home, resting), 0, Request);
    refuses(&node(1, home, resting), 0, again);

    // A second token.
    refuses(&node(0, home, resting), 3, again);
    let inside = Start::inside(NodeId::new(2));
    refuses(&node(2, inside, restless), 1, Token);
    refuses(&node(2, inside, resting), 1, again);
}

#[test]
fn asking_twice_and_leaving_from_outside_are_refused() {
    let mut two = node(2, Start::idle(NodeId::new(0)), VariantSet::default());
    let mut out = Outbox::new();
    let early = two.release(&mut out);
    assert!(matches!(early, Err(Violation::NotInside(_))));
    two.request(&mut out).unwrap();
    assert!(matches!(two.request(&mut out), Err(Violation::NotIdle(_))));
    assert!(out.is_empty());
}
