//! What a table counts.

use std::collections::BTreeMap;

use soloist_api::Fence;

/// Counts since the table was made.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    /// Messages sent, by algorithm and kind.
    pub sent: BTreeMap<(&'static str, &'static str), u64>,
    /// Messages of other epochs, dropped.
    pub other_epoch: u64,
    /// Requests refused because of a quota, by the limit's key.
    pub refused: BTreeMap<&'static str, u64>,
    /// Messages sent to forget idle locks.
    pub forgetting: u64,
    /// Grants that came when nobody was left to take them.
    pub unclaimed: u64,
    /// The highest fence that was given here.
    pub fence: Fence,
}
