//! Simulates, measures and model-checks distributed mutual exclusion algorithms. It runs the same
//! state machines of [`soloist_algorithms`] that run on the network.

#![warn(clippy::iter_over_hash_type)]

pub mod adversary;
pub mod breadth_first;
mod channels;
mod compare;
pub mod epochs;
pub mod keepers;
pub mod network;
pub mod play;
pub mod replicate;
pub mod report;
pub mod scenario;
mod script;
pub mod search;
mod seeds;
mod shape_spec;
pub mod simulate;
mod svg_text;
pub mod swarm;
pub mod world;

pub use channels::assumed_channels;
pub use compare::{Compared, Difference, compare};
pub use shape_spec::ShapeSpec;
