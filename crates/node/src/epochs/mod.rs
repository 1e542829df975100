//! Epochs: who takes part, and how that changes, so that the algorithms need not know of failures.
//!
//! - `roster`: what the keepers agree on: the epochs' numbers, their members, and who starts inside which lock.
//!
//! Pure state machines all: what time it is, is told to them.

pub mod roster;
