use soloist_algorithms::central::Central;

use crate::{holds, holds_from_any_start};
use soloist_lab::search::Bounds;

#[test]
fn holds_with_two_requests_each() {
    holds::<Central>(&Bounds::of::<Central>(&[2, 2, 2]));
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<Central>(&[1, 1, 1]);
}
