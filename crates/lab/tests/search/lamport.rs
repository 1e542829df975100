use soloist_algorithms::lamport::{Lamport, LamportMessage, SPARE_ACKS};
use soloist_algorithms::{Channels, NodeId, RequestId, VariantSet};
use soloist_lab::search::{Bounds, Limits, Outcome, search};
use soloist_lab::world::Fault;

use crate::watched::{Ordered, watch_all, watch_random};
use crate::{holds, holds_from_any_start};

impl Ordered for Lamport {
    fn own(&self) -> RequestId {
        self.my_request()
    }

    fn made_by(from: NodeId, message: &LamportMessage) -> Option<RequestId> {
        match *message {
            LamportMessage::Request { time } => Some(RequestId::new(time, from)),
            _ => None,
        }
    }
}

#[test]
fn holds_alone_in_pairs_and_among_three() {
    holds::<Lamport>(&Bounds::of::<Lamport>(&[3]));
    holds::<Lamport>(&Bounds::of::<Lamport>(&[3, 3]));
    holds::<Lamport>(&Bounds::of::<Lamport>(&[2, 1, 1]));
}

#[test]
fn holds_with_two_idle_nodes() {
    holds::<Lamport>(&Bounds::of::<Lamport>(&[1, 1, 0, 0]));
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<Lamport>(&[2]);
    holds_from_any_start::<Lamport>(&[2, 2]);
    holds_from_any_start::<Lamport>(&[1, 1, 1]);
}

/// The remark in rule 2.
#[test]
fn holds_with_fewer_acks() {
    holds::<Lamport>(&Bounds {
        variants: VariantSet::default().with(SPARE_ACKS),
        ..Bounds::of::<Lamport>(&[2, 1, 1])
    });
}

/// Without FIFO channels an ACK overtakes the REQUEST that was sent before it.
#[test]
fn fifo_is_necessary() {
    let outcome = search::<Lamport>(&Bounds {
        limits: Limits::new(Channels::Any),
        ..Bounds::of::<Lamport>(&[1, 1])
    });
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert!(matches!(fault, Fault::TwoInside { .. }), "{fault}");
}

/// Condition II: "different requests for the resource must be granted in the order in which they
/// are made". (The observer rejects any other.)
#[test]
fn entries_are_in_order() {
    watch_all::<Lamport>(&Bounds::of::<Lamport>(&[2, 2]), |_| {});
    watch_all::<Lamport>(&Bounds::of::<Lamport>(&[1, 1, 1]), |_| {});
}

#[test]
fn a_request_costs_three_messages_a_peer() {
    for seed in 0..100 {
        let nodes = 2 + seed as usize % 6;
        let seen = watch_random::<Lamport>(&Bounds::of::<Lamport>(&vec![3; nodes]), seed);
        let all: Vec<u32> = (0..3)
            .map(|kind| seen.costs.values().map(|c| c[kind]).sum())
            .collect();
        assert_eq!(all, [3 * nodes as u32 * (nodes as u32 - 1); 3]);
    }
}
