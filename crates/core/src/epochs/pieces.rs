//! Long lists in pieces: a member's report, and what an epoch starts with.
//!
//! The receiver asks for a few pieces at a time. So the sender never sends more than the receiver
//! can take, and renewals go through between pieces.

use std::collections::BTreeMap;

use crate::Tuning;
use crate::limits::Limits;
use crate::locks::HeldLock;
use crate::mutant::Mutant;
use crate::rows::{Row, Rows};

/// Maximum size of a piece.
const PIECE_BYTES: usize = 512 << 10;

/// Number of pieces in flight at a time.
const WINDOW: usize = 4;

/// Maximum number of pieces of a list.
const PIECES_MAX: u32 = (Limits::HOLDS_MAX * HeldLock::BYTES / PIECE_BYTES + 1) as u32;

/// Cuts a list into pieces.
pub fn cut<R: Row>(rows: &[R], tuning: Tuning) -> Vec<Rows<R>> {
    let most = (tuning.piece_bytes(PIECE_BYTES) / R::BYTES).max(1);
    rows.chunks(most).map(Rows::new).collect()
}

/// A list that arrives in pieces.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Incoming<T> {
    pieces: u32,
    have: BTreeMap<u32, T>,
    /// The last piece that was requested.
    asked: u32,
}

impl<T> Incoming<T> {
    /// A list of this many pieces, or `None` if that is too many.
    pub(super) fn new(pieces: u32) -> Option<Self> {
        (pieces <= PIECES_MAX).then(|| Incoming {
            pieces,
            have: BTreeMap::new(),
            asked: 0,
        })
    }

    /// Number of pieces of the whole list.
    pub(super) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Adds a piece. Returns whether it was missing.
    pub(super) fn add(&mut self, number: u32, piece: T) -> bool {
        let is_missing = number < self.pieces && !self.have.contains_key(&number);
        if is_missing {
            self.have.insert(number, piece);
        }
        is_missing
    }

    pub(super) fn is_complete(&self, tuning: Tuning) -> bool {
        let missing = self.pieces as usize - self.have.len();
        missing == 0 || missing == 1 && tuning.has(Mutant::PieceForgotten)
    }

    /// Which pieces to ask for after this one has arrived. The first piece is sent without a
    /// request; when it arrives, earlier requests may have been lost.
    pub(super) fn ask(&mut self, arrived: u32) -> Vec<u32> {
        let number = match arrived {
            0 => {
                self.asked = 0;
                WINDOW
            }
            _ => 1,
        };
        let rest = self.asked + 1..self.pieces;
        let missing = rest.filter(|number| !self.have.contains_key(number));
        let next: Vec<_> = missing.take(number).collect();
        self.asked = next.last().copied().unwrap_or(self.asked);
        next
    }

    /// Takes all pieces that have arrived, in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.have).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_hash::HashKey;
    use soloist_algorithms::NodeId;
    use soloist_api::LockName;

    #[test]
    fn pieces_have_all_rows_and_no_more_bytes_than_allowed() {
        let key = HashKey::from_bytes([7; 16]);
        for (number, pieces) in [(0, 0), (1, 1), (26_214, 1), (26_215, 2), (100_000, 4)] {
            let held = |number: u32| HeldLock {
                lock: key.hash(&LockName::new(&number.to_string()).unwrap()),
                holder: NodeId::new(number),
            };
            let held: Vec<_> = (0..number).map(held).collect();
            let cut = cut(&held, Tuning::default());
            assert_eq!(cut.len(), pieces);
            let bytes = |piece: &Rows<HeldLock>| piece.len() * HeldLock::BYTES;
            assert!(cut.iter().all(|piece| bytes(piece) <= PIECE_BYTES));
            let all = cut.iter().flat_map(|piece| piece.iter());
            assert_eq!(all.collect::<Vec<_>>(), held);
        }
    }

    #[test]
    fn a_few_pieces_are_asked_for_at_a_time_and_lost_ones_again() {
        let mut list = Incoming::new(8).unwrap();
        assert!(list.add(0, 'a'));
        assert_eq!(list.ask(0), [1, 2, 3, 4]);
        assert!(list.add(1, 'b') && !list.add(1, 'x') && !list.add(8, 'x'));
        assert_eq!(list.ask(1), [5]);
        assert!(list.add(3, 'd'));
        assert_eq!(list.ask(3), [6]);
        // Requests in flight were lost.
        assert_eq!(list.ask(0), [2, 4, 5, 6]);
        for (number, piece) in [(2, 'c'), (4, 'e'), (5, 'f'), (6, 'g')] {
            assert!(list.add(number, piece) && !list.is_complete(Tuning::default()));
        }
        assert_eq!(list.ask(2), [7]);
        assert!(list.add(7, 'h') && list.is_complete(Tuning::default()));
        assert_eq!(list.ask(7), [0; 0]);
        assert_eq!(list.take().collect::<String>(), "abcdefgh");
        assert_eq!(Incoming::<char>::new(PIECES_MAX + 1), None);
    }
}
