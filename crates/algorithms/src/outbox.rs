//! Collects the effects of a transition.

use crate::NodeId;

/// An externally visible effect of a transition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<M> {
    /// Sends one message over one logical link.
    Send {
        /// The receiver; never the sender itself.
        to: NodeId,
        /// The message.
        message: M,
    },
    /// The node is now inside its critical section.
    Enter,
}

/// The effects of one transition, in order. The caller owns the outbox and reuses it, so that
/// transitions do not allocate.
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

    /// Records that the node enters its critical section.
    pub fn enter(&mut self) {
        self.effects.push(Effect::Enter);
    }

    /// The effects so far.
    pub fn effects(&self) -> &[Effect<M>] {
        &self.effects
    }

    /// Removes and returns the effects, in order.
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

    /// Whether the node enters its critical section.
    pub fn entered(&self) -> bool {
        self.effects.iter().any(|e| matches!(e, Effect::Enter))
    }

    /// Whether there are no effects.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Removes the effects but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.effects.clear();
    }
}
