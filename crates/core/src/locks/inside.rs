//! Which node was inside which lock when an epoch began.

use soloist_algorithms::NodeId;
use soloist_api::LockName;

use crate::name_hash::{HashKey, NameHash};
use crate::rows::{Row, Rows};

/// A lock that was held when its epoch began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HeldLock {
    /// The hash of its name, with the key of the epoch.
    pub lock: NameHash,
    /// Its holder's number in the epoch.
    pub holder: NodeId,
}

impl Row for HeldLock {
    const BYTES: usize = NameHash::BYTES + 4;

    fn write(&self, bytes: &mut Vec<u8>) {
        self.lock.write(bytes);
        bytes.extend_from_slice(&(self.holder.index() as u32).to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let (lock, holder) = bytes.split_at(NameHash::BYTES);
        let holder = holder.try_into().expect("rows have a fixed size");
        HeldLock {
            lock: NameHash::read(lock),
            holder: NodeId::new(u32::from_be_bytes(holder)),
        }
    }
}

/// Which node was inside which lock when an epoch began.
///
/// It knows the hashes of names. If two names have the same hash, a node that was inside one lock
/// counts as inside the other as well: it has to leave that one when it hears of it.
#[derive(Clone, Hash, Debug, Default)]
pub struct Inside {
    key: HashKey,
    /// Sorted by hash, also from piece to piece. Each has at least one row.
    pieces: Vec<Rows<HeldLock>>,
}

impl Inside {
    /// From pieces that are sorted and not empty, with the key of their hashes. Returns `None` if
    /// they are not, or if a lock occurs twice.
    pub fn new(key: HashKey, pieces: Vec<Rows<HeldLock>>) -> Option<Self> {
        let mut last = None;
        let is_sorted = pieces.iter().all(|piece| {
            let is_sorted = piece.iter().all(|held| {
                let before = last.replace(held.lock);
                before < Some(held.lock)
            });
            is_sorted && !piece.is_empty()
        });
        is_sorted.then_some(Inside { key, pieces })
    }

    /// From names, with a key to hash them with. A lock that occurs twice has the last holder.
    pub fn of<'a>(key: HashKey, holds: impl IntoIterator<Item = (&'a LockName, NodeId)>) -> Self {
        let hashed = holds.into_iter().map(|(name, node)| (key.hash(name), node));
        let sorted: std::collections::BTreeMap<_, _> = hashed.collect();
        let rows = sorted.into_iter();
        let rows: Vec<_> = rows
            .map(|(lock, holder)| HeldLock { lock, holder })
            .collect();
        let mut pieces = vec![Rows::new(&rows)];
        pieces.retain(|piece| !piece.is_empty());
        Inside { key, pieces }
    }

    /// The node that was inside this lock, or inside one whose name has the same hash.
    pub(super) fn get(&self, name: &LockName) -> Option<NodeId> {
        if self.pieces.is_empty() {
            return None;
        }
        let hash = self.key.hash(name);
        let starts = |piece: &Rows<HeldLock>| piece.get(0).is_some_and(|held| held.lock <= hash);
        let after = self.pieces.partition_point(starts);
        let piece = &self.pieces[after.checked_sub(1)?];
        let found = piece.get(piece.partition_point(|held| held.lock < hash))?;
        (found.lock == hash).then_some(found.holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32) -> LockName {
        LockName::new(&number.to_string()).unwrap()
    }

    const KEY: [u8; 16] = [7; 16];

    /// The holders of this many locks, in pieces of at most this many rows.
    fn inside(locks: u32, rows: usize) -> Inside {
        let key = HashKey::from_bytes(KEY);
        let held = |number| HeldLock {
            lock: key.hash(&name(number)),
            holder: NodeId::new(number),
        };
        let mut held: Vec<_> = (0..locks).map(held).collect();
        held.sort_unstable();
        let pieces = held.chunks(rows).map(Rows::new).collect();
        Inside::new(key, pieces).unwrap()
    }

    #[test]
    fn holders_are_found_in_any_number_of_pieces() {
        for (locks, rows) in [(0, 1), (1, 1), (7, 1), (7, 2), (7, 7), (1000, 33)] {
            let inside = inside(locks, rows);
            for number in 0..locks + 100 {
                let holder = (number < locks).then(|| NodeId::new(number));
                assert_eq!(inside.get(&name(number)), holder, "{locks} {rows}");
            }
        }
    }

    #[test]
    fn pieces_that_are_not_sorted_or_empty_are_refused() {
        let whole = inside(4, 1).pieces;
        let with = |change: fn(&mut Vec<Rows<HeldLock>>)| {
            let mut pieces = whole.clone();
            change(&mut pieces);
            Inside::new(HashKey::from_bytes(KEY), pieces)
        };
        assert!(with(|_| {}).is_some());
        assert!(with(|pieces| pieces.swap(0, 1)).is_none());
        assert!(with(|pieces| pieces[1] = pieces[0].clone()).is_none());
        assert!(with(|pieces| pieces.push(Rows::new(&[]))).is_none());
        assert!(with(|pieces| pieces[1] = Rows::new(&[])).is_none());
    }

    #[test]
    fn a_row_is_the_hash_and_the_holder() {
        let held = HeldLock {
            lock: NameHash::from_bytes([3; 16]),
            holder: NodeId::new(0x0102),
        };
        let mut bytes = Vec::new();
        held.write(&mut bytes);
        assert_eq!(bytes, [&[3; 16][..], &[0, 0, 1, 2]].concat());
        assert_eq!(bytes.len(), HeldLock::BYTES);
        assert_eq!(HeldLock::read(&bytes), held);
    }
}
