//! Lists of rows of a fixed size, encoded. A change of epoch carries many of them, so they are
//! neither decoded nor copied on the way.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name_hash::NameHash;

/// A value that always takes the same number of bytes.
pub trait Row: Copy {
    /// That number.
    const BYTES: usize;

    /// Appends the row to `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads a row from exactly this many bytes, which may be anything.
    fn read(bytes: &[u8]) -> Self;
}

impl Row for NameHash {
    const BYTES: usize = NameHash::BYTES;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        NameHash::from_bytes(bytes.try_into().expect("rows have a fixed size"))
    }
}

/// Some rows. Cheap to clone.
pub struct Rows<R> {
    bytes: Arc<[u8]>,
    row: PhantomData<R>,
}

impl<R: Row> Rows<R> {
    /// Encodes these rows.
    pub fn new(rows: &[R]) -> Self {
        let mut bytes = Vec::with_capacity(rows.len() * R::BYTES);
        for row in rows {
            row.write(&mut bytes);
        }
        Rows {
            bytes: bytes.into(),
            row: PhantomData,
        }
    }

    /// From bytes that may be anything. Returns `None` if they are not whole rows.
    fn from_bytes(bytes: Arc<[u8]>) -> Option<Self> {
        let is_whole = bytes.len().is_multiple_of(R::BYTES);
        is_whole.then_some(Rows {
            bytes,
            row: PhantomData,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len() / R::BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The row at this place.
    pub fn get(&self, place: usize) -> Option<R> {
        let begin = place.checked_mul(R::BYTES)?;
        let bytes = self.bytes.get(begin..begin.checked_add(R::BYTES)?)?;
        Some(R::read(bytes))
    }

    /// All rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = R> {
        self.bytes.chunks_exact(R::BYTES).map(R::read)
    }

    /// The place of the first row for which this is false. It must be true for all before that, and
    /// false for all after it.
    pub fn partition_point(&self, mut is_before: impl FnMut(R) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if self.get(middle).is_some_and(&mut is_before) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

impl<R> Clone for Rows<R> {
    fn clone(&self) -> Self {
        Rows {
            bytes: Arc::clone(&self.bytes),
            row: PhantomData,
        }
    }
}

impl<R> PartialEq for Rows<R> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<R> Eq for Rows<R> {}

impl<R> std::hash::Hash for Rows<R> {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.bytes.hash(hasher);
    }
}

impl<R: Row> fmt::Debug for Rows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.len())
    }
}

impl<R> Serialize for Rows<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de, R: Row> Deserialize<'de> for Rows<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = deserializer.deserialize_byte_buf(Bytes)?;
        Rows::from_bytes(bytes).ok_or_else(|| D::Error::custom("incomplete row"))
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Arc<[u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Arc<[u8]>, E> {
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(number: u8) -> Vec<NameHash> {
        let hash = |byte| NameHash::from_bytes([byte; 16]);
        (0..number).map(hash).collect()
    }

    #[test]
    fn rows_are_written_as_their_bytes() {
        let rows = Rows::new(&hashes(3));
        let bytes = postcard::to_allocvec(&rows).unwrap();
        assert_eq!(bytes, [&[48][..], &[0; 16], &[1; 16], &[2; 16]].concat());
        let read: Rows<NameHash> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read, rows);
        assert_eq!(read.iter().collect::<Vec<_>>(), hashes(3));
        assert_eq!((read.get(2), read.get(3)), (Some(hashes(3)[2]), None));
    }

    #[test]
    fn a_row_that_is_not_whole_is_refused() {
        let bytes = postcard::to_allocvec(&Rows::new(&hashes(2))).unwrap();
        for end in 0..bytes.len() {
            let mut cut = bytes[..end].to_vec();
            assert!(postcard::from_bytes::<Rows<NameHash>>(&cut).is_err());
            if let Some((length, content)) = cut.split_first_mut() {
                *length = content.len() as u8;
                let read = postcard::from_bytes::<Rows<NameHash>>(&cut);
                assert_eq!(read.is_ok(), (end - 1).is_multiple_of(16));
            }
        }
    }

    #[test]
    fn places_are_found_in_rows_that_are_sorted() {
        for number in 0..20 {
            let rows = Rows::new(&hashes(number));
            for sought in hashes(21) {
                let found = rows.partition_point(|row| row < sought);
                assert_eq!(found, rows.iter().filter(|row| *row < sought).count());
            }
        }
    }
}
