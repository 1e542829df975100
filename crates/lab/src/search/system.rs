//! A cluster as a transition system of packed states. When a node requests, which message arrives
//! next, when a node leaves and, if allowed, when nodes crash or are forgotten are all free
//! choices.

use soloist_algorithms::{Channels, NodeId, Phase};

use super::Limits;
use super::interner::{Cause, Full, Interner, NodeEvent};
use super::packed::{History, NODES, PackedCluster, PackedEnvelope, PackedNode};
use super::plan::Plan;
use crate::network;
use crate::world::Fault;

/// A step from one state to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The node requests.
    Request(NodeId),
    /// The node leaves.
    Release(NodeId),
    /// The message at this position among those in flight arrives.
    Deliver(usize),
    /// The message at this position among those in flight is lost: its receiver is down.
    Lose(usize),
    /// The node crashes, loses its state, and recovers as this incarnation.
    Crash(NodeId, u8),
    /// The crashed node restarts.
    Restart(NodeId),
    /// All messages sent to the node before it was advised have arrived.
    Settled(NodeId),
    /// The node, which is quiescent, is forgotten and re-created.
    Forget(NodeId),
    /// The same, and its clock advances by 1.
    ForgetAndJump(NodeId),
    /// No message is in flight and all nodes are idle: all nodes are forgotten together and
    /// re-created, and the clock of at most one of them advances by 1.
    ForgetTogether(Option<NodeId>),
}

/// An action that weak fairness requires: if it stays enabled, it eventually happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    Leave(NodeId),
    /// The node requests, because others wait for its next request.
    Request(NodeId),
    /// The oldest message of this channel arrives.
    ArriveInOrder(u32),
    /// This message arrives.
    Arrive(u32),
    Recover(NodeId),
}

/// Why a step was not taken.
pub(crate) enum Halt {
    /// The consequence of this cause has to be computed first.
    Unknown(Cause),
    Broken(Fault),
}

/// The entry on a step, if any, and what was known at that time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub node: Option<NodeId>,
    /// The node was inside already.
    pub twice: bool,
    /// The node knew the highest fence.
    pub knew: bool,
    /// The interned number of the request id that entered before it.
    pub last: u32,
}

/// The transition rules of a search.
pub(crate) struct System {
    pub limits: Limits,
    pub nodes: usize,
    /// Index of the first envelope's word in a state.
    pub envelopes: usize,
    /// Whether fences are checked. They are not with crashes: a crash also loses a node's knowledge
    /// of fences, and restoring it is not the algorithm's task.
    pub fences: bool,
    /// Number of tokens: one, or zero if this is not a token algorithm.
    pub tokens: usize,
    /// Whether nodes count the tokens that they receive, and counts are reduced: see
    /// [`failures`](super::failures).
    pub counts: bool,
}

impl System {
    /// Returns the system, its first state, and the entry that starting a node caused, if any.
    pub(super) fn new(
        plan: &Plan,
        interner: &mut Interner,
    ) -> Result<(Self, Vec<u32>, Entry), Full> {
        let nodes = plan.requests.len();
        let limits = plan.limits;
        let mut system = System {
            limits,
            nodes,
            envelopes: NODES + nodes,
            fences: limits.keep_history && limits.crashes.most == 0,
            tokens: 0,
            counts: false,
        };
        let mut state = vec![0];
        for (node, &left) in NodeId::all(nodes).zip(&plan.requests) {
            let knows = system.fences && plan.start.inside.is_none_or(|inside| inside == node);
            let word = PackedNode::new(interner.first_local(node)?, left).with_knows(knows);
            state.push(word.0);
        }
        let mut entry = Entry::default();
        for node in NodeId::all(nodes) {
            let cause = system.cause(&state, node, NodeEvent::Start);
            interner.learn(cause)?;
            let started = system.carry_out(interner, cause, &mut state);
            let started = started.unwrap_or_else(|_| unreachable!("starting refuses nothing"));
            if started.node.is_some() {
                entry = started;
            }
        }
        system.tokens = system.tokens(interner, &state);
        // With a few crashes, counters stay as small as the number of requests.
        let is_reduced = limits.crashes.most == 0 || limits.crashes.are_endless();
        system.counts = is_reduced
            && NodeId::all(nodes).any(|subject| {
                let mut words = system.words(&state);
                words.any(|(_, word)| interner.counter(word.local(), subject).is_some())
            });
        Ok((system, state, entry))
    }

