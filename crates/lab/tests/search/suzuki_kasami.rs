use soloist_algorithms::suzuki_kasami::SuzukiKasami;

use crate::{holds, holds_from_any_start, holds_wherever_home_is};
use soloist_lab::search::Bounds;

#[test]
fn holds_in_any_order_with_two_requests_each() {
    holds::<SuzukiKasami>(&Bounds::of::<SuzukiKasami>(&[2]));
    holds::<SuzukiKasami>(&Bounds::of::<SuzukiKasami>(&[2, 2]));
    holds::<SuzukiKasami>(&Bounds::of::<SuzukiKasami>(&[2, 2, 2]));
}

#[test]
fn holds_in_any_order_at_four_nodes() {
    holds::<SuzukiKasami>(&Bounds::of::<SuzukiKasami>(&[1, 1, 1, 1]));
}

#[test]
fn holds_wherever_the_token_starts() {
    holds_wherever_home_is::<SuzukiKasami>(&[1, 2, 1]);
    holds_from_any_start::<SuzukiKasami>(&[1, 2, 1]);
}
