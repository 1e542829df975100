//! Variants of the rules.

use crate::Variant;

/// Steps (2), (3) and (4) as printed.
pub const AS_PUBLISHED: Variant = Variant::new(
    0,
    "as-published",
    "steps (2) to (4) as printed: deadlock, and two nodes inside",
)
.faulty();

/// Repair R1 alone.
pub const REPAIR_1: Variant = Variant::repair(
    1,
    "repair-1",
    "with as-published: a request displaced from the first place is sent FAILED",
);

/// Repair R2 alone.
pub const REPAIR_2: Variant = Variant::repair(
    2,
    "repair-2",
    "with as-published: an INQUIRE is answered only while the LOCKED that it asks about is held",
);

/// Step (4) in its other reading. With repair R2 both readings do the same, because the first
/// waiting request precedes the relinquished one.
pub const PUT_BACK_FIRST: Variant = Variant::repair(
    3,
    "put-back-first",
    "with as-published: step (4) puts the relinquished request into the queue before it takes the next one out",
);

/// The other reading of "it has received a FAILED message" in step (3): a LOCKED from the same
/// member takes the FAILED back. Then a node that gave a member back, and got it again, counts on
/// all its members although the next FAILED is not sent: a deadlock, also with both repairs.
pub const FAILED_BY_MEMBER: Variant = Variant::new(
    4,
    "failed-by-member",
    "a LOCKED takes back the FAILED of the same member: deadlock",
)
.faulty();
