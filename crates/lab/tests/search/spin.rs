//! The numbers of states that SPIN counts for the models in `contrib/spin`. Those are written
//! independently for another checker, so a state or a step missed here would show.

use std::sync::Arc;

use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Algorithm, Channels, Shape};
use soloist_lab::search::{Bounds, Limits, Outcome, search};

#[track_caller]
fn has_states<A: Algorithm>(bounds: &Bounds<A::Shape>, expected: usize) {
    // The models have no history.
    let mut bounds = bounds.clone();
    bounds.limits.keep_history = false;
    let outcome = search::<A>(&bounds);
    let Outcome::Holds { states, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert_eq!(states, expected);
}

#[test]
fn ricart_agrawala_has_as_many_states_as_the_model() {
    for (requests, channels, expected) in [
        (&[1, 1, 1], Channels::Any, 2_879),
        (&[2, 2, 2], Channels::Any, 45_401),
        (&[2, 2, 2], Channels::Fifo, 31_888),
    ] {
        let bounds = Bounds {
            limits: Limits::new(channels),
            ..Bounds::of::<RicartAgrawala>(requests)
        };
        has_states::<RicartAgrawala>(&bounds, expected);
    }
}

#[test]
fn raymond_has_as_many_states_as_the_model() {
    for (form, requests, expected) in [
        ("line", &[2, 2, 2][..], 1_012),
        ("kary:2", &[2, 2, 2], 1_004),
        ("kary:2", &[2, 2, 2, 2], 13_954),
        ("kary:2", &[1, 1, 1, 1, 1], 7_597),
    ] {
        let bounds = Bounds {
            shape: Arc::new(Tree::parse(form, requests.len()).unwrap()),
            ..Bounds::of::<Raymond>(requests)
        };
        has_states::<Raymond>(&bounds, expected);
    }
}
