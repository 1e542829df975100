//! Messages in flight in models without time: any deliverable message may arrive next.

use soloist_algorithms::{Channels, NodeId};

/// A message in flight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Envelope<M> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The content.
    pub message: M,
}

/// All messages in flight, as one flat list in a canonical order: sorted by channel and, within a
/// channel, in the order sent (if channels are FIFO) or by content (if not). Equivalent networks
/// therefore compare equal.
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
    /// A network with no message in flight.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a message in flight.
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

    /// All messages in flight, in canonical order.
    pub fn envelopes(&self) -> &[Envelope<M>] {
        &self.envelopes
    }

    /// The positions of the messages that may arrive next. Of several equal messages, only the
    /// first.
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

    /// Removes and returns the message at this position, which arrives.
    pub fn take(&mut self, place: usize) -> Envelope<M> {
        self.envelopes.remove(place)
    }
}
