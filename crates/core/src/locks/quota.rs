//! How much of a table each client uses, and how much it may use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::limits::{HOLD_BYTES, Limits, Quota};
use soloist_api::LockName;

/// Identifies a client of a node: by Unix user, token or certificate. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(Arc<str>);

impl Client {
    /// The client with this name in errors and logs.
    pub fn new(name: &str) -> Self {
        Client(name.into())
    }

    /// The program that the node runs in.
    pub fn this_process() -> Self {
        Client::new("of this process")
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A request would exceed a quota.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{} on this node already, and {} allows no more: release some, or ask its operator to raise the limit",
    self.used(),
    self.key()
)]
pub struct QuotaError {
    /// The client whose quota it is, or `None` for that of the whole node.
    pub client: Option<Client>,
    /// The quantity that would be exceeded.
    pub what: Quantity,
    /// The quota.
    pub max: usize,
}

/// What a quota is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quantity {
    /// Holds, with the waiters that may become holds.
    Holds,
    /// Waiters.
    Waiters,
    /// Bytes in the names of locks that are held or waited for, plus a constant per lock.
    NameBytes,
}

impl QuotaError {
    /// The limit's key in the configuration.
    pub fn key(&self) -> &'static str {
        match (&self.client, self.what) {
            (None, Quantity::Holds) => "limits.holds",
            (None, Quantity::Waiters) => "limits.waiters",
            (None, Quantity::NameBytes) => "limits.name_bytes",
            (Some(_), Quantity::Holds) => "limits.client_holds",
            (Some(_), Quantity::Waiters) => "limits.client_waiters",
            (Some(_), Quantity::NameBytes) => "limits.client_name_bytes",
        }
    }

    fn used(&self) -> String {
        let whose = match &self.client {
            Some(client) => format!("client {client} has"),
            None => "all clients together have".to_owned(),
        };
        let max = self.max;
        match self.what {
            Quantity::Holds => format!("{whose} {max} holds and waiters"),
            Quantity::Waiters => format!("{whose} {max} waiters"),
            Quantity::NameBytes => {
                format!(
                    "{whose} about {max} bytes in names of locks, the quota divided by the number of members,"
                )
            }
        }
    }
}

/// Amounts in use.
#[derive(Clone, Copy, Default)]
struct Used {
    holds: usize,
    waiters: usize,
    name_bytes: usize,
}

/// An idle client is dropped only if there are more clients than this, so that a returning client
/// needs no allocation.
const IDLE_CLIENTS_MAX: usize = 256;

/// What all clients use.
#[derive(Clone, Default)]
pub(super) struct Usage {
    all: Used,
    clients: BTreeMap<Client, Used>,
}

impl Usage {
    /// Checks that one more request for this lock fits.
    pub fn check(
        &self,
        limits: &Limits,
        client: &Client,
        name: &LockName,
    ) -> Result<(), QuotaError> {
        let its = self.clients.get(client).copied().unwrap_or_default();
        let refused = its.full(&limits.client, name).map(|full| (full, true));
        let refused =
            refused.or_else(|| self.all.full(&limits.node, name).map(|full| (full, false)));
        match refused {
            None => Ok(()),
            Some(((what, max), is_its)) => Err(QuotaError {
                client: is_its.then(|| client.clone()),
                what,
                max,
            }),
        }
    }

    /// Bytes in the names of locks that are held or waited for.
    pub fn name_bytes(&self) -> usize {
        self.all.name_bytes
    }

    /// Counts a new waiter.
    pub fn wait(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.waiters += 1;
            used.name_bytes += bytes_of(name);
        });
    }

    /// Counts a grant to a waiter.
    pub fn grant(&mut self, client: &Client) {
        self.change(client, |used| {
            used.waiters -= 1;
            used.holds += 1;
        });
    }

    /// Counts a waiter that was removed.
    pub fn cancel(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.waiters -= 1;
            used.name_bytes -= bytes_of(name);
        });
    }

    /// Counts a hold that ended.
    pub fn end(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.holds -= 1;
            used.name_bytes -= bytes_of(name);
        });
    }

    fn change(&mut self, client: &Client, change: impl Fn(&mut Used)) {
        change(&mut self.all);
        match self.clients.get_mut(client) {
            Some(used) => {
                change(used);
                let is_idle = used.holds + used.waiters == 0;
                if is_idle && self.clients.len() > IDLE_CLIENTS_MAX {
                    self.clients.remove(client);
                }
            }
            None => change(self.clients.entry(client.clone()).or_default()),
        }
    }
}

/// How many bytes a name counts for: as many as it takes in a change of epoch.
pub(super) fn bytes_of(name: &LockName) -> usize {
    name.as_str().len() + HOLD_BYTES
}

impl Used {
    /// The quota that one more request would exceed, and how much it allows.
    fn full(&self, quota: &Quota, name: &LockName) -> Option<(Quantity, usize)> {
        let name_bytes = self.name_bytes + bytes_of(name);
        if self.waiters >= quota.waiters {
            Some((Quantity::Waiters, quota.waiters))
        } else if self.holds + self.waiters >= quota.holds {
            Some((Quantity::Holds, quota.holds))
        } else if name_bytes > quota.name_bytes {
            Some((Quantity::NameBytes, quota.name_bytes))
        } else {
            None
        }
    }
}
