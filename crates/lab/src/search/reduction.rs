//! Partial-order reduction: postpones deliveries that commute with everything else the receiver can
//! do, so that the search visits fewer states.
//!
//! A delivery is *inert* if the receiver only records the message, and no action that is enabled at
//! the receiver now observes the record. An inert delivery may just as well happen later, so it is
//! postponed until it is no longer inert. In Suzuki and Kasami's algorithm every REQUEST to a node
//! without the token is inert: its time of arrival makes no difference until the token is there.
//!
//! Messages whose delivery is inert are called *notes* here. In whatever order some of a node's
//! notes arrive, the node ends in the same state, which violates no invariant; it sends nothing and
//! does not enter; and every other event enabled at the node has the same effects before and after
//! each note. Nothing is assumed about the algorithm: the search finds all of this out by trial.
//!
//! **Why nothing is missed.** Let s be a state that this search visits, and take a run of the full
//! system from s to a state f. If the run consists only of notes of s, then f differs from s only
//! in recorded notes: the same nodes are inside, the same nodes wait, the tokens are the same, and
//! each node's state has been checked. Otherwise take the first step of the run that is not a note
//! of s. It was already enabled in s, because notes send nothing, and it commutes with all notes
//! before it. So the run that takes it first also leads to f; this search follows it, and the
//! remaining run is shorter. In a state in which every message in flight is a note and no node is
//! inside, no message is postponed. So every state without successors is visited, and with it every
//! deadlock. What nodes know of fences only grows as messages arrive: if fences increase in this
//! search, they increase in every run.

use soloist_algorithms::{Channels, NodeId, Phase};

use super::ENDLESS;
use super::interner::{Cause, Consequence, Full, Interner, NodeEvent};
use super::packed::{PackedEnvelope, PackedNode};
use super::plan::Plan;
use super::system::{Action, System};

/// Returns whether the proof above covers such a search: channels are not FIFO, nodes neither crash
/// nor are forgotten, and all runs end.
pub(super) fn applies(plan: &Plan) -> bool {
    plan.limits.channels == Channels::Any
        && plan.limits.crashes.most == 0
        && !plan.limits.forgets
        && !plan.requests.contains(&ENDLESS)
        && !plan.limits.endless_runs
}

/// Removes the actions that may be postponed, or returns the prospect whose [`notes`] have to be
/// computed first.
pub(super) fn reduce(
    system: &System,
    interner: &Interner,
    state: &[u32],
    actions: &mut Vec<Action>,
) -> Result<(), Prospect> {
    let mut may_wait = vec![false; state.len() - system.envelopes];
    for (node, word) in system.words(state) {
        let prospect = Prospect::of(system, interner, state, node, word);
        let notes = interner.notes(&prospect);
        let Some(notes) = notes else {
            return Err(prospect);
        };
        let mut notes = notes.iter();
        for (envelope, may_wait) in system.envelopes(state).zip(&mut may_wait) {
            if envelope.to() == node {
                *may_wait = *notes.next().expect("one per message");
            }
        }
    }
    let waits = |action: &Action| match action {
        Action::Deliver(place) => may_wait[*place],
        _ => false,
    };
    let goes_on = |action: &Action| !waits(action) && !matches!(action, Action::Request(_));
    if actions.iter().any(goes_on) {
        actions.retain(|action| !waits(action));
    }
    Ok(())
}

/// All events that are enabled at a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Prospect {
    node: NodeId,
    local: u32,
    /// The messages that can arrive.
    envelopes: Vec<NodeEvent>,
    /// Its request or release, if enabled.
    own: Option<NodeEvent>,
}

impl Prospect {
    fn of(
        system: &System,
        interner: &Interner,
        state: &[u32],
        node: NodeId,
        word: PackedNode,
    ) -> Self {
        let envelopes = system
            .envelopes(state)
            .filter(|envelope| envelope.to() == node);
        let receive =
            |envelope: PackedEnvelope| NodeEvent::Receive(envelope.from(), envelope.message());
        Prospect {
            node,
            local: word.local(),
            envelopes: envelopes.map(receive).collect(),
            own: match interner.facts(word.local()).phase {
                Phase::Idle if word.left() > 0 => Some(NodeEvent::Request),
                Phase::Inside => Some(NodeEvent::Release(system.foreseen(word))),
                Phase::Idle | Phase::Waiting => None,
            },
        }
    }
}

