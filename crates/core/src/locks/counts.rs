//! Counters of a table.

use std::collections::BTreeMap;

use soloist_api::Fence;

/// Counts since the table was created.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    /// Messages sent, by algorithm and kind.
    pub sent: BTreeMap<(&'static str, &'static str), u64>,
    /// Messages of other epochs, which were dropped.
    pub other_epoch: u64,
    /// Requests refused because of a quota, by the limit's key.
    pub refused: BTreeMap<&'static str, u64>,
    /// Messages sent to forget idle locks.
    pub forgetting: u64,
    /// Grants that arrived after all local waiters had gone.
    pub unclaimed: u64,
    /// The highest fence granted on this node.
    pub fence: Fence,
}
