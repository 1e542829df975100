//! `[limits]` as it stands in the file.

use serde::Deserialize;
use soloist_core::limits::{Limits, Quota};
use toml::Spanned;

type Number = Option<Spanned<i64>>;

/// The table.
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
