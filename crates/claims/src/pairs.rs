//! Comparisons of two algorithms under the same load and seeds, which see the same demand.

use soloist_lab::replicate::Replicated;
use soloist_lab::simulate::Measures;

/// Returns whether the measure is smaller than the other one: the whole interval of the paired
/// differences is below 0.
pub(crate) fn is_smaller(
    own: &Replicated,
    other: &Replicated,
    measure: impl Fn(&Measures) -> f64,
) -> bool {
    own.difference(other, measure).high() < 0.0
}

/// Returns whether an entry costs fewer messages than with the other one.
pub(crate) fn is_cheaper(own: &Replicated, other: &Replicated) -> bool {
    is_smaller(own, other, |measures| measures.messages_per_entry)
}
