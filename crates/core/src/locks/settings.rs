//! Settings of a table, and of a request.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, RequestId};
use crate::limits::Limits;
use crate::rules::Rules;
use soloist_api::Moment;

/// Settings of a table.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which lock uses which algorithm.
    pub rules: Rules,
    /// The longest time to live of a hold.
    pub ttl_max: Duration,
    /// How much clients may use.
    pub limits: Limits,
    /// Maximum number of locks in the table at a time.
    pub locks_max: usize,
    /// How long a lock must be unused before it is forgotten. If it is used again before that, its
    /// token or permissions are still here.
    pub forget_after: Duration,
    /// How long a node may be outside the cluster before it tells the waiters of sessions to use
    /// another node, or `None` if it never does.
    pub turns_away_after: Option<Duration>,
    /// Seed for the ids of holds: 32 bytes that cannot be guessed.
    pub seed: [u8; 32],
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// Name of the client, shown to anyone who lists holders and waiters.
    pub owner: Arc<str>,
    /// How long the hold lasts without [renewal](super::Table::renew), or `None` for no limit.
    pub ttl: Option<Duration>,
    /// When the waiter times out, or `None` for never.
    pub until: Option<Moment>,
    /// The client whose quota it counts for.
    pub client: Client,
    /// The request's id, if its client chose one: see [`resume`](super::Table::resume).
    pub request: Option<RequestId>,
}

impl LockRequest {
    /// A request of the program that the node runs in, without a time to live or a timeout.
    pub fn new(owner: impl Into<Arc<str>>) -> Self {
        LockRequest {
            owner: owner.into(),
            ttl: None,
            until: None,
            client: Client::this_process(),
            request: None,
        }
    }
}
