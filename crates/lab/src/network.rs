//! Messages under way where time does not matter: any of them may be next.

use soloist_algorithms::{Channels, NodeId};

/// A message under way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Envelope<M> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What is under way.
    pub message: M,
}

/// All messages under way, as one flat list in a canonical order: sorted by channel, and within a
/// channel in the order sent (where order is kept) or by content (where it is not). So equal
/// situations compare equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Network<M> {
    envelopes: Vec<Envelope<M>>,
}

impl<M> Default for Network<M> {
    fn default() -> Self {
        Network {
            envelopes: Vec::new(),
        }
    }
}

impl<M: Ord> Network<M> {
    /// Nothing under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message sets out.
    pub fn send(&mut self, channels: Channels, envelope: Envelope<M>) {
        assert_ne!(envelope.from, envelope.to, "a node does not send to itself");
        let place = match channels {
            Channels::Fifo => self
                .envelopes
                .partition_point(|l| (l.from, l.to) <= (envelope.from, envelope.to)),
            Channels::Any => self.envelopes.partition_point(|l| *l <= envelope),
        };
        self.envelopes.insert(place, envelope);
    }

    /// All messages under way, in canonical order.
    pub fn envelopes(&self) -> &[Envelope<M>] {
        &self.envelopes
    }

    /// The places of the messages that may arrive next; of equal ones, the first.
    pub fn deliverable(&self, channels: Channels) -> impl Iterator<Item = usize> + '_ {
        (0..self.envelopes.len()).filter(move |&place| {
            let Some(before) = place.checked_sub(1).map(|p| &self.envelopes[p]) else {
                return true;
            };
            let envelope = &self.envelopes[place];
            match channels {
                Channels::Fifo => (before.from, before.to) != (envelope.from, envelope.to),
                Channels::Any => before != envelope,
            }
        })
    }

    /// A message arrives.
    pub fn take(&mut self, place: usize) -> Envelope<M> {
        self.envelopes.remove(place)
    }
}
