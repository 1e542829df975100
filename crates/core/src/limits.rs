//! How much of a node its clients may use.

/// Quotas: what goes beyond them is refused at once, with status 429 in the API.
///
/// They protect the cluster, too. A change of epoch carries the names of all held locks, so no client
/// may make them grow without bound: the quotas for names are shared by all members, see
/// [`shared_by`](Limits::shared_by).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For all clients of the node together.
    pub node: Quota,
    /// For each client: everybody with the same certificate name, token or Unix user. A program with
    /// a node inside is a client of that node as well.
    pub client: Quota,
}

/// What may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Holds, with the waiters that may become holds.
    pub holds: usize,
    /// Waiters.
    pub waiters: usize,
    /// Bytes in the names of the locks that are held or waited for, and [`HOLD_BYTES`] for each. The members of the
    /// cluster share them.
    pub name_bytes: usize,
}

impl Quota {
    fn shared_by(self, members: usize) -> Self {
        Quota {
            name_bytes: self.name_bytes / members.max(1),
            ..self
        }
    }
}

/// What a lock takes beside its name in a change of epoch, at most.
pub const HOLD_BYTES: usize = 8;

impl Limits {
    /// More holds or waiters may not be configured.
    pub const MOST: usize = 1 << 30;

    /// More bytes may not be configured, so that all that is held fits a change of epoch.
    pub const NAME_BYTES_MOST: usize = 128 << 20;

    /// What one of this many members may let its clients use: an equal share of the names.
    ///
    /// Then all members together hold little more than one quota, though members come and go. Of those that are there
    /// now, the one that has been there k-th longest has never been one of fewer than k members. So it holds at most a
    /// k-th of the quota, and all of n members together 1 + 1/2 + ... + 1/n quotas: less than 9 for 4,096 members.
    pub fn shared_by(&self, members: usize) -> Self {
        Limits {
            node: self.node.shared_by(members),
            client: self.client.shared_by(members),
        }
    }

    /// Limits of a program that has the node for itself: as one client, it may use all of the node.
    pub fn alone() -> Self {
        let Limits { node, .. } = Limits::default();
        Limits { node, client: node }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            node: Quota {
                holds: 400_000,
                waiters: 100_000,
                name_bytes: Limits::NAME_BYTES_MOST,
            },
            client: Quota {
                holds: 100_000,
                waiters: 10_000,
                name_bytes: 32 << 20,
            },
        }
    }
}
