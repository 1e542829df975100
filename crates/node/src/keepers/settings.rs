//! Settings of a keeper.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use super::KeeperError;
use super::types::KeeperNode;
use crate::transport::Endpoint;
use soloist_core::epochs::lease::Lease;

/// The shortest election timeout.
const ELECTION_LEAST: Duration = Duration::from_millis(50);
/// Number of log entries kept after a snapshot, for peers that are slightly behind.
const KEPT_ENTRIES: u64 = 32;
/// Size of a snapshot chunk, and the timeout for sending one.
const CHUNK_BYTES: u64 = 1 << 20;
const CHUNK_TIME: Duration = Duration::from_secs(10);

/// Settings of a keeper.
#[derive(Clone)]
pub struct Settings {
    /// This node.
    pub me: KeeperNode,
    /// How it connects to others.
    pub endpoint: Endpoint,
    /// The base of all other times. A leader sends five heartbeats per election timeout, and a
    /// request must be answered within one heartbeat interval. Keepers that do not hear from a
    /// leader elect another one after three to four election timeouts. At least 50 ms.
    pub election_timeout: Duration,
    /// Number of entries after which a snapshot is made and the log is purged.
    pub snapshot_every: u64,
    /// Timeout of operations that need a majority.
    pub patience: Duration,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("me", &self.me)
            .field("election_timeout", &self.election_timeout)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// The defaults.
    pub fn new(me: KeeperNode, endpoint: Endpoint) -> Self {
        Settings {
            me,
            endpoint,
            election_timeout: Duration::from_millis(250),
            snapshot_every: 128,
            patience: Duration::from_secs(5),
        }
    }

    /// Settings that fit a lease: when the leader dies, another one leads well before leases
    /// expire. Keepers must answer each other within a sixtieth of the lease.
    pub fn for_lease(me: KeeperNode, endpoint: Endpoint, lease: &Lease) -> Self {
        let (fastest, slowest) = (ELECTION_LEAST, Duration::from_secs(2));
        Settings {
            election_timeout: (lease.length / 12).clamp(fastest, slowest),
            patience: (lease.length).clamp(Duration::from_secs(1), Duration::from_secs(5)),
            ..Self::new(me, endpoint)
        }
    }

    /// The longest time that a leader may be silent before others elect a new one: the timeout of
    /// its followers and the jitter that they add.
    pub fn takeover_max(&self) -> Duration {
        self.election_timeout * 4
    }

    /// How long a leader that hands over waits for another one to lead. It must be longer than
    /// followers wait for a silent leader, and short enough that members' leases outlast it.
    pub fn handover_max(&self) -> Duration {
        self.takeover_max() + self.election_timeout
    }

    pub(super) fn config(&self) -> Result<Config, KeeperError> {
        let shortest = ELECTION_LEAST;
        if self.election_timeout < shortest || self.snapshot_every == 0 {
            let (timeout, every) = (self.election_timeout, self.snapshot_every);
            return Err(KeeperError::Settings(format!(
                "an election timeout of {timeout:?} and a snapshot every {every} entries: \
                 use at least {shortest:?} and 1"
            )));
        }
        let election_ms = self.election_timeout.as_millis() as u64;
        let config = Config {
            cluster_name: "soloist".to_owned(),
            heartbeat_interval: election_ms / 5,
            election_timeout_min: election_ms,
            election_timeout_max: election_ms * 2,
            install_snapshot_timeout: CHUNK_TIME.as_millis() as u64,
            snapshot_max_chunk_size: CHUNK_BYTES,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_every),
            // A peer that is further behind than the log reaches is sent the snapshot in any case.
            replication_lag_threshold: self.snapshot_every.saturating_mul(2),
            max_in_snapshot_log_to_keep: KEPT_ENTRIES.min(self.snapshot_every),
            purge_batch_size: 1,
            ..Config::default()
        };
        config
            .validate()
            .map_err(|error| KeeperError::Settings(error.to_string()))
    }
}
