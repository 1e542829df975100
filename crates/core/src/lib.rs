//! The pure core of a node: which algorithm a lock uses ([`rules`]), the lock table ([`locks`]),
//! the sessions of clients ([`sessions`]), the epochs that make it tolerate crashes ([`epochs`]),
//! which nodes keep the roster ([`keepers`]), and what is remembered for dashboards ([`record`]).
//!
//! Events and the time go in, effects come out. There is no clock, socket or task here, so that the
//! same state machines run in a node, in simulations and in searches.

#![warn(clippy::iter_over_hash_type)]

pub mod cluster_identity;
pub mod epochs;
mod hex;
mod incarnation;
pub mod keepers;
pub mod limits;
#[cfg(feature = "lint-check")]
mod lint_check;
pub mod locks;
mod lookup_map;
mod mutant;
pub mod name_hash;
mod near_end;
pub mod notice;
pub mod record;
pub mod rows;
pub mod rules;
pub mod sessions;
mod tuning;

pub use incarnation::{Incarnation, Term};
pub use mutant::Mutant;
#[cfg(feature = "mutants")]
pub use near_end::{skip_epochs, skip_fences};
pub use tuning::Tuning;
