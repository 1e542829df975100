use soloist_algorithms::naimi_trehel::NaimiTrehel;

use crate::{holds, holds_from_any_start, holds_wherever_home_is};
use soloist_lab::search::Bounds;

#[test]
fn holds_in_any_order_with_two_requests_each() {
    holds::<NaimiTrehel>(&Bounds::of::<NaimiTrehel>(&[2]));
    holds::<NaimiTrehel>(&Bounds::of::<NaimiTrehel>(&[2, 2]));
    holds::<NaimiTrehel>(&Bounds::of::<NaimiTrehel>(&[3, 3, 3]));
}

#[test]
fn holds_in_any_order_at_four_nodes() {
    holds::<NaimiTrehel>(&Bounds::of::<NaimiTrehel>(&[2, 2, 2, 2]));
}

#[test]
fn holds_wherever_the_token_starts() {
    holds_wherever_home_is::<NaimiTrehel>(&[1, 1, 1, 1]);
    holds_from_any_start::<NaimiTrehel>(&[2, 2, 2]);
}
