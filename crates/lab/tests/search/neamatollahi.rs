use std::sync::Arc;

use soloist_algorithms::neamatollahi::{AS_PUBLISHED, Neamatollahi, RESTING};
use soloist_algorithms::shape::Torus;
use soloist_algorithms::{Channels, NodeId, Shape, Start, Variant, VariantSet};
use soloist_lab::search::{Bounds, ENDLESS, Limits, Outcome, search};

use crate::holds;

/// On a torus of this form, with or without a variant.
fn on(form: &str, variant: Option<Variant>, requests: &[u8]) -> Bounds<Torus> {
    Bounds {
        shape: Arc::new(Torus::parse(form, requests.len()).unwrap()),
        variants: variant.map_or(VariantSet::default(), |v| VariantSet::default().with(v)),
        ..Bounds::of::<Neamatollahi>(requests)
    }
}

#[test]
fn holds_in_any_order_repaired_and_resting() {
    for variant in [None, Some(RESTING)] {
        holds::<Neamatollahi>(&on("1x1", variant, &[3]));
        holds::<Neamatollahi>(&on("1x2", variant, &[2, 2]));
        holds::<Neamatollahi>(&on("2x1", variant, &[2, 2]));
        holds::<Neamatollahi>(&on("1x3", variant, &[2, 2, 2]));
        holds::<Neamatollahi>(&on("3x1", variant, &[2, 2, 2]));
        holds::<Neamatollahi>(&on("2x2", variant, &[2, 2, 2]));
        holds::<Neamatollahi>(&on("2x2", variant, &[1, 1, 1, 1]));
        holds::<Neamatollahi>(&on("2x3", variant, &[1, 1, 1, 0, 1]));
        holds::<Neamatollahi>(&on("3x3", variant, &[0, 0, 0, 1, 1, 1, 0, 0, 0]));
    }
}

#[test]
fn holds_for_every_node_inside_and_every_place_of_the_token() {
    for variant in [None, Some(RESTING)] {
        for (form, requests) in [
            ("1x2", &[2, 2][..]),
            ("2x2", &[1, 1, 1][..]),
            ("2x2", &[1, 1, 1, 1]),
        ] {
            for node in NodeId::all(requests.len()) {
                for start in [Start::idle(node), Start::inside(node)] {
                    holds::<Neamatollahi>(&Bounds {
                        start,
                        ..on(form, variant, requests)
                    });
                }
            }
        }
    }
}

/// Fig. 2 as printed: the token moves on forever and never reaches a waiting node.
#[test]
fn as_published_leaves_a_node_waiting_for_ever() {
    for requests in [&[1, 1, 0, 1], &[1, 1, 1, 1]] {
        let outcome = search::<Neamatollahi>(&on("2x2", Some(AS_PUBLISHED), requests));
        assert!(matches!(outcome, Outcome::Starved { .. }), "{outcome:#?}");
    }
}

/// Unlimited requests at all nodes, over FIFO channels. Without FIFO, messages could accumulate
/// without bound.
fn endless(form: &str, nodes: usize, variant: Option<Variant>) -> Bounds<Torus> {
    Bounds {
        limits: Limits {
            states_max: 1_000_000,
            ..Limits::new(Channels::Fifo)
        },
        ..on(form, variant, &vec![ENDLESS; nodes])
    }
}

#[test]
fn nobody_starves_repaired_or_resting() {
    for variant in [None, Some(RESTING)] {
        for (form, nodes) in [
            ("1x1", 1),
            ("1x2", 2),
            ("2x1", 2),
            ("1x3", 3),
            ("2x2", 3),
            ("2x2", 4),
        ] {
            let outcome = search::<Neamatollahi>(&endless(form, nodes, variant));
            assert!(
                matches!(outcome, Outcome::Holds { cut: 0, .. }),
                "{outcome:#?}"
            );
        }
    }
}

/// The waiting node is one of a pair: see `as_published_leaves_a_node_waiting_for_ever`.
#[test]
fn as_published_starves_a_node_in_all_fairness() {
    let outcome = search::<Neamatollahi>(&endless("2x2", 4, Some(AS_PUBLISHED)));
    assert!(matches!(outcome, Outcome::Starved { .. }), "{outcome:#?}");
}
