//! Who takes part: the keepers, and what a node needs to join them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::Nodes;
use soloist_api::Address;
use soloist_core::epochs::lease::Lease;

/// What a node is told that joins, and leaves, a cluster with keepers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Where other nodes reach this one.
    pub address: Address,
    /// The first keepers: whom a node asks that knows nobody yet. They may be others by now.
    pub keepers: Nodes,
    /// Where this node keeps what it must not forget, if it is a keeper.
    pub data: PathBuf,
    /// How long a member may rely on being one.
    pub lease: Lease,
}

/// A number of keepers that makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.reason())]
pub struct KeepersError {
    /// How many.
    pub count: usize,
}

impl KeepersError {
    fn reason(self) -> String {
        const USUAL: &str = "list 3 or 5, or 1 for a small cluster";
        let (count, most) = (self.count, Kept::KEEPERS_MOST);
        match count {
            0 => format!("there are no keepers: {USUAL}, as NAME = \"HOST:PORT\""),
            count if count > most => format!(
                "there are {count} keepers: at most {most} are allowed, for each has to store every change; {USUAL}"
            ),
            count => format!(
                "there are {count} keepers, which stand no more failures than {} would: {USUAL}",
                count - 1
            ),
        }
    }
}

impl Kept {
    /// What all nodes must agree on: the same idea of a lease.
    pub(super) fn agree(&self, text: &mut String) {
        let (length_ms, drift) = (self.lease.length.as_millis(), self.lease.drift);
        let _ = writeln!(text, "kept lease_ms={length_ms} drift={drift}");
    }

    /// Whether there may be so many keepers.
    pub fn check_keepers(count: usize) -> Result<(), KeepersError> {
        match count % 2 == 1 && count <= Self::KEEPERS_MOST {
            true => Ok(()),
            false => Err(KeepersError { count }),
        }
    }

    /// The folder of what must not be forgotten, if none is given.
    pub const DATA: &'static str = "data";
    /// The longest lease that may be set; the shortest is [`Lease::LEAST`].
    pub const LEASE_MOST: Duration = Duration::from_secs(60 * 60);
    /// By how much clocks may be said to run apart, in percent: at least.
    pub const DRIFT_LEAST: u32 = 1;
    /// And at most.
    pub const DRIFT_MOST: u32 = 50;
    /// How many keepers there may be.
    pub const KEEPERS_MOST: usize = 7;
}
