//! Messages under way where time does not matter: any of them may be next.

use soloist_algorithms::{Channels, NodeId};

/// A message under way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Letter<M> {
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
    letters: Vec<Letter<M>>,
}

impl<M> Default for Network<M> {
    fn default() -> Self {
        Network {
            letters: Vec::new(),
        }
    }
}

impl<M: Ord> Network<M> {
    /// Nothing under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message sets out.
    pub fn send(&mut self, channels: Channels, letter: Letter<M>) {
        assert_ne!(letter.from, letter.to, "a node does not send to itself");
        let place = match channels {
            Channels::Fifo => self
                .letters
                .partition_point(|l| (l.from, l.to) <= (letter.from, letter.to)),
            Channels::Any => self.letters.partition_point(|l| *l <= letter),
        };
        self.letters.insert(place, letter);
    }

    /// All messages under way, in canonical order.
    pub fn letters(&self) -> &[Letter<M>] {
        &self.letters
    }

    /// The places of the messages that may arrive next; of equal ones, the first.
    pub fn deliverable(&self, channels: Channels) -> impl Iterator<Item = usize> + '_ {
        (0..self.letters.len()).filter(move |&place| {
            let Some(before) = place.checked_sub(1).map(|p| &self.letters[p]) else {
                return true;
            };
            let letter = &self.letters[place];
            match channels {
                Channels::Fifo => (before.from, before.to) != (letter.from, letter.to),
                Channels::Any => before != letter,
            }
        })
    }

    /// A message arrives.
    pub fn take(&mut self, place: usize) -> Letter<M> {
        self.letters.remove(place)
    }
}
