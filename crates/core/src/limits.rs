//! Limits on what clients may use of a node.

/// Quotas. A request that would exceed one is refused immediately, with status 429 in the API.
///
/// They protect the cluster, too. A change of epoch carries the names of all held locks, so clients
/// must not make them grow without bound: the quotas for names are shared by all members, see
/// [`shared_by`](Limits::shared_by).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For all clients of the node together.
    pub node: Quota,
    /// For each client: everything with the same certificate name, token or Unix user. A program
    /// with an embedded node is a client of that node as well.
    pub client: Quota,
}

/// How much may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Holds, with the waiters that may become holds.
    pub holds: usize,
    /// Waiters.
    pub waiters: usize,
    /// Bytes in the names of the locks that are held or waited for, plus [`HOLD_BYTES`] per lock.
    /// Shared by the members of the cluster.
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

/// Maximum size of a lock in a change of epoch, besides its name.
pub const HOLD_BYTES: usize = 8;

impl Limits {
    /// Maximum number of holds or waiters that can be configured.
    pub const MOST: usize = 1 << 30;

    /// Maximum number of bytes that can be configured, so that everything that is held fits into a
    /// change of epoch.
    pub const NAME_BYTES_MOST: usize = 128 << 20;

    /// The limits of one of this many members: an equal share of the names.
    ///
    /// With these, all members together hold little more than one quota, even while members come
    /// and go. Of the current members, the one that has been there k-th longest has never been one
    /// of fewer than k members. So it holds at most a k-th of the quota, and n members together
    /// hold at most 1 + 1/2 + ... + 1/n quotas: less than 9 for 4,096 members.
    pub fn shared_by(&self, members: usize) -> Self {
        Limits {
            node: self.node.shared_by(members),
            client: self.client.shared_by(members),
        }
    }

    /// The limits of a program that has the node for itself: as its only client, it may use all of
    /// the node.
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
