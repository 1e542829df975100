//! Reports for users: tables and plots.

mod plot;
mod table;

pub use plot::{PlotError, plot};
pub use table::Table;

/// The algorithm with its variants for display: "raymond (greedy)".
pub(crate) fn label(algorithm: &str, variant: &str) -> String {
    match variant {
        "" => algorithm.to_owned(),
        variant => format!("{algorithm} ({variant})"),
    }
}
