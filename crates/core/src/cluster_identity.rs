//! The cluster that a node belongs to, and its generation.
//!
//! A certificate identifies a node. It does not tell which cluster the node belongs to now. Every
//! store, every node's memory and every hello carry a [`ClusterIdentity`] for that.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Identifies a cluster: 128 random bits, created at bootstrap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        ClusterId(bytes)
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

/// A text that is not a cluster id.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid cluster id {0:?}: expected 32 hexadecimal digits")]
pub struct ClusterIdError(String);

impl FromStr for ClusterId {
    type Err = ClusterIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ClusterIdError(text.chars().take(64).collect());
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return Err(error());
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| error())?;
        Ok(ClusterId(number.to_be_bytes()))
    }
}

/// A generation of a cluster. `soloist cluster recover` begins the next one.
///
/// The number is the top part of every epoch of the generation, so fences of different generations
/// never overlap. The nonce distinguishes two generations that were begun with the same number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// 0 for a cluster that was never recovered.
    pub number: u8,
    /// Random.
    pub nonce: u64,
}

impl Generation {
    /// Bits of an epoch that count within a generation.
    pub const EPOCH_BITS: u32 = 24;

    /// The generation of a new cluster. The nonce must be random.
    pub fn first(nonce: u64) -> Self {
        Generation { number: 0, nonce }
    }

    /// The generation after this one, or `None` after the last. The nonce must be random.
    pub fn next(self, nonce: u64) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Generation { number, nonce })
    }

    /// The epoch number before the first epoch of this generation.
    pub fn first_epoch(self) -> u64 {
        u64::from(self.number) << Self::EPOCH_BITS
    }

    /// The last epoch number of this generation.
    pub fn last_epoch(self) -> u64 {
        self.first_epoch() | ((1 << Self::EPOCH_BITS) - 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.number, self.nonce)
    }
}

/// A cluster in one of its generations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ClusterIdentity {
    /// Which cluster.
    pub id: ClusterId,
    /// Which generation of it.
    pub generation: Generation,
}

impl ClusterIdentity {
    /// A new cluster. Its id and the nonce of its first generation must be random.
    pub fn new(id: ClusterId, nonce: u64) -> Self {
        let generation = Generation::first(nonce);
        ClusterIdentity { id, generation }
    }

    /// Whether `self` is a later generation of the same cluster than `other`.
    pub fn succeeds(&self, other: &ClusterIdentity) -> bool {
        self.id == other.id && self.generation.number > other.generation.number
    }
}

impl fmt::Display for ClusterIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generation {}", self.id, self.generation)
    }
}

/// What a node knows of the cluster that it took part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// The cluster and its generation.
    pub cluster: ClusterIdentity,
    /// The highest epoch that the node took part in, 0 before the first.
    pub epoch: u64,
}

/// Why a cluster is not the one that this node belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignCluster {
    /// It is another cluster.
    #[error(
        "it is cluster {found}, but this node belongs to cluster {mine}; to join the other one, \
         stop this node and delete its data folder"
    )]
    Cluster {
        /// The cluster of this node.
        mine: ClusterId,
        /// The other one.
        found: ClusterId,
    },
    /// It is an earlier generation of this node's cluster, or a rival one with the same number.
    #[error(
        "it is generation {found} of this cluster, but this node was a member in generation \
         {mine}: the cluster was recovered since, and the keepers of generation {found} must be \
         stopped"
    )]
    Generation {
        /// The generation that this node took part in.
        mine: Generation,
        /// The other one.
        found: Generation,
    },
    /// It has forgotten epochs that this node took part in.
    #[error(
        "it is in epoch {found}, but this node was a member in epoch {mine}: the keepers have \
         lost data, perhaps because a store was restored from a copy"
    )]
    Epoch {
        /// The highest epoch that this node took part in.
        mine: u64,
        /// The epoch that the cluster is in.
        found: u64,
    },
}

impl Remembered {
    /// Checks that a node that remembers this may take part in a cluster that is in this epoch.
    pub fn admits(&self, cluster: &ClusterIdentity, epoch: u64) -> Result<(), ForeignCluster> {
        let (mine, found) = (self.cluster, *cluster);
        if mine.id != found.id {
            let (mine, found) = (mine.id, found.id);
            return Err(ForeignCluster::Cluster { mine, found });
        }
        if found.succeeds(&mine) {
            return Ok(());
        }
        if found != mine {
            let (mine, found) = (mine.generation, found.generation);
            return Err(ForeignCluster::Generation { mine, found });
        }
        if epoch < self.epoch {
            Err(ForeignCluster::Epoch {
                mine: self.epoch,
                found: epoch,
            })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_ids_are_written_and_read_as_text() {
        let id = ClusterId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        let text = "000102030405060708090a0b0c0d0eff";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        for bad in ["", "0", "+00102030405060708090a0b0c0d0eff", &text[1..]] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn epochs_of_different_generations_never_overlap() {
        let first = Generation::first(1);
        let second = first.next(2).unwrap();
        assert!(first.last_epoch() < second.first_epoch());
        let last = Generation {
            number: u8::MAX,
            nonce: 1,
        };
        assert_eq!(last.next(3), None);
        assert_eq!(last.last_epoch(), u64::from(u32::MAX));
    }
}
