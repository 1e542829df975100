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

impl<M> Envelope<M> {
    /// Sender and receiver.
    fn channel(&self) -> (NodeId, NodeId) {
        (self.from, self.to)
    }
}

/// Where to insert an envelope into a list in canonical order: after those of its channel and of
/// earlier ones (if channels are FIFO), or by content (if not).
pub(crate) fn place_of<E: Ord, C: Ord>(
    channels: Channels,
    envelopes: &[E],
    new: &E,
    channel: impl Fn(&E) -> C,
) -> usize {
    match channels {
        Channels::Fifo => envelopes.partition_point(|e| channel(e) <= channel(new)),
        Channels::Any => envelopes.partition_point(|e| e <= new),
    }
}

/// Returns whether an envelope may arrive next, given the one before it in canonical order: the
/// first of each channel (if channels are FIFO), or the first of equal ones (if not).
pub(crate) fn is_deliverable<E: Eq, C: Eq>(
    channels: Channels,
    before: Option<&E>,
    envelope: &E,
    channel: impl Fn(&E) -> C,
) -> bool {
    before.is_none_or(|before| match channels {
        Channels::Fifo => channel(before) != channel(envelope),
        Channels::Any => before != envelope,
    })
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
        let place = place_of(channels, &self.envelopes, &envelope, Envelope::channel);
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
            let before = place.checked_sub(1).map(|place| &self.envelopes[place]);
            is_deliverable(channels, before, &self.envelopes[place], Envelope::channel)
        })
    }

    /// Removes and returns the message at this position, which arrives.
    pub fn take(&mut self, place: usize) -> Envelope<M> {
        self.envelopes.remove(place)
    }
}