    pub(super) fn word(&self, state: &[u32], node: NodeId) -> PackedNode {
        PackedNode(state[NODES + node.index()])
    }

    pub(super) fn words<'s>(
        &self,
        state: &'s [u32],
    ) -> impl Iterator<Item = (NodeId, PackedNode)> + 's {
        let words = state[NODES..self.envelopes].iter().map(|&w| PackedNode(w));
        NodeId::all(self.nodes).zip(words)
    }

    pub(super) fn envelopes<'s>(
        &self,
        state: &'s [u32],
    ) -> impl Iterator<Item = PackedEnvelope> + 's {
        state[self.envelopes..]
            .iter()
            .map(|&word| PackedEnvelope(word))
    }

    /// The nodes and the messages in flight of a state.
    pub(super) fn cluster<'s>(&self, state: &'s [u32]) -> PackedCluster<'s> {
        PackedCluster {
            nodes: &state[NODES..self.envelopes],
            envelopes: &state[self.envelopes..],
        }
    }

    /// Number of tokens, at nodes and in flight.
    pub(super) fn tokens(&self, interner: &Interner, state: &[u32]) -> usize {
        let here = self.words(state);
        let here = here.filter(|(_, word)| interner.facts(word.local()).has_token);
        let under_way = self.envelopes(state);
        let under_way = under_way.filter(|envelope| interner.message(envelope.message()).is_token);
        here.count() + under_way.count()
    }

    /// Returns whether the node waits to enter, or to recover.
    pub(super) fn waits(&self, interner: &Interner, state: &[u32], node: NodeId) -> bool {
        let facts = interner.facts(self.word(state, node).local());
        facts.phase == Phase::Waiting || facts.is_recovering
    }

    /// Lists all actions enabled in a state, in a fixed order.
    pub(super) fn actions(&self, interner: &Interner, state: &[u32], actions: &mut Vec<Action>) {
        actions.clear();
        for (node, word) in self.words(state) {
            match interner.facts(word.local()).phase {
                Phase::Idle if word.left() > 0 => actions.push(Action::Request(node)),
                Phase::Inside => actions.push(Action::Release(node)),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        if self.limits.forgets {
            self.forgettable(interner, state, actions);
        }
        let envelopes = &state[self.envelopes..];
        for (place, envelope) in envelopes.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| &envelopes[place]);
            if network::is_deliverable(self.limits.channels, before, envelope, channel) {
                actions.push(Action::Deliver(place));
            }
        }
        if self.limits.crashes.most > 0 {
            self.failures(interner, state, actions);
        }
    }

    /// Adds the actions that forget nodes.
    fn forgettable(&self, interner: &Interner, state: &[u32], actions: &mut Vec<Action>) {
        let may_jump = History(state[0]).jumps() < Limits::JUMPS_MAX;
        for (node, word) in self.words(state) {
            let facts = interner.facts(word.local());
            if facts.may_be_forgotten {
                actions.push(Action::Forget(node));
            }
            if facts.may_jump && may_jump {
                actions.push(Action::ForgetAndJump(node));
            }
        }
        let facts = |(_, word): (NodeId, PackedNode)| interner.facts(word.local());
        let mut all = self.words(state).map(facts);
        if state.len() > self.envelopes || !all.all(|facts| facts.may_be_forgotten_with_all) {
            return;
        }
        if self.words(state).map(facts).any(|facts| facts.differs[0]) {
            actions.push(Action::ForgetTogether(None));
        }
        let jumps = self
            .words(state)
            .filter(|&word| facts(word).differs[1] && may_jump);
        actions.extend(jumps.map(|(node, _)| Action::ForgetTogether(Some(node))));
    }

    /// Re-creates all nodes.
    fn forget_together(
        &self,
        interner: &Interner,
        jumps: Option<NodeId>,
        state: &mut [u32],
    ) -> Result<Entry, Halt> {
        // The order of entries starts over.
        let mut history = History(state[0]).with_last(0);
        if jumps.is_some() {
            history = history.with_jump();
        }
        state[0] = history.0;
        for node in NodeId::all(self.nodes) {
            let jump = u8::from(jumps == Some(node));
            let cause = self.cause(state, node, NodeEvent::Forget(jump));
            let consequence = interner.consequence(&cause).ok_or(Halt::Unknown(cause))?;
            let word = self.word(state, node).with_local(consequence.local);
            // The message that makes nodes forget carries the highest fence.
            state[NODES + node.index()] = word.with_knows(self.fences).0;
        }
        Ok(Entry::default())
    }

    /// The duty that an action fulfils, if any.
    pub(super) fn duty(&self, interner: &Interner, state: &[u32], action: Action) -> Option<Duty> {
        match action {
            Action::Request(node) if self.must_request(interner, self.word(state, node)) => {
                Some(Duty::Request(node))
            }
            Action::Request(_)
            | Action::Crash(..)
            | Action::Forget(_)
            | Action::ForgetAndJump(_)
            | Action::ForgetTogether(_) => None,
            Action::Release(node) => Some(Duty::Leave(node)),
            Action::Restart(node) | Action::Settled(node) => Some(Duty::Recover(node)),
            Action::Deliver(_) | Action::Lose(_) => {
                let envelope = self.envelope(state, action)?;
                Some(match self.limits.channels {
                    Channels::Fifo => Duty::ArriveInOrder(envelope.channel()),
                    Channels::Any => Duty::Arrive(envelope.bare()),
                })
            }
        }
    }

    /// What a node that leaves is told: whether it will request again.
    pub(super) fn foreseen(&self, word: PackedNode) -> Option<bool> {
        self.limits.known_requests.then(|| word.left() > 0)
    }

    /// Whether a node has to request: others wait for it, and it was told that it would.
    pub(super) fn must_request(&self, interner: &Interner, word: PackedNode) -> bool {
        let owes_request = interner.facts(word.local()).owes_request;
        self.limits.known_requests && owes_request && word.left() > 0
    }

    /// The envelope that an action delivers or loses, if any.
    pub(super) fn envelope(&self, state: &[u32], action: Action) -> Option<PackedEnvelope> {
        match action {
            Action::Deliver(place) | Action::Lose(place) => {
                Some(PackedEnvelope(state[self.envelopes + place]))
            }
            _ => None,
        }
    }

    pub(super) fn cause(&self, state: &[u32], node: NodeId, event: NodeEvent) -> Cause {
        Cause {
            node,
            local: self.word(state, node).local(),
            event,
        }
    }

    /// Puts the successor of state `before` under `action` into `after`.
    pub(super) fn step(
        &self,
        interner: &Interner,
        before: &[u32],
        action: Action,
        after: &mut Vec<u32>,
    ) -> Result<Entry, Halt> {
        after.clear();
        after.extend_from_slice(before);
        let cause = match action {
            Action::Request(node) => {
                after[NODES + node.index()] = self.word(before, node).asked().0;
                self.cause(before, node, NodeEvent::Request)
            }
            Action::Release(node) => {
                let again = self.foreseen(self.word(before, node));
                self.cause(before, node, NodeEvent::Release(again))
            }
            Action::Deliver(place) => {
                let envelope = PackedEnvelope(after.remove(self.envelopes + place));
                let to = envelope.to();
                let word = self.word(before, to);
                after[NODES + to.index()] = word.with_knows(word.knows() || envelope.knows()).0;
                let receive = NodeEvent::Receive(envelope.from(), envelope.message());
                self.cause(before, to, receive)
            }
            Action::Lose(place) => {
                after.remove(self.envelopes + place);
                return Ok(Entry::default());
            }
            Action::Crash(node, incarnation) => {
                if !self.limits.crashes.are_endless() {
                    after[0] = History(before[0]).with_crash().0;
                }
                let word = self.word(before, node).with_restarted(false);
                after[NODES + node.index()] = word.0;
                self.cause(before, node, NodeEvent::Crash(incarnation))
            }
            Action::Restart(node) => {
                after[NODES + node.index()] = self.word(before, node).with_restarted(true).0;
                self.cause(before, node, NodeEvent::Start)
            }
            Action::Settled(node) => self.cause(before, node, NodeEvent::Settled),
            // The node keeps its knowledge of fences: one floor covers everything a node forgets.
            Action::Forget(node) => self.cause(before, node, NodeEvent::Forget(0)),
            Action::ForgetAndJump(node) => {
                after[0] = History(before[0]).with_jump().0;
                self.cause(before, node, NodeEvent::Forget(1))
            }
            Action::ForgetTogether(jumps) => return self.forget_together(interner, jumps, after),
        };
        let entry = self.carry_out(interner, cause, after)?;
        if self.counts {
            self.reduce_counters(interner, after)?;
        }
        Ok(entry)
    }

    /// Applies a cause to its node and puts the messages it sends in flight.
    fn carry_out(
        &self,
        interner: &Interner,
        cause: Cause,
        state: &mut Vec<u32>,
    ) -> Result<Entry, Halt> {
        let consequence = interner.consequence(&cause).ok_or(Halt::Unknown(cause))?;
        let node = cause.node;
        if let Some(violation) = consequence.refused.clone() {
            // If neighbours lost their states together, their messages may make no sense.
            if self.limits.crashes.neighbours_too {
                return Ok(Entry::default());
            }
            return Err(Halt::Broken(Fault::Refused { node, violation }));
        }
        let facts = interner.facts(consequence.local);
        let word = self.word(state, node);
        let mut word = word
            .with_local(consequence.local)
            .with_restarted(word.has_restarted() && facts.is_recovering);
        let mut entry = Entry::default();
        if consequence.entered.is_some() {
            let history = History(state[0]);
            entry = Entry {
                node: Some(node),
                twice: interner.facts(cause.local).phase == Phase::Inside,
                knew: !self.fences || word.knows(),
                last: history.last(),
            };
            if self.limits.keep_history {
                state[0] = history.with_last(facts.request).0;
            }
            // Its fence is now the highest, and no other node knows it.
            state[NODES..].iter_mut().for_each(|word| *word &= !1);
            word = word.with_knows(self.fences);
        }
        state[NODES + node.index()] = word.0;
        for (place, &(to, message)) in consequence.sends.iter().enumerate() {
            let before_entry = consequence.entered.is_some_and(|entered| place < entered);
            let envelope = PackedEnvelope::new(node, to, message, word.knows() && !before_entry);
            self.post(interner, envelope, state);
        }
        if self.fences {
            self.forget_needless(state);
        }
        Ok(entry)
    }

    /// Clears the fence bit of each envelope whose receiver already knows the highest fence. The
    /// bit makes no difference there, because both lose it on the same entry, and without it there
    /// are fewer states. The envelopes stay sorted, because equal ones change alike.
    fn forget_needless(&self, state: &mut [u32]) {
        let (nodes, envelopes) = state.split_at_mut(self.envelopes);
        for word in envelopes {
            let to = PackedEnvelope(*word).to();
            if PackedNode(nodes[NODES + to.index()]).knows() {
                *word &= !1;
            }
        }
    }

    /// Inserts an envelope at its position: in FIFO channels in the order sent, otherwise sorted.
    fn post(&self, interner: &Interner, envelope: PackedEnvelope, state: &mut Vec<u32>) {
        if self.limits.crashes.most > 0 && interner.message(envelope.message()).is_advice {
            let before = state[self.envelopes..].iter_mut();
            for word in before.filter(|word| PackedEnvelope(**word).channel() == envelope.channel())
            {
                *word = PackedEnvelope(*word).before_advice().0;
            }
            if self.limits.channels == Channels::Any {
                state[self.envelopes..].sort_unstable();
            }
        }
        let envelopes = &state[self.envelopes..];
        let place = network::place_of(self.limits.channels, envelopes, &envelope.0, channel);
        state.insert(self.envelopes + place, envelope.0);
    }
}

/// The channel of a packed envelope.
fn channel(word: &u32) -> u32 {
    PackedEnvelope(*word).channel()
}
