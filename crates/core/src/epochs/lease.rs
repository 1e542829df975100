//! Leases: how long a member may rely on being one, and every time that follows from that.
//!
//! No other file divides or multiplies a lease, so that the relations between these times can be
//! seen, and are tested, in one place. What clients do with a time to live is in
//! [`soloist_api::ttl`].

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
    /// The longest length that can be set.
    pub const MOST: Duration = Duration::from_secs(60 * 60);
    /// Number of renewals that a member sends per lease.
    pub const RENEWALS: u32 = 3;

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
        self.length / Self::RENEWALS
    }

    /// Maximum round-trip time between the leader and a node, including the dial. A candidate that
    /// takes longer cannot join, and a member looks for another leader.
    pub fn answered_within(&self) -> Duration {
        (self.length / 6).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// Longest pause between two attempts to find the leader. Leases run out during the search, so
    /// it is short compared with a lease.
    pub fn search_pause_max(&self) -> Duration {
        (self.length / 24).clamp(Duration::from_millis(30), Duration::from_millis(200))
    }

    /// How long a leader that no majority follows keeps its connections. Nodes that stay connected
    /// to it do not look for a leader that has a majority.
    pub fn unfollowed_max(&self) -> Duration {
        self.length / 6
    }

    /// How long a node remembers that it could not reach a keeper, and prefers other ways.
    pub fn detour_for(&self) -> Duration {
        self.length
    }

    /// A forwarded connection without traffic for this long is closed. A member that uses it renews
    /// its lease several times in that time.
    pub fn forward_idle_max(&self) -> Duration {
        (self.length * 2).max(Duration::from_secs(5))
    }

    /// How long a node that lost its lease may take to come back: it asks to join once per renewal
    /// interval, and the change of epoch may have to wait for the lease of another member. After
    /// that, its clients should use another node.
    pub fn outside_max(&self) -> Duration {
        self.guarded() + self.renewed_every()
    }

    /// How much the delays of messages may vary before that is attributed to a clock.
    pub fn clock_jitter(&self) -> Duration {
        (self.length / 3).min(Duration::from_secs(1))
    }

    /// Clocks are compared over one to two of these windows, so that a clock that goes wrong after
    /// a day is detected as soon as one that was always wrong.
    pub fn clock_window(&self) -> Duration {
        self.length * 8
    }

    /// Times of the keepers' elections: when the leader dies, another one leads well before leases
    /// expire.
    pub fn elections(&self) -> Elections {
        let timeout = (self.length / 12).clamp(Elections::TIMEOUT_LEAST, Duration::from_secs(2));
        Elections { timeout }
    }

    /// Timeout of the keepers' operations that need a majority.
    pub fn majority_within(&self) -> Duration {
        (self.length).clamp(Duration::from_secs(1), Duration::from_secs(5))
    }

    /// How long a statement that is repeated with each renewal stays valid.
    pub(super) fn statement_valid_for(&self) -> Duration {
        self.renewed_every() * 3 / 2
    }

    /// How long messages to a member may be pending before it counts as unreachable. This is long
    /// enough that a dead member has been evicted, and that a link whose connection died silently
    /// has noticed and reconnected.
    pub fn apart_after(&self) -> Duration {
        (self.length * 3 / 2).max(Duration::from_secs(10))
    }
}

/// Times of elections among the keepers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Elections {
    /// The base of the others.
    pub timeout: Duration,
}

impl Elections {
    /// The shortest timeout that can be set.
    pub const TIMEOUT_LEAST: Duration = Duration::from_millis(50);

    /// Interval of a leader's heartbeats. A follower must answer within it.
    pub fn heartbeat_every(&self) -> Duration {
        self.timeout / 5
    }

    /// How long a keeper that has heard from a leader votes for no other one.
    pub fn leader_lease(&self) -> Duration {
        self.timeout * 2
    }

    /// How long a candidate that a keeper voted for may be silent before the keeper holds a
    /// pre-vote. The jitter, from 0 to 1, keeps keepers from standing for election simultaneously.
    pub fn candidate_silence_max(&self, jitter: f64) -> Duration {
        self.timeout.mul_f64(1.0 + jitter)
    }

    /// How long a leader may be silent before a keeper holds a pre-vote, with this jitter.
    pub fn leader_silence_max(&self, jitter: f64) -> Duration {
        self.leader_lease() + self.candidate_silence_max(jitter)
    }

