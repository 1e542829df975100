//! The keepers, and what a node needs to join them.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Nodes;
use soloist_api::Address;
use soloist_core::epochs::lease::Lease;

/// Membership settings: how a node joins a cluster with keepers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    /// Address at which other nodes reach this one.
    pub address: Address,
    /// The first keepers. A node that knows no others yet asks these; the current keepers may be
    /// different.
    pub keepers: Nodes,
    /// Folder for the node's persistent state. Every node records its cluster and epoch in
    /// `cluster` there; a keeper also stores the keepers' log.
    pub data: PathBuf,
    /// How long a member may rely on being one.
    pub lease: Lease,
}

/// An invalid number of keepers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.reason())]
pub struct KeepersError {
    /// The number given.
    pub count: usize,
}

impl KeepersError {
    fn reason(self) -> String {
        const USUAL: &str = "use 3 or 5, or 1 for a small cluster";
        let (count, most) = (self.count, Members::KEEPERS_MOST);
        match count {
            0 => format!("no keepers: {USUAL}, as NAME = \"HOST:PORT\""),
            count if count > most => format!(
                "{count} keepers are too many (maximum: {most}), because each stores every \
                 change; {USUAL}"
            ),
            count => format!(
                "{count} keepers tolerate no more failures than {}: {USUAL}",
                count - 1
            ),
        }
    }
}

impl Members {
    /// Appends what all nodes must agree on: length and drift of a lease.
    pub(super) fn agree(&self, text: &mut String) {
        let (length_ms, drift) = (self.lease.length.as_millis(), self.lease.drift);
        let _ = writeln!(text, "kept lease_ms={length_ms} drift={drift}");
    }

    /// Checks whether this number of keepers is allowed.
    pub fn check_keepers(count: usize) -> Result<(), KeepersError> {
        if count % 2 == 1 && count <= Self::KEEPERS_MOST {
            Ok(())
        } else {
            Err(KeepersError { count })
        }
    }

    /// Default of [`data`](Self::data).
    pub const DATA: &'static str = "data";
    /// The minimum clock drift in percent.
    pub const DRIFT_LEAST: u32 = 1;
    /// The maximum clock drift in percent.
    pub const DRIFT_MOST: u32 = 50;
    /// The maximum number of keepers.
    pub const KEEPERS_MOST: usize = 7;
}
