//! What a table is told: at first, and with each wish.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, RequestId};
use crate::limits::Limits;
use crate::rules::Rules;
use soloist_api::Moment;

/// What a table is made from.
#[derive(Clone)]
pub struct Settings {
    /// Which lock has which algorithm.
    pub rules: Rules,
    /// The longest time to live of a hold.
    pub ttl_max: Duration,
    /// How much clients may use.
    pub limits: Limits,
    /// How many locks this node may have to do with at a time.
    pub locks_max: usize,
    /// After how long without use a lock is forgotten. Used again before that, its token or permissions
    /// are still here.
    pub forget_after: Duration,
    /// From where the names of holds are drawn: 32 bytes that nobody can guess.
    pub seed: [u8; 32],
}

/// Somebody wants a lock.
#[derive(Clone, Debug)]
pub struct Ask {
    /// As they call themselves, for whoever looks who holds and who waits.
    pub owner: Arc<str>,
    /// How long the hold lives without [renewal](super::Table::renew); for ever, if nothing is said.
    pub ttl: Option<Duration>,
    /// When they give up; never, if nothing is said.
    pub until: Option<Moment>,
    /// Whose quota it counts for.
    pub client: Client,
    /// The request's id, if its client chose one: see [`resume`](super::Table::resume).
    pub request: Option<RequestId>,
}

impl Ask {
    /// For the program that the node runs in: without a time to live, and without end.
    pub fn new(owner: impl Into<Arc<str>>) -> Self {
        Ask {
            owner: owner.into(),
            ttl: None,
            until: None,
            client: Client::this_process(),
            request: None,
        }
    }
}
