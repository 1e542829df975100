//! Keepers: which nodes may have a store, and which keepers answer each other.
//!
//! Raft majorities intersect only if no voter forgets what it has voted for and stored. Raft itself
//! cannot ensure that: machines are re-imaged, and others return with disks of long ago. The rules
//! here do.
//!
//! - [`appointment`]: a node creates a store, or sets it aside, only on a leader's word.
//! - [`former`]: a keeper that was removed is not answered any more.
//!
//! A node runs them with openraft, and the lab searches them with a small model of Raft.

pub mod appointment;
pub mod former;

use serde::{Deserialize, Serialize};

pub use appointment::{Appointment, KnownKeepers, LeaderDecision, StoreClaim};
pub use former::{FormerKeepers, NoAnswer, may_answer};

/// Identifies an entry of the keepers' log. Of two committed entries, the later one is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryId {
    /// The term of the leader that proposed the entry.
    pub term: u64,
    /// That leader's id.
    pub leader: u64,
    /// The entry's place in the log.
    pub index: u64,
}
