//! Epochs: whole clusters of participants with a keepers' leader.
//!
//! - `runs`, in a `world` with `clients` and a `referee`: random runs in simulated time, with
//!   crashes, pauses, partitions and clocks that drift.
//! - `search`: every interleaving of a small cluster with one fault. A `state` includes the
//!   messages that are `under_way` and a `witness`.
//! - `bad_node`: three healthy nodes and a fourth that is slow, or crashes repeatedly: how long the
//!   others are frozen.
//! - `leader`, `member`: each of the two state machines alone.
//!
//! A failing run prints its seed. This repeats the runs with that seed alone:
//! `SOLOIST_SEED=<seed> cargo nextest run -p soloist-core --test epochs runs::at_most_one`

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
