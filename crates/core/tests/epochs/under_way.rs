//! Messages in flight in a small cluster, in order per channel; and values that copies of a state
//! share.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Command, Member};
use xxhash_rust::xxh3::Xxh3;

/// A value that most copies of a state share, with its fingerprint.
#[derive(Clone)]
pub struct Shared<T> {
    value: Arc<T>,
    fingerprint: u128,
}

impl<T: Clone + Hash> Shared<T> {
    pub fn new(value: T) -> Self {
        Shared {
            fingerprint: fingerprint(&value),
            value: Arc::new(value),
        }
    }

    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(Arc::make_mut(&mut self.value));
        self.fingerprint = fingerprint(&*self.value);
        result
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fingerprint.hash(hasher);
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

pub fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = Xxh3::new();
    value.hash(&mut hasher);
    hasher.digest128()
}

/// A channel. Nodes are identified by number, leaders by term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    Link { from: usize, to: usize },
    ToLeader { from: usize, term: u64 },
    ToMember { term: u64, to: usize },
    Commit { term: u64 },
    Confirm { term: u64 },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Parcel {
    Frame {
        from: Member,
        to: Member,
        bytes: Vec<u8>,
    },
    ToKeepers(Member, ToKeepers),
    ToMember(Member, ToMember),
    Commit(Command),
    Applied,
    Confirm,
    Confirmed,
}

/// Each channel is FIFO.
#[derive(Clone, Default, Hash)]
pub struct UnderWay(BTreeMap<Way, VecDeque<Shared<Parcel>>>);

impl UnderWay {
    /// Enqueues a message. All but the links' frames are repeated until they have taken effect, so
    /// a second copy in a row makes no difference and is dropped.
    pub fn put(&mut self, way: Way, parcel: Parcel) {
        let parcels = self.0.entry(way).or_default();
        let parcel = Shared::new(parcel);
        let is_said = parcels.back().is_some_and(|last| **last == *parcel);
        if !is_said || matches!(*parcel, Parcel::Frame { .. }) {
            parcels.push_back(parcel);
        }
    }

    pub fn take(&mut self, way: Way) -> Option<Shared<Parcel>> {
        let parcels = self.0.get_mut(&way)?;
        let parcel = parcels.pop_front();
        if parcels.is_empty() {
            self.0.remove(&way);
        }
        parcel
    }

    pub fn drop_all(&mut self, way: Way) {
        self.0.remove(&way);
    }

    /// The channels with messages in flight.
    pub fn ways(&self) -> impl Iterator<Item = Way> {
        self.0.keys().copied()
    }
}
