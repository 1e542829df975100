//! Every interleaving of small clusters, one module an algorithm.

mod carvalho_roucairol;
mod central;
mod chaudhuri_karaata;
mod fair;
mod forgetting;
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
mod spin;
mod suzuki_kasami;
mod watched;

use soloist_algorithms::{Algorithm, NodeId, Start};
use soloist_lab::check::{Bounds, Outcome, search};

/// Every state is searched and all is well.
#[track_caller]
fn holds<A: Algorithm>(bounds: &Bounds<A::Shape>) {
    let outcome = search::<A>(bounds);
    assert!(matches!(outcome, Outcome::Holds { .. }), "{outcome:#?}");
}

/// The search found that somebody waits and nothing more can happen; says how.
#[track_caller]
fn deadlocks(outcome: Outcome) -> Vec<String> {
    match outcome {
        Outcome::Broken { fault, trace } if fault.is_deadlock() => trace,
        outcome => panic!("{outcome:#?}"),
    }
}

/// Each node in turn starts inside.
#[track_caller]
fn holds_from_any_start<A: Algorithm>(requests: &[u8]) {
    for node in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::inside(node),
            ..Bounds::of::<A>(requests)
        });
    }
}

/// Each node in turn is home, and nobody starts inside.
#[track_caller]
fn holds_wherever_home_is<A: Algorithm>(requests: &[u8]) {
    for home in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::idle(home),
            ..Bounds::of::<A>(requests)
        });
    }
}
