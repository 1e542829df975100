//! Epochs: whole clusters of participants with a keepers' leader.
//!
//! - `runs`, in a `world` with `clients` and a `referee`: random runs in simulated time, with crashes, pauses, cuts and
//!   clocks that run apart.
//! - `search`: every interleaving of a small cluster, a `state` at a time with what is `under_way` and a `witness`, with
//!   a fault.
//! - `bad_node`: three healthy nodes and a fourth that is slow, or dies again and again: how long they are frozen.
//! - `leader`, `member`: each of the two by itself.
//!
//! A failure of a run prints the seed; `SOLOIST_SEED=<seed> cargo nextest run -p soloist-node epochs` repeats that run alone.

mod bad_node;
mod budget;
mod clients;
mod leader;
mod member;
mod referee;
mod runs;
mod search;
mod setup;
mod state;
mod under_way;
mod witness;
mod world;
