//! What a member holds, in pieces.

use super::super::pieces;
use crate::locks::Table;
use crate::mutant::Mutant;
use crate::name_hash::{HashKey, NameHash};
use crate::rows::Rows;

/// A report. It is made when the table is frozen, and stays the same, whichever leader asks for it.
/// A hold that ends since then is one that this node has to give back when the epoch begins.
#[derive(Clone, Hash)]
pub(super) struct Report(Vec<Rows<NameHash>>);

impl Report {
    pub(super) fn new(table: &Table, key: &HashKey) -> Self {
        let held = if table.tuning().has(Mutant::HoldsNotReported) {
            Vec::new()
        } else {
            table.held_hashes(key)
        };
        let mut pieces = pieces::cut(&held, table.tuning());
        // Also if nothing is held, the leader waits for a piece.
        if pieces.is_empty() {
            pieces.push(Rows::new(&[]));
        }
        Report(pieces)
    }

    /// Number of pieces, at least one.
    pub(super) fn pieces(&self) -> u32 {
        self.0.len() as u32
    }

    /// The piece of this number, or `None` if there are fewer.
    pub(super) fn piece(&self, number: u32) -> Option<Rows<NameHash>> {
        self.0.get(number as usize).cloned()
    }
}
