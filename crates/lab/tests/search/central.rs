use soloist_algorithms::central::Central;

use crate::{bounds, holds, holds_from_any_start};

#[test]
fn holds_with_two_requests_each() {
    holds::<Central>(&bounds::<Central>(&[2, 2, 2]));
}

#[test]
fn holds_whoever_starts_inside() {
    holds_from_any_start::<Central>(&[1, 1, 1]);
}
