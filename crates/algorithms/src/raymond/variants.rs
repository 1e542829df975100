//! Variants of the rules.

use crate::{Variant, VariantSet};

/// A REQUEST that would immediately follow a PRIVILEGE travels with it (§6.1).
pub const PIGGYBACK: Variant = Variant::new(
    0,
    "piggyback",
    "a REQUEST that would follow a PRIVILEGE at once travels with it (§6.1)",
);

/// A node's own request goes to the head of its queue (§6.2).
pub const GREEDY: Variant = Variant::new(
    1,
    "greedy",
    "a node's own request goes to the head of its queue (§6.2): faster, less fair",
);

/// Nodes learn from INITIALIZE messages where the privilege is (§7).
pub const INITIALIZE: Variant = Variant::new(
    2,
    "initialize",
    "nodes learn from INITIALIZE messages where the privilege is (§7)",
);

/// Recovery for channels that do not preserve order: it ends when the caller calls
/// [`settled`](crate::Algorithm::settled).
pub const SECOND_WAIT: Variant = Variant::new(
    3,
    "second-wait",
    "recovery also waits for what was sent before the ADVISEs: no need of fifo",
)
.excluding(&["as-published"]);

/// Requests that a recovering node learns of twice stay in its queue twice (§8.6).
pub const DUPLICATES: Variant = Variant::new(
    4,
    "duplicates",
    "requests learned of twice in recovery stay queued twice (§8.6): may never rest",
)
.excluding(&["as-published"]);

/// The order of a rebuilt REQUEST_Q follows the counters of §8.4.
pub const COUNTERS: Variant = Variant::new(
    6,
    "counters",
    "ADVISE has the number of PRIVILEGEs received, by which a rebuilt queue is ordered (§8.4)",
);

/// Recovery as printed: (3) and (4) of §8.1, no second wait, and duplicates as they come (§8.6).
pub const AS_PUBLISHED: Variant = Variant::new(
    5,
    "as-published",
    "recovery as printed in §8.1 and §8.6: a recovered node may wait forever",
)
.excluding(&["second-wait", "duplicates"])
.faulty();

/// The three repairs of recovery, each alone.
pub const REPAIRS: [Variant; 3] = [
    Variant::repair(
        7,
        "repair-1",
        "with as-published: §8.3 for (3) and (4) of §8.1",
    ),
    Variant::repair(8, "repair-2", "with as-published: the second wait"),
    Variant::repair(
        9,
        "repair-3",
        "with as-published: a request learned of twice is queued once",
    ),
];

/// The rules of recovery that follow from the variants.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The conclusions of (3) and (4) in §8.1 are those in print, which are interchanged.
    pub(super) interchanged: bool,
    /// Recovery also waits for what was sent before the ADVISEs.
    pub(super) second_wait: bool,
    /// A request that is learned of twice is queued twice.
    pub(super) duplicates: bool,
}

impl Rules {
    pub(super) const fn of(variants: VariantSet) -> Self {
        let as_published = variants.has(AS_PUBLISHED);
        Rules {
            interchanged: as_published && !variants.has(REPAIRS[0]),
            second_wait: variants.has(SECOND_WAIT) || variants.has(REPAIRS[1]),
            duplicates: variants.has(DUPLICATES) || as_published && !variants.has(REPAIRS[2]),
        }
    }
}
