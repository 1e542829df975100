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

/// The cost of a run for display: "25 messages for 3 entries".
pub fn cost(messages: u64, entries: u64) -> String {
    let counted = |number, one: &str, several: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {several}"),
    };
    let messages = counted(messages, "message", "messages");
    format!("{messages} for {}", counted(entries, "entry", "entries"))
}
