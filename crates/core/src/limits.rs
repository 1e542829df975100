//! How much of a node its clients may use.

/// Quotas: what goes beyond them is refused at once, with status 429 in the API.
///
/// They protect the cluster, too. A change of epoch carries the names of all held locks, so no client
/// may make them grow without bound.
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
    /// Bytes in the names of the locks that are held or waited for.
    pub name_bytes: usize,
}

impl Limits {
    /// More may not be configured, for any of them.
    pub const MOST: usize = 1 << 30;

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
