//! An epoch to install when all pieces of what its members hold have arrived.

use soloist_algorithms::NodeId;

use super::super::pieces::{Incoming, Piece};
use super::super::roster::Change;
use crate::locks::Inside;

/// Maximum number of locks to reserve room for in advance.
const LOCKS_EXPECTED_MAX: usize = 1 << 20;

/// An epoch whose pieces are arriving. Each piece is decoded on arrival, so that little is left to
/// do after the last one.
#[derive(Clone, Hash)]
pub(super) struct Arriving {
    change: Change,
    pieces: Incoming<()>,
    inside: Inside,
}

/// A piece that cannot be decoded, or that names a holder that is not a member.
pub(super) struct Unreadable;

impl Arriving {
    /// An epoch with this many pieces, or `None` if that is too many.
    pub fn new(change: Change, pieces: u32) -> Option<Self> {
        Some(Arriving {
            change,
            pieces: Incoming::new(pieces)?,
            inside: Inside::default(),
        })
    }

    /// Returns whether these are the pieces of this epoch.
    pub fn is_of(&self, change: &Change, pieces: u32) -> bool {
        self.change == *change && self.pieces.pieces() == pieces
    }

    pub fn epoch(&self) -> u64 {
        self.change.epoch
    }

    /// Takes a piece.
    pub fn add(&mut self, number: u32, piece: &Piece) -> Result<(), Unreadable> {
        if !self.pieces.add(number, ()) {
            return Ok(());
        }
        let holds = piece.unpack().ok_or(Unreadable)?;
        let members = self.change.members.len();
        if holds.iter().any(|held| held.holder as usize >= members) {
            return Err(Unreadable);
        }
        if number == 0 {
            let expected = holds.len().saturating_mul(self.pieces.pieces() as usize);
            self.inside.reserve(expected.min(LOCKS_EXPECTED_MAX));
        }
        let place = |holder: u32| NodeId::from_index(holder as usize);
        let holds = holds.into_iter();
        self.inside
            .extend(holds.map(|held| (held.lock, place(held.holder))));
        Ok(())
    }

    pub fn is_complete(&self) -> bool {
        self.pieces.is_complete()
    }

    /// See [`Incoming::ask`].
    pub fn ask(&mut self, arrived: u32) -> Vec<u32> {
        self.pieces.ask(arrived)
    }

    /// The epoch, and which member is inside which lock when it begins.
    pub fn finish(self) -> (Change, Inside) {
        (self.change, self.inside)
    }
}
