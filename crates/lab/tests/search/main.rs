//! Every interleaving of small clusters, one module an algorithm.

mod carvalho_roucairol;
mod central;
mod chaudhuri_karaata;
mod fair;
mod lamport;
mod le_lann;
mod lodha_kshemkalyani;
mod maekawa;
mod naimi_trehel;
mod neamatollahi;
mod neilsen_mizuno;
mod raymond;
mod raymond_recovery;
mod ricart_agrawala;
mod suzuki_kasami;
mod watched;

use std::sync::Arc;

use soloist_algorithms::{Algorithm, NodeId, Shape, Start, VariantSet};
use soloist_lab::check::{Bounds, Outcome, search};

/// The default shape, the token at node 0, no variant, the algorithm's own channels; node i may
/// ask `requests[i]` times.
fn bounds<A: Algorithm>(requests: &[u8]) -> Bounds<A::Shape> {
    Bounds {
        shape: Arc::new(A::Shape::default_for(requests.len())),
        start: Start::idle(NodeId::new(0)),
        variants: VariantSet::default(),
        channels: A::INFO.channels,
        requests: requests.to_vec(),
        states_max: 10_000_000,
    }
}

/// Every state is searched and all is well.
#[track_caller]
fn holds<A: Algorithm>(bounds: &Bounds<A::Shape>) {
    let outcome = search::<A>(bounds);
    assert!(matches!(outcome, Outcome::Holds { .. }), "{outcome:#?}");
}

/// Each node in turn starts inside.
#[track_caller]
fn holds_from_any_start<A: Algorithm>(requests: &[u8]) {
    for node in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::inside(node),
            ..bounds::<A>(requests)
        });
    }
}

/// Each node in turn is home, and nobody starts inside.
#[track_caller]
fn holds_wherever_home_is<A: Algorithm>(requests: &[u8]) {
    for home in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::idle(home),
            ..bounds::<A>(requests)
        });
    }
}
