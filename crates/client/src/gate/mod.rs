//! Fence gate: protects a resource from holders that have lost the lock.
//!
//! Every entry to a lock has a fence (a fencing token), a number greater than the fence of every
//! earlier entry. A holder that was paused and does not know yet that it lost the lock still uses
//! its old fence. The gate rejects it, because it has already admitted a higher one. Equal fences
//! are admitted, since one holder may write many times.
//!
//! [`Gate`] is for a resource within one process, [`Gates`] for many of them by key, and
//! [`FileGate`] for a resource that must survive a crash or that several processes share.

mod file;
mod memory;
mod record;

pub use file::{FileGate, GateError};
pub use memory::{Gate, Gates};

use crate::Fence;

/// The fence is lower than one that was admitted before: its holder has lost the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "stale fence: {given} is lower than {seen}, which was admitted before; its holder has lost the lock"
)]
pub struct Stale {
    /// The highest fence admitted so far.
    pub seen: Fence,
    /// The rejected fence.
    pub given: Fence,
}

/// The rule that all gates apply.
fn check(seen: Option<Fence>, given: Fence) -> Result<(), Stale> {
    match seen {
        Some(seen) if given < seen => Err(Stale { seen, given }),
        _ => Ok(()),
    }
}

/// Runs the examples in `docs/fencing.md` as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/fencing.md")]
struct Page;
