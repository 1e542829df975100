//! Messages in flight in a small cluster, in order per channel.

use std::collections::{BTreeMap, VecDeque};

use soloist_core::Term;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Command, Member};

use crate::breadth_first::Shared;

/// A channel. Nodes are identified by number, leaders by term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// From member to member.
    Link {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// From a node to a leader.
    ToLeader {
        /// The sender.
        from: usize,
        /// The receiver.
        term: Term,
    },
    /// From a leader to a node.
    ToMember {
        /// The sender.
        term: Term,
        /// The receiver.
        to: usize,
    },
    /// Between a leader and the keepers, about its proposal.
    Commit {
        /// The leader.
        term: Term,
    },
    /// Between a leader and the keepers, about its confirmation.
    Confirm {
        /// The leader.
        term: Term,
    },
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Parcel {
    /// A message of a lock.
    Frame {
        /// The sender.
        from: Member,
        /// The receiver.
        to: Member,
        /// The message.
        bytes: Vec<u8>,
    },
    /// From this node to its leader.
    ToKeepers(Member, ToKeepers),
    /// From a leader to this node.
    ToMember(Member, ToMember),
    /// A proposal.
    Commit(Command),
    /// The proposal was applied.
    Applied,
    /// A leader asks for its confirmation.
    Confirm,
    /// A majority confirmed it.
    Confirmed,
}

/// All messages in flight. Each channel is FIFO.
#[derive(Clone, Default, Hash, Debug)]
pub struct UnderWay(BTreeMap<Way, VecDeque<Shared<Parcel>>>);

impl UnderWay {
    /// Enqueues a message. All but the links' frames are repeated until they have taken effect, so
    /// a second copy in a row makes no difference and is dropped.
    pub fn put(&mut self, way: Way, parcel: Parcel) {
        let parcels = self.0.entry(way).or_default();
        let parcel = Shared::new(parcel);
        let is_repeated = parcels.back().is_some_and(|last| **last == *parcel);
        if !is_repeated || matches!(*parcel, Parcel::Frame { .. }) {
            parcels.push_back(parcel);
        }
    }

    /// Takes the next message of a channel.
    pub fn take(&mut self, way: Way) -> Option<Shared<Parcel>> {
        let parcels = self.0.get_mut(&way)?;
        let parcel = parcels.pop_front();
        if parcels.is_empty() {
            self.0.remove(&way);
        }
        parcel
    }

    /// Keeps only some messages of a channel.
    pub fn retain(&mut self, way: Way, keep: impl Fn(&Parcel) -> bool) {
        if let Some(parcels) = self.0.get_mut(&way) {
            parcels.retain(|parcel| keep(parcel));
            if parcels.is_empty() {
                self.0.remove(&way);
            }
        }
    }

    /// Drops all messages of a channel.
    pub fn drop_all(&mut self, way: Way) {
        self.0.remove(&way);
    }

    /// The first channel with a message in flight.
    pub fn first(&self) -> Option<Way> {
        self.0.keys().next().copied()
    }

    /// The channels with messages in flight.
    pub fn ways(&self) -> impl Iterator<Item = Way> {
        self.0.keys().copied()
    }
}
