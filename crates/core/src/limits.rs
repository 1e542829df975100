//! Limits on what clients may use of a node.

/// Quotas. A request that would exceed one is refused immediately, with status 429 in the API.
///
/// They protect the cluster, too. A change of epoch carries all holds, so clients must not make
/// them grow without bound: see [`share`](Limits::share).
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
    /// Bytes in the names of the locks that are held or waited for.
    pub name_bytes: usize,
}

impl Limits {
    /// The highest limit that can be configured.
    pub const MOST: usize = 1 << 30;

    /// Number of holds that the members of a cluster share.
    pub const HOLDS_SHARED: usize = 6_400_000;

    /// Maximum number of holds in a change of epoch. [Shares](Limits::share) keep it below that.
    pub const HOLDS_MAX: usize = 9 * Self::HOLDS_SHARED;

    /// The holds and waiters of one of this many members, whatever its quotas are.
    ///
    /// With this, all members together hold little more than
    /// [`HOLDS_SHARED`](Limits::HOLDS_SHARED), even while members come and go. Of the current
    /// members, the one that has been there k-th longest has never been one of fewer than k
    /// members. So it holds at most a k-th of that number, and n members together hold at most 1 +
    /// 1/2 + ... + 1/n times that number: less than 9 times for 4,096 members.
    pub fn share(members: usize) -> usize {
        Self::HOLDS_SHARED / members.max(1)
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
                name_bytes: 128 << 20,
            },
            client: Quota {
                holds: 100_000,
                waiters: 10_000,
                name_bytes: 32 << 20,
            },
        }
    }
}
