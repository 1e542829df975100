//! Variants of the rules.

use crate::Variant;

/// Fig. 2 as printed.
pub const AS_PUBLISHED: Variant = Variant::new(
    0,
    "as-published",
    "Fig. 2 as printed: a node may wait forever",
)
.excluding(&["resting"])
.faulty();

/// Repair of lines 28, 11 and 50 alone.
pub const REPAIR_1: Variant = Variant::repair(
    2,
    "repair-1",
    "with as-published: a round is √N + 1 steps long, in lines 28, 11 and 50",
);

/// Repair of line 10 alone.
pub const REPAIR_2: Variant = Variant::repair(
    3,
    "repair-2",
    "with as-published: a Request that arrives inside is handled after line 10",
);

/// The token rests while no node wants it.
pub const RESTING: Variant = Variant::new(
    1,
    "resting",
    "the token rests at home while no node requests it; an idle cluster sends nothing",
)
.excluding(&["as-published"]);
