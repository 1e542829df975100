//! A small model of the keepers: machines that crash and return with their old disks or re-imaged,
//! half-done promotions, bootstrap, and recovery.
//!
//! Raft is reduced to what matters here: terms, votes, logs of memberships and decisions, and
//! commits by majority. Which node may have a store and which keepers are answered is decided by
//! [`soloist_core::keepers`], as in a node. Each rule can be broken by a [`setup::Variant`], and
//! the search then finds the failure that the rule prevents.
//!
//! - [`setup`]: the cluster, what may happen to it, and the rules.
//! - [`state`]: machines with their [`disk`]s, and what was committed.
//! - [`action`]: the steps, and those that are possible in a state. The rules of the steps are in
//!   `steps`.
//! - [`check`]: a search of every interleaving. [`progress`]: whether a majority can go on.
//! - [`text`]: runs as text. [`describe`]: lines about what happens.

pub mod action;
pub mod check;
pub mod describe;
pub mod disk;
pub mod progress;
pub mod setup;
pub mod state;
mod steps;
pub mod text;
