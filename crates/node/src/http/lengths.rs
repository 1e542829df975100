//! Limits on the texts in queries for locks and events. A query may wait for others, so it must not
//! keep what no lock can match.

use soloist_api::LockName;

/// A prefix or cursor that is longer than any lock's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the {what} has {length} bytes, and names of locks have at most {max}: use a shorter {what}",
    max = LockName::LEN_MAX
)]
pub(super) struct TooLong {
    what: &'static str,
    length: usize,
}

/// Checks that a prefix or cursor is not longer than a lock's name.
pub(super) fn check(what: &'static str, text: Option<&str>) -> Result<(), TooLong> {
    match text.map_or(0, str::len) {
        length if length > LockName::LEN_MAX => Err(TooLong { what, length }),
        _ => Ok(()),
    }
}
