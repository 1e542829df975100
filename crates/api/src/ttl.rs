//! Time-to-live arithmetic: when a client renews a hold, and what it does before the hold ends.
//!
//! `left` is how long the hold is certain to last without renewal: no longer than its time to live,
//! and no longer than its node's lease. Times that follow from the cluster's lease alone are in
//! `soloist_core::epochs::lease`.

use std::time::Duration;

/// A hold is renewed when 1/`RENEWALS` of the time that is left has passed.
pub const RENEWALS: u32 = 3;

/// A holder is warned when 1/`WARNING` of the time to live is left. That is late enough to tolerate
/// delayed renewals, for example while the keepers elect another leader.
pub const WARNING: u32 = 8;

/// When to renew a hold.
pub fn renew_after(left: Duration) -> Duration {
    left / RENEWALS
}

/// How long to wait for the answer to a renewal. The next attempt is made over a new connection, so
/// there is no use in waiting for long.
pub fn renewal_timeout(left: Duration) -> Duration {
    (left / 2).max(Duration::from_millis(10))
}

/// Pause after a renewal that failed. Several attempts fit into the time that is left.
pub fn renewal_pause(left: Duration) -> Duration {
    (left / 15).clamp(Duration::from_millis(5), Duration::from_secs(1))
}

/// Longest time from the request to the grant for which the hold's time is counted from the
/// request. If it took longer, the hold is renewed first.
pub fn grant_delay_max(ttl: Duration) -> Duration {
    ttl / 4
}

/// How long before the end of a hold its holder is warned.
pub fn warn_before(ttl: Duration) -> Duration {
    ttl / WARNING
}

/// How long before the end of a hold its processes are killed. Killing takes a moment, and timers
/// fire late.
pub fn kill_before(ttl: Duration) -> Duration {
    (ttl / 20).min(Duration::from_millis(500))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times to live from short to very long ones, in steps of a tenth.
    fn ttls() -> impl Iterator<Item = Duration> {
        let longer = |ttl: &Duration| Some(*ttl * 11 / 10);
        let ttls = std::iter::successors(Some(Duration::from_millis(100)), longer);
        ttls.take_while(|ttl| *ttl < Duration::from_secs(24 * 60 * 60))
    }

    /// If a renewal gets no answer at all, a second one is answered before the holder is warned.
    #[test]
    fn a_holder_is_not_warned_because_one_renewal_is_lost() {
        for ttl in ttls() {
            let first = renew_after(ttl);
            let failed = first + renewal_timeout(ttl - first);
            let second = failed + renewal_pause(ttl - failed);
            assert!(
                second + warn_before(ttl) + kill_before(ttl) < ttl,
                "{ttl:?}"
            );
        }
    }

    /// A grant whose time counts from the request is renewed long before it ends.
    #[test]
    fn a_grant_that_took_its_time_is_renewed_in_time() {
        for ttl in ttls() {
            let took = grant_delay_max(ttl);
            let first = took + renew_after(ttl - took);
            assert!(first + warn_before(ttl) + kill_before(ttl) < ttl, "{ttl:?}");
        }
    }

    #[test]
    fn a_holder_is_warned_before_it_is_killed_and_killed_before_the_end() {
        for ttl in ttls() {
            assert!(kill_before(ttl) > Duration::ZERO);
            assert!(warn_before(ttl) > kill_before(ttl), "{ttl:?}");
        }
    }
}
