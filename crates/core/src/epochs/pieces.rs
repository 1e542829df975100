//! Long lists in pieces: a member's report, and what an epoch starts with.
//!
//! The receiver asks for a few pieces at a time. So the sender never sends more than the receiver
//! can take, and renewals go through between pieces.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::roster::HeldLock;
use crate::limits::{HOLD_BYTES, Limits};
use crate::mutant::Mutant;
use soloist_api::LockName;

/// Maximum size of a piece, unless a single lock is larger.
const PIECE_BYTES: usize = 512 << 10;

/// Number of pieces in flight at a time.
const WINDOW: usize = 4;

/// Maximum size of everything that is held in a cluster, in reports or in the roster. Quotas keep
/// it [below that](Limits::shared_by).
pub const HOLDS_BYTES_MAX: usize = 9 * Limits::NAME_BYTES_MOST;

/// Maximum number of pieces of a list.
const PIECES_MAX: u32 = (HOLDS_BYTES_MAX / (PIECE_BYTES / 2)) as u32;

#[cfg(feature = "mutants")]
static PIECE_BYTES_SET: std::sync::atomic::AtomicUsize =
    std::sync::atomic::AtomicUsize::new(PIECE_BYTES);

/// Sets the size of pieces for the whole process, so that tests with few locks have many pieces.
#[cfg(feature = "mutants")]
pub fn set_piece_bytes(bytes: Option<usize>) {
    let bytes = bytes.unwrap_or(PIECE_BYTES);
    PIECE_BYTES_SET.store(bytes, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "mutants")]
pub(super) fn piece_bytes() -> usize {
    PIECE_BYTES_SET.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(not(feature = "mutants"))]
pub(super) const fn piece_bytes() -> usize {
    PIECE_BYTES
}

/// Some of the locks that are held when an epoch begins, encoded. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Piece(Arc<[u8]>);

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece({} bytes)", self.0.len())
    }
}

impl Piece {
    /// Encodes all of these in pieces, in order.
    pub fn pack(holds: &[HeldLock]) -> Vec<Piece> {
        let sizes = holds.iter().map(|held| held.lock.as_str().len());
        let ranges = ranges(sizes);
        let pieces = ranges.into_iter().map(|range| {
            let bytes = postcard::to_allocvec(&holds[range]);
            Piece(bytes.expect("locks can be written").into())
        });
        pieces.collect()
    }

    /// Decodes the piece, or returns `None` if the bytes are invalid.
    pub fn unpack(&self) -> Option<Vec<HeldLock>> {
        match postcard::take_from_bytes(&self.0) {
            Ok((holds, [])) => Some(holds),
            _ => None,
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Maximum number of pieces for this many names with this many bytes in total; at least one.
pub(super) fn pieces_max(names: usize, bytes: usize) -> u32 {
    // Each piece may fall short of the limit by one name.
    let least = piece_bytes().saturating_sub(LockName::LEN_MAX + HOLD_BYTES);
    let pieces = (1 + bytes / least.max(1)).min(names).max(1);
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

/// Number of bytes that these names take.
pub(super) fn bytes_of(names: &[LockName]) -> usize {
    let sizes = names.iter().map(|name| name.as_str().len() + HOLD_BYTES);
    sizes.sum()
}

/// Ranges of consecutive names that fit into one piece, given the length of each name.
fn ranges(sizes: impl Iterator<Item = usize>) -> Vec<std::ops::Range<usize>> {
    let limit = piece_bytes();
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    let mut filled = 0;
    for (place, size) in sizes.enumerate() {
        filled += size + HOLD_BYTES;
        match ranges.last_mut() {
            Some(last) if filled <= limit => last.end = place + 1,
            _ => {
                ranges.push(place..place + 1);
                filled = size + HOLD_BYTES;
            }
        }
    }
    ranges
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
    pub fn new(pieces: u32) -> Option<Self> {
        (pieces <= PIECES_MAX).then(|| Incoming {
            pieces,
            have: BTreeMap::new(),
            asked: 0,
        })
    }

    /// Number of pieces of the whole list.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Adds a piece. Returns whether it was missing.
    pub fn add(&mut self, number: u32, piece: T) -> bool {
        let is_missing = number < self.pieces && !self.have.contains_key(&number);
        if is_missing {
            self.have.insert(number, piece);
        }
        is_missing
    }

    pub fn is_complete(&self) -> bool {
        let missing = self.pieces as usize - self.have.len();
        missing == 0 || missing == 1 && Mutant::PieceForgotten.planted()
    }

    /// Which pieces to ask for after this one has arrived. The first piece is sent without a
    /// request; when it arrives, earlier requests may have been lost.
    pub fn ask(&mut self, arrived: u32) -> Vec<u32> {
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
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.have).into_values()
    }
}

impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Bytes)
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Piece;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Piece, E> {
        Ok(Piece(bytes.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Piece, A::Error> {
        let mut all = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            all.push(byte);
        }
        Ok(Piece(all.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(number: u32, length: usize) -> Vec<HeldLock> {
        let held = |holder| HeldLock {
            lock: LockName::new(&format!("{holder:0>length$}")).unwrap(),
            holder,
        };
        (0..number).map(held).collect()
    }

    #[test]
    fn pieces_have_all_locks_and_no_more_bytes_than_allowed() {
        for (number, length, pieces) in [(0, 1, 0), (1, 256, 1), (1000, 9, 1), (10_000, 256, 6)] {
            let holds = holds(number, length);
            let packed = Piece::pack(&holds);
            assert_eq!(packed.len(), pieces);
            assert!(packed.iter().all(|piece| piece.bytes() <= PIECE_BYTES));
            let unpacked = packed.iter().flat_map(|piece| piece.unpack().unwrap());
            assert_eq!(unpacked.collect::<Vec<_>>(), holds);
            let bytes = number as usize * (length + HOLD_BYTES);
            let most = pieces_max(number as usize, bytes) as usize;
            assert!((pieces..=pieces + 1).contains(&most) && most > 0, "{most}");
        }
    }

    #[test]
    fn a_piece_is_written_as_its_bytes() {
        let piece = Piece::pack(&holds(3, 10)).remove(0);
        let bytes = postcard::to_allocvec(&piece).unwrap();
        assert_eq!(bytes.len(), piece.bytes() + 1);
        assert_eq!(postcard::from_bytes::<Piece>(&bytes).unwrap(), piece);
        assert_eq!(Piece([7, 1][..].into()).unpack(), None);
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
            assert!(list.add(number, piece) && !list.is_complete());
        }
        assert_eq!(list.ask(2), [7]);
        assert!(list.add(7, 'h') && list.is_complete());
        assert_eq!(list.ask(7), [0; 0]);
        assert_eq!(list.take().collect::<String>(), "abcdefgh");
        assert_eq!(Incoming::<char>::new(PIECES_MAX + 1), None);
    }
}
