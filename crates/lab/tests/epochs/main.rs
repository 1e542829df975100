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

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Faults are planted for the whole process. Tests without one read this lock; tests that plant
/// faults write it.
static PLANTED: RwLock<()> = RwLock::new(());

fn without_faults() -> RwLockReadGuard<'static, ()> {
    PLANTED.read().unwrap_or_else(PoisonError::into_inner)
}
