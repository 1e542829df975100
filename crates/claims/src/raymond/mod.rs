//! Claims of Raymond 1989.

mod cost;
mod figures;
mod recovery;
mod rules;
mod variations;

use soloist_algorithms::Kind;

use super::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    [
        rules::claims(),
        cost::claims(),
        variations::claims(),
        recovery::claims(),
        figures::claims(),
        vec![claim(
            "§9",
            "a message needs no more bits than tell its kind and its sender, whatever N is",
            rules::message_length,
        )],
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn claim(section: &'static str, claimed: &'static str, examine: fn() -> Finding) -> Claim {
    Claim {
        paper: Kind::Raymond,
        section,
        claimed,
        examine,
    }
}
