//! Leases: how long a member may rely on being one.

use std::time::Duration;

/// A member relies on a lease for `length` by its own clock, counted from when it sent the request.
/// The keepers wait longer, by their clock, counted from when they began to confirm that they may
/// grant it. So they act only after the member has stopped, unless one clock runs slower than
/// another by more than `drift`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// How long a member relies on the lease.
    pub length: Duration,
    /// Maximum difference in the rate of any two clocks, in percent.
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

    /// How long the keepers wait before they act without a member. When a clock that is slow by
    /// `drift` shows the lease's length, the keepers' clock may already show this. Rounded up.
    pub fn guarded(&self) -> Duration {
        let nanos = (self.length.as_nanos() * 100).div_ceil(u128::from(100 - self.drift));
        const SECOND: u128 = 1_000_000_000;
        Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
    }

    /// Shortens a time that this node waits to the one that a client on another machine is told.
    /// The client's clock may be slow by `drift`, and the client must stop before this node does.
    pub fn told(&self, time: Duration) -> Duration {
        let told = time.as_nanos() * u128::from(100 - self.drift) / 100;
        Duration::from_nanos(u64::try_from(told).unwrap_or(u64::MAX))
    }

    /// Interval between a member's renewals.
    pub fn renewed_every(&self) -> Duration {
        self.length / 3
    }

    /// Maximum round-trip time between the leader and a node. A candidate that takes longer cannot
    /// join, and a member looks for another leader.
    pub fn answered_within(&self) -> Duration {
        (self.length / 6).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// How long a statement that is repeated with each renewal stays valid.
    pub(super) fn patience(&self) -> Duration {
        self.renewed_every() * 3 / 2
    }

    /// How long messages to a member may be pending before it counts as unreachable. This is long
    /// enough that a dead member has been evicted, and that a link whose connection died silently
    /// has noticed and reconnected.
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
                // Even the slowest client has stopped by the time that the node stops waiting.
                assert!(told.guarded() <= waits, "{millis} ms, {drift} %");
                assert!(told.length * 100 + Duration::from_micros(20) >= waits * (100 - drift));
            }
        }
    }
}
