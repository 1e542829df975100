//! How much of a node its clients may use.

use serde::Deserialize;
use toml::Spanned;

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

type Number = Option<Spanned<i64>>;

/// `[limits]` as it stands in the file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    holds: Number,
    waiters: Number,
    name_bytes: Number,
    client_holds: Number,
    client_waiters: Number,
    client_name_bytes: Number,
}

/// A number that is no limit: where it stands, its key, and the number.
pub(super) struct NoLimit<'r> {
    pub at: &'r Spanned<i64>,
    pub key: &'static str,
}

impl RawLimits {
    pub fn limits(&self) -> Result<Limits, NoLimit<'_>> {
        let usual = Limits::default();
        let node = Quota {
            holds: read(&self.holds, "limits.holds", usual.node.holds)?,
            waiters: read(&self.waiters, "limits.waiters", usual.node.waiters)?,
            name_bytes: read(&self.name_bytes, "limits.name_bytes", usual.node.name_bytes)?,
        };
        let client = Quota {
            holds: read(
                &self.client_holds,
                "limits.client_holds",
                usual.client.holds,
            )?,
            waiters: read(
                &self.client_waiters,
                "limits.client_waiters",
                usual.client.waiters,
            )?,
            name_bytes: read(
                &self.client_name_bytes,
                "limits.client_name_bytes",
                usual.client.name_bytes,
            )?,
        };
        Ok(Limits { node, client })
    }
}

fn read<'r>(given: &'r Number, key: &'static str, otherwise: usize) -> Result<usize, NoLimit<'r>> {
    let Some(at) = given else {
        return Ok(otherwise);
    };
    let number = usize::try_from(*at.get_ref()).ok();
    let number = number.filter(|number| (1..=Limits::MOST).contains(number));
    number.ok_or(NoLimit { at, key })
}