/// Computes which of the deliverable messages are notes.
pub(super) fn notes(interner: &mut Interner, prospect: &Prospect) -> Result<Vec<bool>, Full> {
    let node = prospect.node;
    let mut trial = Trial { node, interner };
    let mut notes = vec![false; prospect.envelopes.len()];
    for (place, &envelope) in prospect.envelopes.iter().enumerate() {
        let others = prospect.envelopes.iter().enumerate();
        let others = others.filter(|(other, _)| *other != place);
        let mut others = others.map(|(_, other)| other).chain(&prospect.own);
        notes[place] = trial.noted(prospect.local, envelope)?.is_some()
            && others.try_fold(true, |so_far, &other| {
                Ok(so_far && trial.commute(prospect.local, envelope, other)?)
            })?;
    }
    // Notes beyond the limit count as other events.
    let surplus = notes.iter_mut().filter(|is_note| **is_note).skip(NOTES_MAX);
    surplus.for_each(|is_note| *is_note = false);
    if !trial.all_orders_agree(prospect, &notes)? {
        notes.fill(false);
    }
    Ok(notes)
}

/// Maximum number of notes per node, because all their orders are tried.
const NOTES_MAX: usize = 8;

/// Tries events on a node.
struct Trial<'p> {
    node: NodeId,
    interner: &'p mut Interner,
}

