//! Every interleaving of small clusters, one module per algorithm.

mod carvalho_roucairol;
mod central;
mod chaudhuri_karaata;
mod costs;
mod counts;
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
mod worst;

use soloist_algorithms::{Algorithm, NodeId, Start};
use soloist_lab::search::{Bounds, Outcome, search};

/// Asserts that every state was visited and everything holds.
#[track_caller]
fn holds<A: Algorithm>(bounds: &Bounds<A::Shape>) {
    let outcome = search::<A>(bounds);
    assert!(matches!(outcome, Outcome::Holds { .. }), "{outcome:#?}");
}

/// Asserts that the search found a deadlock, and returns the trace.
#[track_caller]
fn deadlocks(outcome: Outcome) -> Vec<String> {
    match outcome {
        Outcome::Broken { fault, trace } if fault.is_deadlock() => trace,
        outcome => panic!("{outcome:#?}"),
    }
}

/// Asserts that everything holds with each node in turn inside at the start.
#[track_caller]
fn holds_from_any_start<A: Algorithm>(requests: &[u8]) {
    for node in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::inside(node),
            ..Bounds::of::<A>(requests)
        });
    }
}

/// Asserts that everything holds with each node in turn as home and no node inside at the start.
#[track_caller]
fn holds_wherever_home_is<A: Algorithm>(requests: &[u8]) {
    for home in NodeId::all(requests.len()) {
        holds::<A>(&Bounds {
            start: Start::idle(home),
            ..Bounds::of::<A>(requests)
        });
    }
}