    /// The longest time that a leader may be silent before all others hold a pre-vote.
    pub fn takeover_max(&self) -> Duration {
        self.leader_silence_max(1.0)
    }

    /// How long a leader that hands over waits for another one to lead. It must be longer than
    /// followers wait for a silent leader, and short enough that members' leases outlast it.
    pub fn handover_max(&self) -> Duration {
        self.takeover_max() + self.timeout
    }

    /// A follower that the leader has not heard for this long is not counted as one that works.
    pub fn follower_silence_max(&self) -> Duration {
        self.takeover_max()
    }

    /// A connection between keepers on which requests stay unanswered for this long is closed.
    pub fn connection_silence_max(&self) -> Duration {
        self.timeout * 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases of every length that can be set, in steps of a tenth.
    fn lengths() -> impl Iterator<Item = Lease> {
        let longer = |length: &Duration| Some(*length * 11 / 10);
        let lengths = std::iter::successors(Some(Lease::LEAST), longer);
        let lengths = lengths.take_while(|length| *length <= Lease::MOST);
        lengths.chain([Lease::MOST]).map(|length| Lease {
            length,
            ..Lease::default()
        })
    }

    /// The keepers act without a member only after it has stopped.
    #[test]
    fn the_keepers_wait_longer_than_a_member_relies_on_its_lease() {
        for lease in lengths() {
            assert!(lease.guarded() > lease.length, "{lease:?}");
            // So the lease of a member that died has ended before others complain of it, and it is
            // evicted without a quarrel.
            assert!(lease.apart_after() > lease.guarded(), "{lease:?}");
        }
    }

    #[test]
    fn a_member_that_loses_one_renewal_keeps_its_lease() {
        for lease in lengths() {
            let every = lease.renewed_every();
            // A renewal is answered before the next one, and a second attempt fits the lease.
            assert!(lease.answered_within() < every, "{lease:?}");
            assert!(
                every * 2 + lease.answered_within() < lease.length,
                "{lease:?}"
            );
            // A statement that comes with each renewal lasts until the next one, but not longer
            // than until the one after that.
            assert!(
                every < lease.statement_valid_for() && lease.statement_valid_for() < every * 2,
                "{lease:?}"
            );
            // A forwarded connection with renewals is not idle.
            assert!(every * 2 < lease.forward_idle_max(), "{lease:?}");
        }
    }

    /// A member that renewed its lease just before the leader died keeps it: another keeper is
    /// elected, and the member finds it.
    #[test]
    fn an_election_fits_a_lease() {
        for lease in lengths() {
            let elections = lease.elections();
            // The renewal was sent up to this long before the leader died.
            let renewed = lease.renewed_every();
            // A pre-vote and an election take up to a timeout, if a keeper does not answer.
            let elected = renewed + elections.takeover_max() + elections.timeout;
            assert!(elected < lease.length, "{lease:?}");
            let found = elected + lease.search_pause_max() + lease.answered_within();
            // The lower bounds of these times leave too little of the shortest leases: there, a
            // member may lose its lease although it renewed it in time.
            let is_shortest = lease.length < Duration::from_millis(600);
            assert!(found < lease.length || is_shortest, "{lease:?}");
        }
    }

    #[test]
    fn a_handover_fits_a_lease() {
        for lease in lengths() {
            let elections = lease.elections();
            assert!(elections.handover_max() > elections.takeover_max());
            let handed_over = lease.renewed_every() + elections.handover_max();
            assert!(handed_over < lease.length, "{lease:?}");
        }
    }

    /// A leader that no majority follows lets its members go in time to find another one.
    #[test]
    fn a_leader_without_a_majority_gives_up_in_time() {
        for lease in lengths() {
            let gone = lease.renewed_every() + lease.unfollowed_max();
            let found = gone + lease.search_pause_max() + lease.answered_within();
            assert!(found < lease.length, "{lease:?}");
        }
    }

    #[test]
    fn a_leader_sends_several_heartbeats_before_others_hold_a_pre_vote() {
        for lease in lengths() {
            let elections = lease.elections();
            let every = elections.heartbeat_every();
            assert!(every * 5 <= elections.timeout);
            assert!(elections.leader_silence_max(0.0) > elections.leader_lease());
            assert!(elections.leader_silence_max(0.0) < elections.takeover_max());
            assert!(elections.takeover_max() < elections.connection_silence_max());
        }
    }

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
