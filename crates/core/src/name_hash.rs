//! Keyed hashes of lock names: what a change of epoch carries instead of the names.
//!
//! A name has up to 256 bytes, its hash 16. The hash is SipHash-2-4 with 128 bits of output. Each
//! epoch has a key of its own, which its members know and clients do not. So a client that chooses
//! lock names cannot find two with the same hash, and if two have the same hash by chance, they no
//! longer do in the next epoch. [`epochs`](crate::epochs) explains what such a collision costs.

use std::fmt;

use serde::{Deserialize, Serialize};
use siphasher::sip128::SipHasher24;
use soloist_api::LockName;

/// The hash of a lock's name, with the key of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameHash(u128);

impl NameHash {
    pub(crate) const BYTES: usize = 16;

    /// The hash with these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        NameHash(u128::from_be_bytes(bytes))
    }

    /// Its bytes, in the order of the hashes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }
}

/// The key with which names are hashed in one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct HashKey {
    bytes: [u8; 16],
    /// Only the last bits of a hash count, so that a test has collisions.
    #[cfg(feature = "mutants")]
    #[serde(skip)]
    bits: Option<u32>,
}

impl HashKey {
    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        HashKey {
            bytes,
            #[cfg(feature = "mutants")]
            bits: None,
        }
    }

    /// Hashes a lock's name.
    pub fn hash(&self, name: &LockName) -> NameHash {
        self.shortened(self.hash_bytes(name.as_str().as_bytes()))
    }

    fn hash_bytes(&self, bytes: &[u8]) -> u128 {
        let hash = SipHasher24::new_with_key(&self.bytes).hash(bytes);
        u128::from_le_bytes(hash.as_bytes())
    }

    #[cfg(feature = "mutants")]
    fn shortened(&self, hash: u128) -> NameHash {
        NameHash(self.bits.map_or(hash, |bits| hash & ((1 << bits) - 1)))
    }

    #[cfg(not(feature = "mutants"))]
    fn shortened(&self, hash: u128) -> NameHash {
        NameHash(hash)
    }
}

/// Does not show the key, which clients must not learn.
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey")
    }
}

/// The keys of all epochs that one leader begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HashKeys(HashKey);

impl HashKeys {
    /// Derives the keys from a secret: bytes that cannot be guessed.
    pub fn new(secret: [u8; 16]) -> Self {
        HashKeys(HashKey::from_bytes(secret))
    }

    /// As [`new`](HashKeys::new), but of each hash only this many bits count: a test has
    /// collisions.
    #[cfg(feature = "mutants")]
    pub fn weak(secret: [u8; 16], bits: u32) -> Self {
        let bits = Some(bits);
        HashKeys(HashKey {
            bits,
            ..HashKey::from_bytes(secret)
        })
    }

    /// The key of an epoch.
    pub fn of(&self, epoch: u64) -> HashKey {
        let mut key = self.0;
        key.bytes = self.0.hash_bytes(&epoch.to_le_bytes()).to_le_bytes();
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> LockName {
        LockName::new(name).unwrap()
    }

    /// The vectors of the reference implementation: the key 00 01 .. 0f, and the messages that have
    /// the first bytes of 00 01 02 ...
    #[test]
    fn the_hash_is_siphash_with_128_bits() {
        let key = HashKey::from_bytes(std::array::from_fn(|index| index as u8));
        for (length, hash) in [
            (0, "a3817f04ba25a8e66df67214c7550293"),
            (1, "da87c1d86b99af44347659119b22fc45"),
            (2, "8177228da4a45dc7fca38bdef60affe4"),
        ] {
            let message: Vec<u8> = (0..length).collect();
            let bytes = key.hash_bytes(&message).to_le_bytes();
            let shown: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(shown, hash);
        }
    }

    #[test]
    fn every_epoch_hashes_differently_and_all_members_alike() {
        let keys = HashKeys::new([7; 16]);
        let (a, b) = (name("a"), name("b"));
        assert_eq!(keys.of(1).hash(&a), HashKeys::new([7; 16]).of(1).hash(&a));
        assert_ne!(keys.of(1).hash(&a), keys.of(1).hash(&b));
        assert_ne!(keys.of(1).hash(&a), keys.of(2).hash(&a));
        assert_ne!(keys.of(1).hash(&a), HashKeys::new([8; 16]).of(1).hash(&a));
    }

    #[test]
    fn hashes_sort_as_their_bytes_do() {
        let key = HashKey::from_bytes([7; 16]);
        let mut hashes: Vec<_> = (0..100).map(|n| key.hash(&name(&n.to_string()))).collect();
        hashes.sort_unstable();
        assert!(hashes.is_sorted_by_key(|hash| hash.to_bytes()));
        for hash in hashes {
            assert_eq!(NameHash::from_bytes(hash.to_bytes()), hash);
        }
    }

    #[test]
    fn a_key_is_written_as_its_bytes_and_not_shown() {
        let key = HashKey::from_bytes([7; 16]);
        assert_eq!(postcard::to_allocvec(&key).unwrap(), [7; 16]);
        assert!(!format!("{key:?}").contains('7'));
    }
}
