//! Searches every interleaving of a small cluster.

mod search;

pub use search::{Action, Bounds, Outcome, search};
