//! What a member holds, in pieces that are made when the leader asks for them.

use super::super::pieces::{piece_bytes, pieces_max};
use crate::locks::Table;
use crate::mutant::Mutant;
use soloist_api::LockName;

/// A report. Its table is frozen, so no hold begins. A hold that ends before its piece is made need
/// not be reported.
#[derive(Clone, Hash)]
pub(super) struct Report {
    pieces: u32,
    made: Vec<Vec<LockName>>,
}

impl Report {
    pub fn new(table: &Table) -> Self {
        let pieces = match Mutant::HoldsNotReported.planted() {
            true => 1,
            false => pieces_max(table.holds(), table.held_bytes_max()),
        };
        Report {
            pieces,
            made: Vec::new(),
        }
    }

    /// Number of pieces. The last ones may be empty.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// The piece of this number, or `None` if there are fewer. It stays the same when requested
    /// again.
    pub fn piece(&mut self, number: u32, table: &Table) -> Option<&[LockName]> {
        if number >= self.pieces {
            return None;
        }
        while self.made.len() <= number as usize {
            let piece = self.next(table);
            self.made.push(piece);
        }
        self.made.get(number as usize).map(Vec::as_slice)
    }

    fn next(&self, table: &Table) -> Vec<LockName> {
        let last = self.made.last().map(|piece| piece.last());
        if last == Some(None) || Mutant::HoldsNotReported.planted() {
            return Vec::new();
        }
        let is_last = self.made.len() + 1 == self.pieces as usize;
        let bytes = if is_last { usize::MAX } else { piece_bytes() };
        table.held_after(last.flatten(), bytes)
    }
}
