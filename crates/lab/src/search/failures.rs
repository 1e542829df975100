//! Crashes, losses, and what makes endless crashes a finite search.
//!
//! With endless crashes a node crashes any number of times, but never while it recovers: if no
//! recovery ever ended, no node would be served, whatever the rules are. Two things would still
//! grow without bound, and are reduced.
//!
//! **Incarnations.** A recovery ends when all neighbours have advised, so no RESTART and no ADVISE
//! of it is in flight when the node crashes next. All advice is therefore current, never outdated,
//! and an incarnation may be used again. Rules may depend on its remainder by the number of
//! neighbours, so each crash freely chooses an incarnation from 1 to N-1. (Advice that is outdated
//! because a node fails during its recovery is searched with a number of crashes.)
//!
//! **Counters** ([`Algorithm::counter`](soloist_algorithms::Algorithm::counter)). A recovering node
//! orders its neighbours by their counts of the tokens that it sent them. Only the order matters,
//! so the least count becomes 0, and a gap between two successive counts that is wider than
//! [`Crashes::gap_max`](super::Crashes::gap_max) is narrowed to that. Counts for a node that cannot
//! crash are never read, and become 0. While a node recovers, advice quotes counts, and nothing is
//! reduced; they do not change from the advice to the end of the recovery, since a recovering node
//! sends no token.
//!
//! Narrower gaps lose no endless wait of a neighbour that gets no token. Its count stands still,
//! and the counts of the neighbours that are served again and again grow. From some moment on these
//! are all above it, and they stay above it with narrower gaps as well. The reduction could hide a
//! wait that only *begins* after a wider gap. So the result should not change with the width, which
//! a test checks.

use soloist_algorithms::NodeId;

use super::interner::{Interner, NodeEvent};
use super::packed::{History, NODES, PackedEnvelope, PackedNode};
use super::system::{Action, Halt, System};

impl System {
    /// Adds the crashes, and the next steps of recovering nodes.
    pub(super) fn failures(&self, interner: &Interner, state: &[u32], actions: &mut Vec<Action>) {
        let is_down = |word: PackedNode| interner.facts(word.local()).is_recovering;
        for (node, word) in self.words(state) {
            let crashes = self.limits.crashes;
            if crashes.may_hit(node)
                && (crashes.neighbours_too || !self.neighbour_down(interner, state, node))
            {
                let so_far = History(state[0]).crashes();
                let incarnations = match crashes.are_endless() {
                    true if is_down(word) => 1..1,
                    true => 1..(self.nodes as u8).max(2),
                    false if so_far < crashes.most => so_far + 1..so_far + 2,
                    false => 1..1,
                };
                actions.extend(incarnations.map(|incarnation| Action::Crash(node, incarnation)));
            }
            if !is_down(word) {
                continue;
            }
            if word.has_restarted() {
                let mut envelopes = self.envelopes(state);
                if !envelopes.any(|l| l.to() == node && l.is_before_advice()) {
                    actions.push(Action::Settled(node));
                }
            } else if self.envelopes(state).all(|envelope| {
                envelope.from() != node && !(crashes.long_wait && envelope.to() == node)
            }) {
                actions.push(Action::Restart(node));
            }
        }
        if self.limits.crashes.loses_messages {
            self.losses(interner, state, actions);
        }
    }

    /// Returns whether another node is down that must not be down together with this one.
    pub(super) fn neighbour_down(&self, interner: &Interner, state: &[u32], node: NodeId) -> bool {
        let mut others = self.words(state);
        others.any(|(other, word)| {
            other != node
                && interner.facts(word.local()).is_recovering
                && !interner.may_be_down_together(other, node)
        })
    }

    /// Adds the losses of messages whose receiver is down.
    fn losses(&self, interner: &Interner, state: &[u32], actions: &mut Vec<Action>) {
        let is_lost = |action: &Action| {
            let to = self.envelope(state, *action).map(PackedEnvelope::to);
            let to = to.map(|to| self.word(state, to));
            to.is_some_and(|to| interner.facts(to.local()).is_recovering && !to.has_restarted())
        };
        for index in 0..actions.len() {
            if let Action::Deliver(place) = actions[index]
                && is_lost(&actions[index])
            {
                actions.push(Action::Lose(place));
            }
        }
    }

    /// Replaces counters by their differences.
    pub(super) fn reduce_counters(
        &self,
        interner: &Interner,
        state: &mut [u32],
    ) -> Result<(), Halt> {
        for subject in NodeId::all(self.nodes) {
            let word = self.word(state, subject);
            if interner.facts(word.local()).is_recovering {
                continue;
            }
            let gap_max = match self.limits.crashes.may_hit(subject) {
                true => u64::from(self.limits.crashes.gap_max),
                false => 0,
            };
            let counter = |node| {
                let count = interner.counter(self.word(state, node).local(), subject);
                count.map(|count| (count, node))
            };
            let mut counters: Vec<_> = NodeId::all(self.nodes).filter_map(counter).collect();
            counters.sort_unstable();
            let mut last = counters.first().map(|&(least, _)| (least, 0));
            for (count, node) in counters {
                let (below, reduced) = last.unwrap_or_default();
                let reduced = reduced + (count - below).min(gap_max);
                last = Some((count, reduced));
                if reduced != count {
                    let reduced = u8::try_from(reduced).expect("narrow gaps");
                    let event = NodeEvent::SetCounter(subject, reduced);
                    let cause = self.cause(state, node, event);
                    let consequence = interner.consequence(&cause).ok_or(Halt::Unknown(cause))?;
                    let word = self.word(state, node).with_local(consequence.local);
                    state[NODES + node.index()] = word.0;
                }
            }
        }
        Ok(())
    }
}
