//! Where an algorithm puts its effects.

use crate::NodeId;

/// What a transition does to the outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<M> {
    /// One message over one logical link.
    Send {
        /// The peer it goes to; never the sender itself.
        to: NodeId,
        /// What is sent.
        message: M,
    },
    /// The node is now inside its critical section.
    Enter,
}

/// The effects of one transition, in order. The caller owns it and uses it again and again, so
/// that a transition allocates nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbox<M> {
    effects: Vec<Effect<M>>,
}

impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            effects: Vec::new(),
        }
    }
}

impl<M> Outbox<M> {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a message to a peer.
    pub fn send(&mut self, to: NodeId, message: M) {
        self.effects.push(Effect::Send { to, message });
    }

    /// The node enters its critical section.
    pub fn enter(&mut self) {
        self.effects.push(Effect::Enter);
    }

    /// The effects so far.
    pub fn effects(&self) -> &[Effect<M>] {
        &self.effects
    }

    /// Takes the effects out, in order, and leaves the outbox empty.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect<M>> + '_ {
        self.effects.drain(..)
    }

    /// The messages among the effects.
    pub fn sends(&self) -> impl Iterator<Item = (NodeId, &M)> + '_ {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Send { to, message } => Some((*to, message)),
            Effect::Enter => None,
        })
    }

    /// Whether the node enters.
    pub fn entered(&self) -> bool {
        self.effects.iter().any(|e| matches!(e, Effect::Enter))
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Forgets the effects, keeps the memory.
    pub fn clear(&mut self) {
        self.effects.clear();
    }
}
