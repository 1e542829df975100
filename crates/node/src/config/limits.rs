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

/// A value that is out of range: its position, its key, and the maximum.
pub(super) struct NoLimit<'r> {
    pub at: &'r Spanned<i64>,
    pub key: &'static str,
    pub most: usize,
}

impl RawLimits {
    pub fn limits(&self) -> Result<Limits, NoLimit<'_>> {
        let usual = Limits::default();
        let number = |given, key, usual| read(given, key, usual, Limits::MOST);
        let bytes = |given, key, usual| read(given, key, usual, Limits::NAME_BYTES_MOST);
        let Quota {
            holds,
            waiters,
            name_bytes,
        } = usual.node;
        let node = Quota {
            holds: number(&self.holds, "limits.holds", holds)?,
            waiters: number(&self.waiters, "limits.waiters", waiters)?,
            name_bytes: bytes(&self.name_bytes, "limits.name_bytes", name_bytes)?,
        };
        let Quota {
            holds,
            waiters,
            name_bytes,
        } = usual.client;
        let key = "limits.client_name_bytes";
        let client = Quota {
            holds: number(&self.client_holds, "limits.client_holds", holds)?,
            waiters: number(&self.client_waiters, "limits.client_waiters", waiters)?,
            name_bytes: bytes(&self.client_name_bytes, key, name_bytes)?,
        };
        Ok(Limits { node, client })
    }
}

fn read<'r>(
    given: &'r Number,
    key: &'static str,
    otherwise: usize,
    most: usize,
) -> Result<usize, NoLimit<'r>> {
    let Some(at) = given else {
        return Ok(otherwise);
    };
    let number = usize::try_from(*at.get_ref()).ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or(NoLimit { at, key, most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Nodes;
    use soloist_core::epochs::pieces::HOLDS_BYTES_MAX;

    #[test]
    fn what_all_members_may_hold_fits_a_change_of_epoch() {
        let share = |members| Limits::default().shared_by(members).node.name_bytes;
        assert_eq!(share(1), Limits::NAME_BYTES_MOST);
        // All nodes join one by one, and each uses up its share before the next one joins.
        let all: usize = (1..=Nodes::MOST).map(share).sum();
        assert!(all <= HOLDS_BYTES_MAX, "{all}");
    }
}
