use soloist_algorithms::VariantSet;
use soloist_algorithms::ricart_agrawala::{AS_PUBLISHED, RicartAgrawala};
use soloist_lab::search::{Bounds, Outcome, search};
use soloist_lab::world::Fault;

use crate::{holds, holds_from_any_start};

#[test]
fn holds_in_any_order_with_two_requests_each() {
    holds::<RicartAgrawala>(&Bounds::of::<RicartAgrawala>(&[2, 2, 2]));
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<RicartAgrawala>(&[1, 1, 1]);
}

/// Lodha and Kshemkalyani 2000, Fig. 1.
#[test]
fn as_published_lets_two_inside() {
    let outcome = search::<RicartAgrawala>(&Bounds {
        variants: VariantSet::default().with(AS_PUBLISHED),
        ..Bounds::of::<RicartAgrawala>(&[2, 2])
    });
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert!(matches!(fault, Fault::TwoInside { .. }), "{fault}");
}
