use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::shape::Complete;
use soloist_algorithms::{NodeId, Start, VariantSet};
use soloist_lab::search::Bounds;

use crate::{holds, holds_from_any_start};

fn staircase(requests: &[u8]) -> Bounds<Complete> {
    Bounds {
        variants: VariantSet::default().with(STAIRCASE),
        ..Bounds::of::<CarvalhoRoucairol>(requests)
    }
}

#[test]
fn holds_in_any_order_with_two_requests_each() {
    holds::<CarvalhoRoucairol>(&Bounds::of::<CarvalhoRoucairol>(&[2]));
    holds::<CarvalhoRoucairol>(&Bounds::of::<CarvalhoRoucairol>(&[3, 3]));
    holds::<CarvalhoRoucairol>(&Bounds::of::<CarvalhoRoucairol>(&[2, 2, 2]));
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<CarvalhoRoucairol>(&[2, 2, 2]);
}

/// The staircase is the initial state in Singhal 1992.
#[test]
fn staircase_holds_in_any_order_with_two_requests_each() {
    holds::<CarvalhoRoucairol>(&staircase(&[2]));
    holds::<CarvalhoRoucairol>(&staircase(&[3, 3]));
    holds::<CarvalhoRoucairol>(&staircase(&[2, 2, 2]));
}

#[test]
fn staircase_holds_in_any_order_at_four_nodes() {
    holds::<CarvalhoRoucairol>(&staircase(&[1, 1, 1, 1]));
}

/// The staircase starts at home; a node that starts inside is above it.
#[test]
fn staircase_holds_for_every_home_and_every_node_inside() {
    for home in NodeId::all(3) {
        for inside in std::iter::once(None).chain(NodeId::all(3).map(Some)) {
            holds::<CarvalhoRoucairol>(&Bounds {
                start: Start { home, inside },
                ..staircase(&[2, 1, 2])
            });
        }
    }
}
