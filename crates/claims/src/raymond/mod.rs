//! Claims of Raymond 1989.

mod cost;
mod figures;
mod queue;
mod recovery;
mod rules;
mod variations;
mod waits;

pub(super) use cost::star_formula;
pub(super) use figures::distances_on_a_line;
use soloist_algorithms::Kind;

use super::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    [
        rules::claims(),
        cost::claims(),
        variations::claims(),
        waits::claims(),
        recovery::claims(),
        queue::claims(),
        figures::claims(),
        vec![claim(
            "§9",
            "a message needs only enough bits for its kind and its sender, whatever N is",
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
