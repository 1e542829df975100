//! How evenly the nodes share the work.

use crate::simulate::Measures;

/// What the busiest node may receive, as a multiple of the mean, where work is called equal.
pub(super) const EQUAL: f64 = 1.1;

/// What the busiest node receives, as a multiple of the mean.
pub(super) fn busiest(measures: &Measures) -> f64 {
    measures.node_load.max as f64 / measures.node_load.mean
}
