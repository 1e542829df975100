//! Epochs: whole clusters of participants with a keepers' leader.
//!
//! - `runs`: random runs in simulated time, with crashes, pauses, partitions and clocks that drift.
//! - `search`: every interleaving of a small cluster with one fault.
//! - `bad_node`: three healthy nodes and a fourth that is slow, or crashes repeatedly: how long the
//!   others are frozen.
//!
//! A failing run prints its seed. This repeats the runs with that seed alone:
//! `SOLOIST_SEED=<seed> cargo nextest run -p soloist-lab --test epochs runs::at_most_one`

mod bad_node;
mod runs;
mod search;
