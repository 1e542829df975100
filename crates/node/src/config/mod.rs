//! What a node is told before it starts.

mod name;

pub use name::{NodeName, NodeNameError};
