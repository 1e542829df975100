//! How much of a table each client uses, and how much it may use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::limits::{Limits, Quota};
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
#[error("{} on this node; {}", self.used(), self.advice())]
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
    /// Bytes in the names of locks that are held or waited for.
    NameBytes,
    /// Holds, with the waiters that may become holds: this member's [share](Limits::share).
    Share,
}

impl QuotaError {
    /// The limit's key in the configuration, or `share`.
    pub fn key(&self) -> &'static str {
        match (&self.client, self.what) {
            (None, Quantity::Holds) => "limits.holds",
            (None, Quantity::Waiters) => "limits.waiters",
            (None, Quantity::NameBytes) => "limits.name_bytes",
            (Some(_), Quantity::Holds) => "limits.client_holds",
            (Some(_), Quantity::Waiters) => "limits.client_waiters",
            (Some(_), Quantity::NameBytes) => "limits.client_name_bytes",
            (_, Quantity::Share) => "share",
        }
    }

    fn advice(&self) -> String {
        let holds = Limits::HOLDS_SHARED;
        match self.what {
            Quantity::Share => format!(
                "that is this node's share of the cluster's {holds}: release some, or use another \
                 node"
            ),
            _ => format!(
                "the limit is {}: release some, or raise the limit in the node's configuration",
                self.key()
            ),
        }
    }

    fn used(&self) -> String {
        let whose = match &self.client {
            Some(client) => format!("client {client} has"),
            None => "all clients together have".to_owned(),
        };
        let max = self.max;
        match self.what {
            Quantity::Holds | Quantity::Share => format!("{whose} {max} holds and waiters"),
            Quantity::Waiters => format!("{whose} {max} waiters"),
            Quantity::NameBytes => format!("{whose} about {max} bytes of lock names"),
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
    /// Checks that one more request for this lock fits on one of this many members.
    pub(super) fn check(
        &self,
        limits: &Limits,
        members: usize,
        client: &Client,
        name: &LockName,
    ) -> Result<(), QuotaError> {
        let its = self.clients.get(client).copied().unwrap_or_default();
        let share = Limits::share(members);
        let is_used_up = self.all.holds + self.all.waiters >= share;
        let shared = || is_used_up.then_some((Quantity::Share, share));
        let nodes = || self.all.full(&limits.node, name).or_else(shared);
        let refused = its.full(&limits.client, name).map(|full| (full, true));
        let refused = refused.or_else(|| nodes().map(|full| (full, false)));
        match refused {
            None => Ok(()),
            Some(((what, max), is_its)) => Err(QuotaError {
                client: is_its.then(|| client.clone()),
                what,
                max,
            }),
        }
    }

    /// Counts a new waiter.
    pub(super) fn wait(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.waiters += 1;
            used.name_bytes += name.as_str().len();
        });
    }

    /// Counts a grant to a waiter.
    pub(super) fn grant(&mut self, client: &Client) {
        self.change(client, |used| {
            used.waiters -= 1;
            used.holds += 1;
        });
    }

    /// Counts a waiter that was removed.
    pub(super) fn cancel(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.waiters -= 1;
            used.name_bytes -= name.as_str().len();
        });
    }

    /// Counts a hold that ended.
    pub(super) fn end(&mut self, client: &Client, name: &LockName) {
        self.change(client, |used| {
            used.holds -= 1;
            used.name_bytes -= name.as_str().len();
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

impl Used {
    /// The quota that one more request would exceed, and how much it allows.
    fn full(&self, quota: &Quota, name: &LockName) -> Option<(Quantity, usize)> {
        let name_bytes = self.name_bytes + name.as_str().len();
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
