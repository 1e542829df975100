//! How long a member may rely on being one.

use std::time::Duration;

/// A member relies on a lease for as long as it says, by its own clock, from when it asked for it. The keepers
/// wait longer, by theirs, from when they began to confirm that they may grant it. So they act only when
/// the member has stopped, if no clock runs faster than another by more than the margin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// How long a member relies on it.
    pub length: Duration,
    /// By how much clocks may run apart, in percent.
    pub drift: u32,
}

impl Default for Lease {
    fn default() -> Self {
        Lease {
            length: Duration::from_secs(3),
            drift: 5,
        }
    }
}

impl Lease {
    /// The shortest length that can be set.
    pub const LEAST: Duration = Duration::from_millis(500);

    /// How long the keepers wait before they act without a member.
    pub fn guarded(&self) -> Duration {
        self.length + self.length * self.drift / 100
    }

    /// How often a member asks for it anew.
    pub fn renewed_every(&self) -> Duration {
        self.length / 3
    }

    /// How long the leader and a node may take to answer each other. A candidate that takes longer cannot join, and a
    /// member looks for another leader.
    pub fn answered_within(&self) -> Duration {
        (self.length / 6).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// How long something counts that is said with each renewal.
    pub(super) fn patience(&self) -> Duration {
        self.renewed_every() * 3 / 2
    }

    /// How long messages to a member may wait before it counts as not reached. Who is dead is done without before that, and a
    /// link whose connection has died without a word has noticed it, and has another one.
    pub fn apart_after(&self) -> Duration {
        (self.length * 3 / 2).max(Duration::from_secs(10))
    }
}
