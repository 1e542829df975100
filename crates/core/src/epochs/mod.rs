//! Epochs: who takes part, and how that changes, so that the algorithms need not know of failures.
//!
//! - [`roster`]: what the keepers agree on: the epochs, their members, and who starts inside which lock.
//! - [`leader`]: what the keepers' leader does: leases, and the way from one epoch to the next.
//! - [`member`]: a node's part: its lease, its lock table, freezing, reporting and installing.
//! - `candidates`: who may join, `backoff`: who waits before that, `pace`: how often an epoch may begin.
//! - [`pieces`]: long reports, and long lists of what is held.
//! - `partitions`: who cannot reach whom, and who is done without because of it.
//! - [`message`]: what the two say to each other. [`lease`]: how long a word holds.
//!
//! Pure state machines all: what time it is, is told to them. Sockets and Raft are elsewhere.
//!
//! Why no two nodes are inside at a time, though members may die, sleep or be cut off:
//! - A member without a valid lease has lost its holds, by its own clock, before the keepers' leader acts without it.
//! - A member that has reported neither sends nor handles messages of earlier epochs. So no lock moves from the first
//!   report to the last, and no two members report the same lock.
//! - An epoch begins with just what was reported, on fresh parts of the algorithms.

mod backoff;
mod candidates;
mod early;
pub mod leader;
pub mod lease;
pub mod member;
pub mod message;
mod pace;
mod partitions;
pub mod pieces;
pub mod roster;
