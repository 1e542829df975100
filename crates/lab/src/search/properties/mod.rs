//! What must hold in every state and on every step, one file per property. Whether a node may wait
//! forever is a separate question: see [starvation](super::starvation).

mod deadlock;
mod fences;
mod invariants;
mod mutual_exclusion;
mod order;
mod token;

use soloist_algorithms::NodeId;

use super::interner::{Facts, Interner};
use super::system::{Entry, System};
use crate::world::Fault;

/// A state as the properties see it, and the entry on the step that led to it.
pub(crate) struct View<'a> {
    pub system: &'a System,
    pub interner: &'a Interner,
    pub state: &'a [u32],
    pub entry: Entry,
}

impl View<'_> {
    /// Checks what must hold on every step.
    pub(super) fn judge_step(&self) -> Result<(), Fault> {
        let Some(newcomer) = self.entry.node else {
            return Ok(());
        };
        mutual_exclusion::judge(self, newcomer)?;
        order::judge(self, newcomer)?;
        fences::judge(self, newcomer)
    }

    /// Checks what must hold in every state.
    pub(super) fn judge_state(&self) -> Result<(), Fault> {
        token::judge(self)?;
        invariants::judge(self)?;
        deadlock::judge(self)
    }

    fn facts(&self) -> impl Iterator<Item = (NodeId, &Facts)> {
        let words = self.system.words(self.state);
        words.map(|(node, word)| (node, self.interner.facts(word.local())))
    }
}
