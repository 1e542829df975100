//! The kinds of faults that runs and searches of epochs inject.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A node crashes. In a run, it starts again later.
    Crash,
    /// A node does nothing for a while. In a search, its timers do not fire any more.
    Pause,
    /// A node's machine sleeps for a moment, which ends its lease. In runs only.
    Suspend,
    /// Two members cannot reach each other. In a search, one reports that it cannot reach the
    /// other.
    Apart,
    /// Messages from a node to the keepers are lost, or those from the keepers to it, or both.
    Cut,
    /// Messages between a node and the keepers take long. In a search, a renewal or its answer
    /// arrives at any time.
    Slow,
    /// A single message is lost: in a run, between a node and the keepers; in a search, between two
    /// members, one of which notices.
    Lost,
    /// The keepers elect another leader, and the old one does not know it.
    Depose,
    /// A node is told to stop. In a run, it starts again later.
    Leave,
    /// Clocks run at half or double speed, far beyond the margin. In runs only, and only if asked
    /// for: leases mean nothing then, and only fences tell holders apart.
    Clocks,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Fault; 10] = [
        Fault::Crash,
        Fault::Pause,
        Fault::Suspend,
        Fault::Apart,
        Fault::Cut,
        Fault::Slow,
        Fault::Lost,
        Fault::Depose,
        Fault::Leave,
        Fault::Clocks,
    ];

    /// The kinds that epochs tolerate, so that locks stay exclusive.
    pub fn tolerated() -> impl Iterator<Item = Fault> {
        let all = Self::ALL.into_iter();
        all.filter(|fault| *fault != Fault::Clocks)
    }

    /// The kinds that a search knows.
    pub fn searched() -> impl Iterator<Item = Fault> {
        let unknown = [Fault::Suspend, Fault::Clocks];
        let all = Self::ALL.into_iter();
        all.filter(move |fault| !unknown.contains(fault))
    }

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Crash => "crash",
            Fault::Pause => "pause",
            Fault::Suspend => "suspend",
            Fault::Apart => "apart",
            Fault::Cut => "cut",
            Fault::Slow => "slow",
            Fault::Lost => "lost",
            Fault::Depose => "depose",
            Fault::Leave => "leave",
            Fault::Clocks => "clocks",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("use {}", Fault::ALL.map(Fault::name).join(", "))]
pub struct NotAFault;

impl FromStr for Fault {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let mut all = Fault::ALL.into_iter();
        all.find(|fault| fault.name() == text).ok_or(NotAFault)
    }
}
