//! An epoch that begins when all pieces of what its members hold have come.

use soloist_algorithms::NodeId;

use super::super::pieces::{Incoming, Piece};
use super::super::roster::Change;
use crate::locks::Inside;

/// Room for more locks than this is made only when they are there.
const LOCKS_EXPECTED_MAX: usize = 1 << 20;

/// An epoch whose pieces arrive. Each is read when it comes, so that little is left to do after the last one.
#[derive(Clone, Hash)]
pub(super) struct Arriving {
    change: Change,
    pieces: Incoming<()>,
    inside: Inside,
}

/// A piece that cannot be read, or that names a holder that is not a member.
pub(super) struct Unreadable;

impl Arriving {
    /// An epoch with this many pieces, if that is allowed.
    pub fn new(change: Change, pieces: u32) -> Option<Self> {
        Some(Arriving {
            change,
            pieces: Incoming::new(pieces)?,
            inside: Inside::default(),
        })
    }

    /// Whether these are the pieces of this epoch.
    pub fn is_of(&self, change: &Change, pieces: u32) -> bool {
        self.change == *change && self.pieces.pieces() == pieces
    }

    pub fn epoch(&self) -> u64 {
        self.change.epoch
    }

    /// A piece has come.
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

    /// The epoch, and who is inside which lock when it begins.
    pub fn finish(self) -> (Change, Inside) {
        (self.change, self.inside)
    }
}
