//! Variants of the rules.

use crate::Variant;

/// Fig. 2 as printed.
pub const AS_PUBLISHED: Variant = Variant::new(
    0,
    "as-published",
    "Fig. 2 as printed: a deadlock, and two nodes inside, at N = 3",
)
.excluding(&["clock-everywhere", "one-reply", "late-reply"])
.faulty();

/// The four repairs, each alone.
pub const REPAIRS: [Variant; 4] = [
    Variant::repair(3, "repair-1", "with as-published: a FLUSH does not set RV"),
    Variant::repair(
        4,
        "repair-2",
        "with as-published: a REQUEST at or before one that is known to be satisfied is not queued",
    ),
    Variant::repair(
        5,
        "repair-3",
        "with as-published: REQUEST names the sender's last satisfied request",
    ),
    Variant::repair(
        6,
        "repair-4",
        "with as-published: own numbers count as seen",
    ),
];

/// Every message carries the highest sequence number seen (§5, third improvement), so that numbers
/// follow the causality of all messages.
pub const CLOCK_EVERYWHERE: Variant = Variant::new(
    1,
    "clock-everywhere",
    "all messages carry the highest sequence number seen (§5)",
)
.excluding(&["as-published"]);

/// The next REQUEST of a node that leaves answers the deferred requests (§5, second improvement).
///
/// Such a node keeps the deferred requests, and its next request treats them as concurrent: it
/// counts them as answers, and queues them before its own. The node must know that it will request
/// again ([`expect_request`](crate::Algorithm::expect_request)), and it assumes so unless told
/// otherwise. If it never does, the nodes whose requests it keeps wait forever.
pub const LATE_REPLY: Variant = Variant::new(
    7,
    "late-reply",
    "deferred requests are answered by the next REQUEST (§5), which has to come",
)
.excluding(&["as-published", "one-reply"])
.faulty();

/// A node that leaves answers only the first of the deferred requests (§5, first improvement).
///
/// The node of that request gets the other answers as [`Errand`](super::Errand)s. When it leaves,
/// it sends these and the answers that it owes itself, all in one message, to the first request
/// among them: with its REPLY or FLUSH to that node if there is one, and otherwise with an extra
/// FLUSH. No node can enter before its own answers have arrived, so errands always arrive at a
/// waiting node, and they travel from earlier requests to later ones.
///
/// A node that makes its next request while its answer to a peer's request is still being carried
/// says so in its REQUEST to that peer. Otherwise the peer would take the two requests for
/// concurrent, and this node would wait for the peer's REPLY forever.
pub const ONE_REPLY: Variant = Variant::new(
    2,
    "one-reply",
    "one REPLY at an exit, whose receiver carries the others on (§5): fewer, longer messages",
)
.excluding(&["as-published", "late-reply"]);
