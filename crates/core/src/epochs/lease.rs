//! How long a member may rely on being one.

use std::time::Duration;

/// A member relies on a lease for as long as it says, by its own clock, from when it asked for it. The keepers
/// wait longer, by theirs, from when they began to confirm that they may grant it. So they act only when
/// the member has stopped, if no clock runs slower than another by more than the margin.
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

    /// How long the keepers wait before they act without a member: by the time a clock that runs slower by the margin
    /// shows the lease's length, theirs may show this. Rounded up.
    pub fn guarded(&self) -> Duration {
        let nanos = (self.length.as_nanos() * 100).div_ceil(u128::from(100 - self.drift));
        const SECOND: u128 = 1_000_000_000;
        Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
    }

    /// What a client on another machine is told of a time that this node waits. Its clock may run slower by the margin:
    /// it must stop before this node does.
    pub fn told(&self, time: Duration) -> Duration {
        let told = time.as_nanos() * u128::from(100 - self.drift) / 100;
        Duration::from_nanos(u64::try_from(told).unwrap_or(u64::MAX))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keepers_wait_for_the_slowest_clock() {
        for (length_ms, drift, guarded_ns) in [
            (3000, 0, 3_000_000_000),
            (3000, 5, 3_157_894_737),
            (3000, 50, 6_000_000_000),
            (500, 1, 505_050_506),
        ] {
            let length = Duration::from_millis(length_ms);
            let lease = Lease { length, drift };
            assert_eq!(lease.guarded(), Duration::from_nanos(guarded_ns));
        }
    }

    #[test]
    fn clients_are_told_less_than_the_node_waits() {
        for drift in [1, 5, 33, 50] {
            let lease = Lease {
                drift,
                ..Lease::default()
            };
            for millis in [0, 1, 7, 2_999, 30_000, 3_600_000] {
                let waits = Duration::from_millis(millis);
                let told = Lease {
                    length: lease.told(waits),
                    drift,
                };
                // By the time the slowest client is through, the node has not waited longer than it does.
                assert!(told.guarded() <= waits, "{millis} ms, {drift} %");
                assert!(told.length * 100 + Duration::from_micros(20) >= waits * (100 - drift));
            }
        }
    }
}
