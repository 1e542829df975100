//! Raymond 1989, §8, in every interleaving: when a node crashes is one more free choice. The node
//! loses its state, not its messages, and restarts when all messages that it had sent have arrived.
//! Besides mutual exclusion and a single token, every request is eventually served, and messages
//! stop eventually.

use std::sync::Arc;

use soloist_algorithms::raymond::*;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Channels, NodeId, Shape, Start, VariantSet};
use soloist_lab::search::{Bounds, Crashes, Limits, Outcome, search};
use soloist_lab::world::Fault;

use crate::holds;
use crate::raymond::all_variants;

/// On a line, one request per node, with at most this many crashes, never of neighbours at the same
/// time. The number of states is limited, because a fault may let queues or messages grow without
/// bound.
fn crashing(
    nodes: usize,
    home: u32,
    crashes: u8,
    variants: VariantSet,
    channels: Channels,
) -> Bounds<Tree> {
    Bounds {
        shape: Arc::new(Tree::parse("line", nodes).unwrap()),
        start: Start::idle(NodeId::new(home)),
        variants,
        limits: Limits {
            crashes: Crashes {
                most: crashes,
                neighbours_too: false,
                ..Crashes::default()
            },
            states_max: 300_000,
            ..Limits::new(channels)
        },
        ..Bounds::of::<Raymond>(&vec![1; nodes])
    }
}

/// Every tree of up to three nodes (all are lines), with its nodes up to symmetry as home.
const LINES: [(usize, u32); 4] = [(1, 0), (2, 0), (3, 0), (3, 1)];

#[test]
fn recovers_over_fifo_with_every_variant() {
    for (nodes, home) in LINES {
        for variants in all_variants() {
            holds::<Raymond>(&crashing(nodes, home, 1, variants, Channels::Fifo));
        }
    }
}

#[test]
fn recovers_in_any_order_after_a_second_wait_with_every_variant() {
    for (nodes, home) in LINES {
        for variants in all_variants() {
            let variants = variants.with(SECOND_WAIT);
            holds::<Raymond>(&crashing(nodes, home, 1, variants, Channels::Any));
        }
    }
}

/// §8.7: also a crash during recovery, and crashes of one node after another.
#[test]
fn recovers_from_two_crashes() {
    for (nodes, home) in LINES {
        for (variants, channels) in [
            (VariantSet::default(), Channels::Fifo),
            (VariantSet::default().with(SECOND_WAIT), Channels::Any),
        ] {
            holds::<Raymond>(&crashing(nodes, home, 2, variants, channels));
        }
    }
}

#[test]
fn recovers_and_requests_again() {
    let once = crashing(3, 1, 1, VariantSet::default(), Channels::Fifo);
    holds::<Raymond>(&Bounds {
        requests: vec![2; 3],
        ..once
    });
}

/// §8.1 (3) and (4) as printed: the recovered node believes that it has asked.
#[test]
fn as_published_waits_for_ever() {
    let variants = VariantSet::default().with(AS_PUBLISHED);
    let outcome = search::<Raymond>(&crashing(2, 0, 1, variants, Channels::Fifo));
    crate::deadlocks(outcome);
}

/// §8.2 to §8.6 if an ADVISE may overtake a PRIVILEGE, without a second wait.
#[test]
fn a_privilege_that_is_overtaken_makes_two() {
    let variants = VariantSet::default();
    let outcome = search::<Raymond>(&crashing(2, 1, 1, variants, Channels::Any));
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert_eq!(fault, Fault::Tokens(2));
}

/// §8.6 claims that duplicated requests correct themselves. After one recovery over FIFO channels
/// they do. After two, or if messages may overtake each other, the privilege can move back and
/// forth forever.
#[test]
fn duplicates_can_chase_each_other_forever() {
    let variants = VariantSet::default().with(DUPLICATES);
    for (nodes, home) in LINES {
        holds::<Raymond>(&crashing(nodes, home, 1, variants, Channels::Fifo));
    }
    for bounds in [
        crashing(2, 0, 2, variants, Channels::Fifo),
        crashing(3, 0, 1, variants.with(SECOND_WAIT), Channels::Any),
    ] {
        let outcome = search::<Raymond>(&bounds);
        assert!(matches!(outcome, Outcome::Restless { .. }), "{outcome:#?}");
    }
}

/// §8.8 promises nothing if neighbours are down at the same time. Nodes may wait forever, but
/// nothing panics, and there are never two tokens.
#[test]
fn neighbours_down_together_make_no_second_token() {
    for (nodes, home) in LINES {
        for (variants, channels) in [
            (VariantSet::default(), Channels::Fifo),
            (VariantSet::default().with(INITIALIZE), Channels::Fifo),
        ] {
            let mut bounds = crashing(nodes, home, 2, variants, channels);
            bounds.limits.crashes.neighbours_too = true;
            let outcome = search::<Raymond>(&bounds);
            match outcome {
                Outcome::Holds { .. } => assert_eq!(nodes, 1),
                Outcome::Starved { .. } => {}
                Outcome::Broken { fault, .. } if fault.is_deadlock() => {}
                outcome => panic!("{outcome:#?}"),
            }
        }
    }
}
