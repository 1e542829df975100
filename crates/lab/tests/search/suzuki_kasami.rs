use soloist_algorithms::suzuki_kasami::SuzukiKasami;

use crate::{bounds, holds, holds_from_any_start, holds_wherever_home_is};

#[test]
fn holds_in_any_order_with_two_requests_each() {
    holds::<SuzukiKasami>(&bounds::<SuzukiKasami>(&[2]));
    holds::<SuzukiKasami>(&bounds::<SuzukiKasami>(&[2, 2]));
    holds::<SuzukiKasami>(&bounds::<SuzukiKasami>(&[2, 2, 2]));
}

#[test]
fn holds_in_any_order_at_four_nodes() {
    holds::<SuzukiKasami>(&bounds::<SuzukiKasami>(&[1, 1, 1, 1]));
}

#[test]
fn holds_wherever_the_token_starts() {
    holds_wherever_home_is::<SuzukiKasami>(&[1, 2, 1]);
    holds_from_any_start::<SuzukiKasami>(&[1, 2, 1]);
}
