//! Epochs: whole clusters of participants with a keepers' leader, in simulated time, with crashes, pauses, cuts and
//! clocks that run apart.
//!
//! A failure prints the seed; `SOLOIST_SEED=<seed> cargo nextest run -p soloist-node epochs` repeats that run alone.

mod clients;
mod referee;
mod runs;
mod search;
mod state;
mod world;
