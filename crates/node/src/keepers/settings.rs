//! Settings of a keeper.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use super::KeeperError;
use super::types::KeeperNode;
use soloist_core::epochs::lease::{Elections, Lease};
use soloist_transport::Endpoint;

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
    /// When keepers elect another leader.
    pub elections: Elections,
    /// Number of entries after which a snapshot is made and the log is purged.
    pub snapshot_every: u64,
    /// Timeout of operations that need a majority.
    pub majority_timeout: Duration,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("me", &self.me)
            .field("elections", &self.elections)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// The defaults.
    pub fn new(me: KeeperNode, endpoint: Endpoint) -> Self {
        Settings {
            me,
            endpoint,
            elections: Elections {
                timeout: Duration::from_millis(250),
            },
            snapshot_every: 128,
            majority_timeout: Duration::from_secs(5),
        }
    }

    /// Settings that fit a lease.
    pub fn for_lease(me: KeeperNode, endpoint: Endpoint, lease: &Lease) -> Self {
        Settings {
            elections: lease.elections(),
            majority_timeout: lease.majority_within(),
            ..Self::new(me, endpoint)
        }
    }

    pub(super) fn config(&self) -> Result<Config, KeeperError> {
        let shortest = Elections::TIMEOUT_LEAST;
        let (timeout, every) = (self.elections.timeout, self.snapshot_every);
        if timeout < shortest || every == 0 {
            return Err(KeeperError::Settings(format!(
                "an election timeout of {timeout:?} and a snapshot every {every} entries \
                 (minimum: {shortest:?} and 1)"
            )));
        }
        let election_ms = timeout.as_millis() as u64;
        let config = Config {
            cluster_name: "soloist".to_owned(),
            heartbeat_interval: self.elections.heartbeat_every().as_millis() as u64,
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
