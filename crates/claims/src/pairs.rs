//! Comparisons of two algorithms under the same load and seeds, which see the same demand.

use soloist_lab::replicate::{Estimate, Replicated};

/// Returns whether an entry costs fewer messages than with the other one: the whole interval of the
/// paired differences is on one side of 0.
pub(crate) fn is_cheaper(own: &Replicated, other: &Replicated) -> bool {
    more_messages(other, own).low() > 0.0
}

/// How many more messages an entry costs than with the other one.
pub(crate) fn more_messages(own: &Replicated, other: &Replicated) -> Estimate {
    own.difference(other, |measures| measures.messages_per_entry)
}
