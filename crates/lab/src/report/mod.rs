//! What people look at: tables and pictures.

mod plot;
mod table;

pub use plot::{PlotError, plot};
pub use table::Table;

/// An algorithm with its variants, for people: "raymond (greedy)".
pub(crate) fn label(algorithm: &str, variant: &str) -> String {
    match variant {
        "" => algorithm.to_owned(),
        variant => format!("{algorithm} ({variant})"),
    }
}
