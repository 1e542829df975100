//! An epoch to install when all pieces of what its members hold have arrived.

use super::super::pieces::Incoming;
use super::super::roster::Change;
use crate::Tuning;
use crate::locks::{HeldLock, Inside};
use crate::rows::Rows;

/// An epoch whose pieces are arriving.
#[derive(Clone, Hash)]
pub(super) struct Arriving {
    change: Change,
    pieces: Incoming<Rows<HeldLock>>,
}

/// Pieces that are not sorted, or that have a holder that is not a member.
pub(super) struct Unsound;

impl Arriving {
    /// An epoch with this many pieces, or `None` if that is too many.
    pub(super) fn new(change: Change, pieces: u32) -> Option<Self> {
        Some(Arriving {
            change,
            pieces: Incoming::new(pieces)?,
        })
    }

    /// Returns whether these are the pieces of this epoch.
    pub(super) fn is_of(&self, change: &Change, pieces: u32) -> bool {
        self.change == *change && self.pieces.pieces() == pieces
    }

    pub(super) fn epoch(&self) -> u64 {
        self.change.epoch
    }

    /// Takes a piece.
    pub(super) fn add(&mut self, number: u32, piece: Rows<HeldLock>) -> Result<(), Unsound> {
        let members = self.change.members.len();
        if piece.iter().any(|held| held.holder.index() >= members) {
            return Err(Unsound);
        }
        self.pieces.add(number, piece);
        Ok(())
    }

    pub(super) fn is_complete(&self, tuning: Tuning) -> bool {
        self.pieces.is_complete(tuning)
    }

    /// See [`Incoming::ask`].
    pub(super) fn ask(&mut self, arrived: u32) -> Vec<u32> {
        self.pieces.ask(arrived)
    }

    /// The epoch, and which member is inside which lock when it begins.
    pub(super) fn finish(mut self) -> Result<(Change, Inside), Unsound> {
        let pieces = self.pieces.take().collect();
        let inside = Inside::new(self.change.key, pieces).ok_or(Unsound)?;
        Ok((self.change, inside))
    }
}
