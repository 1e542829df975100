//! The fence gate: stands before a resource and refuses whoever comes late.
//!
//! Every entry to a lock has a fence, a number greater than that of every entry before. A holder
//! that was paused, lost the lock and does not know it yet still has its old fence; the gate has seen a
//! higher one, and refuses. Equal fences are admitted: one holder may write many times.
//!
//! [`Gate`] is for a resource that lives in this process, [`Gates`] for many of them by key,
//! [`FileGate`] for what must survive a crash or is shared between processes.

mod file;
mod memory;
mod record;

pub use file::{FileGate, GateError};
pub use memory::{Gate, Gates};

/// A fence that is lower than one that was admitted before: its holder has lost the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "stale fence: {given} is lower than {seen}, which was admitted before; its holder has lost the lock"
)]
pub struct Stale {
    /// The highest that was admitted.
    pub seen: u64,
    /// The one that was given.
    pub given: u64,
}

/// The rule of all gates.
fn check(seen: Option<u64>, given: u64) -> Result<(), Stale> {
    match seen {
        Some(seen) if given < seen => Err(Stale { seen, given }),
        _ => Ok(()),
    }
}

/// The examples of the page on fencing are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/fencing.md")]
struct Page;
