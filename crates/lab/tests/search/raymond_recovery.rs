//! Raymond 1989, §8, in every interleaving: when a node crashes is one more free choice. The node
//! loses its state, not its messages, and restarts when all messages that it had sent have arrived.
//! Besides mutual exclusion and a single token, every request is eventually served, and messages
//! stop eventually.

use std::sync::Arc;

use soloist_algorithms::raymond::*;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Channels, NodeId, Shape, Start, VariantSet};
use soloist_lab::search::{Bounds, Crashes, ENDLESS, Limits, Outcome, search};
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

/// These nodes of a tree crash again and again, over FIFO channels, and nodes request as often as
/// given.
fn crashing_endlessly(
    (form, requests): (&str, &[u8]),
    crashing: &[u32],
    variants: &[soloist_algorithms::Variant],
) -> Bounds<Tree> {
    let none = VariantSet::default();
    Bounds {
        shape: Arc::new(Tree::parse(form, requests.len()).unwrap()),
        variants: variants
            .iter()
            .fold(none, |set, variant| set.with(*variant)),
        limits: Limits {
            crashes: Crashes {
                most: ENDLESS,
                nodes: Some(crashing.iter().fold(0, |set, node| set | 1 << node)),
                ..Crashes::default()
            },
            states_max: 1_000_000,
            ..Limits::new(Channels::Fifo)
        },
        ..Bounds::of::<Raymond>(requests)
    }
}

/// A line around node 1.
const LINE: (&str, &[u8]) = ("line", &[ENDLESS; 3]);

/// A star around node 0, which does not request.
const STAR: (&str, &[u8]) = ("star:3", &[0, ENDLESS, ENDLESS, ENDLESS]);

#[track_caller]
fn starves(bounds: &Bounds<Tree>) {
    let outcome = search::<Raymond>(bounds);
    let Outcome::Starved { cycle, .. } = &outcome else {
        panic!("{outcome:#?}");
    };
    assert!(cycle.iter().any(|step| step.starts_with("crash")));
}

/// §8.4: "it is possible that a neighboring node Y could be starved by the loss of order". So with
/// the rotation that replaces the counters by default.
#[test]
fn rotation_does_not_prevent_starvation() {
    starves(&crashing_endlessly(LINE, &[1], &[]));
}

/// §8.4: "it will prevent starvation".
#[test]
fn counters_prevent_starvation() {
    holds::<Raymond>(&crashing_endlessly(LINE, &[1], &[COUNTERS]));
    holds::<Raymond>(&crashing_endlessly(LINE, &[1], &[COUNTERS, PIGGYBACK]));
    let mut star = crashing_endlessly(STAR, &[0], &[COUNTERS]);
    star.limits.crashes.gap_max = 1;
    holds::<Raymond>(&star);
    // Without a limit of crashes, and with one.
    let mut few = crashing_endlessly(("line", &[1; 3]), &[0, 1, 2], &[COUNTERS]);
    few.limits.crashes.most = 2;
    holds::<Raymond>(&few);
}

/// The outcome does not depend on where gaps between counters are cut off.
#[test]
fn wider_gaps_between_counters_change_nothing() {
    let bounds = |gap_max| {
        let mut bounds = crashing_endlessly(LINE, &[1], &[COUNTERS]);
        bounds.limits.crashes.gap_max = gap_max;
        bounds
    };
    for gap_max in [1, 3, 5] {
        holds::<Raymond>(&bounds(gap_max));
    }
    // Without gaps there is no order.
    starves(&bounds(0));
}

/// The paper does not say where the node itself goes in a rebuilt queue. Before its neighbours, as
/// with `greedy`, it enters again and again.
#[test]
fn a_node_first_in_its_rebuilt_queue_starves_its_neighbours() {
    starves(&crashing_endlessly(LINE, &[1], &[COUNTERS, GREEDY]));
}

/// A crash of a neighbour that counts resets its counters, so that it goes first again.
#[test]
fn crashes_of_a_counting_neighbour_starve_the_others() {
    starves(&crashing_endlessly(LINE, &[0, 1], &[COUNTERS]));
}
