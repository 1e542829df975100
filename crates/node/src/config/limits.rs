//! The `[limits]` table of the file.

use serde::Deserialize;
use soloist_core::limits::{Limits, Quota};
use toml::Spanned;

type Number = Option<Spanned<i64>>;

/// The table as written.
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

/// A value that is not from 1 to [`Limits::MOST`]: its position and its key.
pub(super) struct NoLimit<'r> {
    pub at: &'r Spanned<i64>,
    pub key: &'static str,
}

impl RawLimits {
    pub(super) fn limits(&self) -> Result<Limits, NoLimit<'_>> {
        let usual = Limits::default();
        let Quota {
            holds,
            waiters,
            name_bytes,
        } = usual.node;
        let node = Quota {
            holds: read(&self.holds, "limits.holds", holds)?,
            waiters: read(&self.waiters, "limits.waiters", waiters)?,
            name_bytes: read(&self.name_bytes, "limits.name_bytes", name_bytes)?,
        };
        let Quota {
            holds,
            waiters,
            name_bytes,
        } = usual.client;
        let key = "limits.client_name_bytes";
        let client = Quota {
            holds: read(&self.client_holds, "limits.client_holds", holds)?,
            waiters: read(&self.client_waiters, "limits.client_waiters", waiters)?,
            name_bytes: read(&self.client_name_bytes, key, name_bytes)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Nodes;

    #[test]
    fn the_shares_of_all_members_fit_one_change_of_epoch() {
        // With 16 members, the default quota is what counts.
        assert!(Limits::default().node.holds <= Limits::share(16));
        // All nodes join one by one, and each uses up its share before the next one joins.
        let all: usize = (1..=Nodes::MOST).map(Limits::share).sum();
        assert!(all <= Limits::HOLDS_MAX, "{all}");
    }
}