impl Trial<'_> {
    fn happens(&mut self, local: u32, event: NodeEvent) -> Result<&Consequence, Full> {
        let cause = Cause {
            node: self.node,
            local,
            event,
        };
        self.interner.learn(cause)?;
        Ok(self.interner.consequence(&cause).expect("it was learned"))
    }

    /// Returns the node's state after a message, or `None` if the node does more than record it.
    fn noted(&mut self, local: u32, envelope: NodeEvent) -> Result<Option<u32>, Full> {
        let consequence = self.happens(local, envelope)?;
        let is_silent = consequence.refused.is_none()
            && consequence.sends.is_empty()
            && consequence.entered.is_none();
        let after = consequence.local;
        let (old, new) = (self.interner.facts(local), self.interner.facts(after));
        let is_same =
            new.broken.is_none() && (old.phase, old.has_token) == (new.phase, new.has_token);
        Ok((is_silent && is_same).then_some(after))
    }

    /// Returns whether a note and another event have the same effects in either order.
    fn commute(&mut self, local: u32, note: NodeEvent, other: NodeEvent) -> Result<bool, Full> {
        let Some(noted) = self.noted(local, note)? else {
            return Ok(false);
        };
        let first = self.happens(local, other)?;
        let is_refused = first.refused.is_some();
        let (then, sends, entered) = (first.local, first.sends.clone(), first.entered);
        let second = self.happens(noted, other)?;
        let does_the_same = !is_refused
            && second.refused.is_none()
            && (&second.sends, second.entered) == (&sends, entered);
        let both = second.local;
        Ok(does_the_same && self.noted(then, note)? == Some(both))
    }

    /// Returns whether the next note commutes with all other events, in whatever order the notes
    /// before it arrive.
    fn all_orders_agree(&mut self, prospect: &Prospect, notes: &[bool]) -> Result<bool, Full> {
        let mut reached = vec![(vec![false; notes.len()], prospect.local)];
        let mut next = 0;
        while next < reached.len() {
            let (arrived, local) = reached[next].clone();
            next += 1;
            let under_way: Vec<_> = (0..notes.len()).filter(|&place| !arrived[place]).collect();
            for &note in under_way.iter().filter(|&&place| notes[place]) {
                let envelope = prospect.envelopes[note];
                let others = under_way.iter().filter(|&&other| other != note);
                let others = others.map(|&other| &prospect.envelopes[other]);
                for &other in others.chain(&prospect.own) {
                    if !self.commute(local, envelope, other)? {
                        return Ok(false);
                    }
                }
                let Some(after) = self.noted(local, envelope)? else {
                    return Ok(false);
                };
                let mut arrived = arrived.clone();
                arrived[note] = true;
                if reached.iter().all(|(seen, _)| *seen != arrived) {
                    reached.push((arrived, after));
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use soloist_algorithms::Algorithm;
    use soloist_algorithms::carvalho_roucairol::CarvalhoRoucairol;
    use soloist_algorithms::maekawa::Maekawa;
    use soloist_algorithms::naimi_trehel::NaimiTrehel;
    use soloist_algorithms::raymond::Raymond;
    use soloist_algorithms::ricart_agrawala::RicartAgrawala;
    use soloist_algorithms::suzuki_kasami::SuzukiKasami;

    use super::super::system::Halt;
    use super::super::{Bounds, Limits};
    use super::*;

    struct Explorer {
        system: System,
        interner: Interner,
        first: Vec<u32>,
    }

    impl Explorer {
        fn new<A: Algorithm>(requests: &[u8]) -> Self {
            let bounds = Bounds {
                limits: Limits {
                    keep_history: false,
                    endless_runs: false,
                    ..Limits::new(Channels::Any)
                },
                ..Bounds::of::<A>(requests)
            };
            let plan = Plan::of::<A>(&bounds);
            assert!(applies(&plan));
            let mut interner = plan.interner();
            let (system, first, _) = System::new(&plan, &mut interner).unwrap();
            Explorer {
                system,
                interner,
                first,
            }
        }

        fn step(&mut self, state: &[u32], action: Action) -> Vec<u32> {
            let mut after = Vec::new();
            loop {
                match self.system.step(&self.interner, state, action, &mut after) {
                    Ok(_) => return after,
                    Err(Halt::Unknown(cause)) => self.interner.learn(cause).unwrap(),
                    Err(Halt::Broken(fault)) => panic!("{fault}"),
                }
            }
        }

        /// All enabled actions, and those that are not postponed.
        fn actions(&mut self, state: &[u32]) -> [Vec<Action>; 2] {
            let mut all = Vec::new();
            self.system.actions(&self.interner, state, &mut all);
            let mut now = all.clone();
            while let Err(prospect) = reduce(&self.system, &self.interner, state, &mut now) {
                self.interner.find_notes(prospect).unwrap();
            }
            [all, now]
        }

        fn reach(
            &mut self,
            mut seen: HashSet<Vec<u32>>,
            choose: impl Fn([Vec<Action>; 2]) -> Vec<Action>,
        ) -> HashSet<Vec<u32>> {
            let mut open: Vec<_> = seen.iter().cloned().collect();
            while let Some(state) = open.pop() {
                for action in choose(self.actions(&state)) {
                    let after = self.step(&state, action);
                    if seen.insert(after.clone()) {
                        open.push(after);
                    }
                }
            }
            seen
        }
    }

    /// Explores with and without reduction, delivers the postponed notes afterwards, and compares
    /// the states. Returns the number of states visited each way.
    fn misses_nothing<A: Algorithm>(requests: &[u8]) -> [usize; 2] {
        let mut explorer = Explorer::new::<A>(requests);
        let first = HashSet::from([explorer.first.clone()]);
        let all = explorer.reach(first.clone(), |[all, _]| all);
        let fewer = explorer.reach(first, |[_, now]| now);
        let counts = [all.len(), fewer.len()];
        let noted = explorer.reach(fewer, |[mut all, now]| {
            all.retain(|action| !now.contains(action));
            all
        });
        assert!(noted == all, "{}: the states differ", A::INFO.name);
        counts
    }

    #[test]
    fn delayed_deliveries_miss_no_state() {
        let [all, fewer] = misses_nothing::<SuzukiKasami>(&[2, 2, 2]);
        assert!(
            fewer * 3 < all,
            "{fewer} of {all}: no delivery was postponed"
        );
        misses_nothing::<SuzukiKasami>(&[1, 1, 1, 1]);
        misses_nothing::<SuzukiKasami>(&[0, 2, 1, 0]);
        misses_nothing::<RicartAgrawala>(&[2, 2, 1]);
        misses_nothing::<CarvalhoRoucairol>(&[2, 1, 1]);
        misses_nothing::<NaimiTrehel>(&[2, 2, 2]);
        misses_nothing::<Raymond>(&[2, 2, 2]);
        misses_nothing::<Maekawa>(&[1, 1, 1]);
    }
}
