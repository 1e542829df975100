//! Reports for users: plots and labels.

mod plot;

pub use plot::{PlotError, plot};

/// The algorithm with its variants for display: "raymond (greedy)".
pub(crate) fn label(algorithm: &str, variant: &str) -> String {
    match variant {
        "" => algorithm.to_owned(),
        variant => format!("{algorithm} ({variant})"),
    }
}
