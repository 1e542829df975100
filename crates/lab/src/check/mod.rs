//! Searches every interleaving of a small cluster.

mod fair;
mod graph;
mod search;

pub use fair::{FairOutcome, fair};
pub use search::{Action, Bounds, ENDLESS, Outcome, search};
