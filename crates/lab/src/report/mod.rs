//! Reports for users: charts and labels.

mod chart;
mod plot;

pub use chart::{Axis, Chart, Look, Panel, Point, Scale, Series, csv};
pub use plot::{Drawable, Metric, UnknownMetric, plot, plot_distributions};

/// The algorithm with its variants for display: "raymond (greedy)".
pub(crate) fn label(algorithm: &str, variant: &str) -> String {
    match variant {
        "" => algorithm.to_owned(),
        variant => format!("{algorithm} ({variant})"),
    }
}

/// Each value once, in the order of first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::new();
    for value in values {
        if !list.contains(&value) {
            list.push(value);
        }
    }
    list
}
