use std::sync::Arc;

use soloist_algorithms::maekawa::{AS_PUBLISHED, Maekawa};
use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{Channels, NodeId, Shape, Start, VariantSet};
use soloist_lab::search::{Bounds, Limits, Outcome, search};
use soloist_lab::world::Fault;

use crate::{deadlocks, holds, holds_from_any_start};

fn of_form(form: &str, requests: &[u8]) -> Bounds<Quorums> {
    Bounds {
        shape: Arc::new(Quorums::parse(form, requests.len()).unwrap()),
        ..Bounds::of::<Maekawa>(requests)
    }
}

fn in_any_order(bounds: Bounds<Quorums>) -> Bounds<Quorums> {
    Bounds {
        limits: Limits::new(Channels::Any),
        ..bounds
    }
}

fn as_published(bounds: Bounds<Quorums>) -> Bounds<Quorums> {
    Bounds {
        variants: VariantSet::default().with(AS_PUBLISHED),
        ..bounds
    }
}

/// All ways to let `count` of `nodes` request once.
fn choices(nodes: usize, count: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..1_u32 << nodes)
        .filter(move |chosen| chosen.count_ones() == count)
        .map(move |chosen| (0..nodes).map(|node| (chosen >> node & 1) as u8).collect())
}

#[test]
fn holds_alone_and_for_two() {
    holds::<Maekawa>(&Bounds::of::<Maekawa>(&[3]));
    holds::<Maekawa>(&Bounds::of::<Maekawa>(&[3, 3]));
    holds::<Maekawa>(&in_any_order(Bounds::of::<Maekawa>(&[3, 3])));
}

/// Three nodes, the quorum of each being itself and one other, as in Fig. 1a.
#[test]
fn holds_on_the_triangle_with_two_requests_each() {
    holds::<Maekawa>(&Bounds::of::<Maekawa>(&[2, 2, 2]));
}

/// Node 0 has all nodes in its quorum; the others have node 0.
#[test]
fn holds_on_a_ragged_grid_with_two_requests_each() {
    holds::<Maekawa>(&of_form("grid", &[2, 2, 2]));
}

#[test]
fn holds_on_a_grid() {
    holds::<Maekawa>(&of_form("grid", &[1, 1, 1, 1]));
}

#[test]
fn holds_on_folded_planes() {
    holds::<Maekawa>(&Bounds::of::<Maekawa>(&[1, 1, 1, 1]));
    for nodes in [5, 6] {
        for requests in choices(nodes, 3) {
            holds::<Maekawa>(&Bounds::of::<Maekawa>(&requests));
        }
    }
}

/// The projective plane of order 2, as in Fig. 1b.
#[test]
fn holds_on_the_fano_plane_whichever_three_ask() {
    for requests in choices(7, 3) {
        holds::<Maekawa>(&Bounds::of::<Maekawa>(&requests));
    }
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<Maekawa>(&[1]);
    holds_from_any_start::<Maekawa>(&[1, 1]);
    holds_from_any_start::<Maekawa>(&[1, 1, 1]);
    for inside in NodeId::all(4) {
        holds::<Maekawa>(&Bounds {
            start: Start::inside(inside),
            ..of_form("grid", &[1, 0, 1, 1])
        });
    }
}

/// The numbers on the messages make FIFO channels unnecessary.
#[test]
fn holds_in_any_order() {
    holds::<Maekawa>(&in_any_order(of_form("grid", &[1, 1, 2])));
    holds::<Maekawa>(&in_any_order(of_form("grid", &[0, 1, 1, 1])));
    holds::<Maekawa>(&in_any_order(Bounds::of::<Maekawa>(&[1, 1, 2])));
}

/// What R1 repairs: at node 3, the request of node 1 displaces that of node 2 from the first place.
/// Node 2 is not told and blocks node 1 at node 0 forever.
#[test]
fn as_published_deadlocks() {
    let outcome = search::<Maekawa>(&as_published(of_form("grid", &[0, 1, 1, 1])));
    deadlocks(outcome);
}

/// What R2 repairs: node 0's INQUIRE crosses node 2's RELEASE and is answered during node 2's next
/// request.
#[test]
fn as_published_lets_two_inside() {
    let outcome = search::<Maekawa>(&as_published(of_form("grid", &[0, 1, 2])));
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert!(matches!(fault, Fault::TwoInside { .. }), "{fault}");
}
