//! How evenly the nodes share the work.

use soloist_lab::simulate::Measures;

/// Work counts as equal if the busiest node receives at most this multiple of the mean.
pub(super) const EQUAL: f64 = 1.1;

/// Messages received by the busiest node, as a multiple of the mean.
pub(super) fn busiest(measures: &Measures) -> f64 {
    measures.node_load.max as f64 / measures.node_load.mean
}
