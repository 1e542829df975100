//! The only part of a search that knows the algorithm's type: it applies events to node states.
//!
//! Everything else in a search works on numbers, so it is compiled once and not once per algorithm.

use std::any::Any;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use soloist_algorithms::{Algorithm, Config, Effect, Message, NodeId, Outbox, Phase, Snapshot};

use super::interner::{Cause, Consequence, Facts, Full, MessageFacts, NodeEvent, Tables};
use super::packed::{LOCALS_MAX, MESSAGES_MAX, PackedCluster, PackedEnvelope, PackedNode};
use crate::world::{self, Event};

/// Stores node states and messages, applies events to them, and answers what only the algorithm
/// knows.
pub(crate) trait Stepper: Any + Send + Sync {
    /// The number of a node's state before its first event.
    fn first_local(&mut self, node: NodeId, tables: &mut Tables) -> Result<u32, Full>;

    /// Applies an event to a node state.
    fn step(&mut self, cause: Cause, tables: &mut Tables) -> Result<Consequence, Full>;

    /// See [`Algorithm::cluster_invariant`].
    fn cluster_invariant(&self, cluster: PackedCluster) -> Result<(), &'static str>;

    /// See [`Algorithm::may_be_down_together`].
    fn may_be_down_together(&self, one: NodeId, other: NodeId) -> bool;

    /// The clock of a node in this state.
    fn clock(&self, local: u32) -> u64;

    /// See [`Algorithm::counter`].
    fn counter(&self, local: u32, peer: NodeId) -> Option<u64>;

    /// The text of a message.
    fn describe(&self, message: u32) -> String;
}

/// The stepper of one algorithm.
pub(crate) struct StepperOf<A: Algorithm> {
    config: Config<A::Shape>,
    /// Whether nodes may be forgotten.
    forgets: bool,
    /// Whether all nodes may be forgotten together.
    forgets_together: bool,
    locals: IndexSet<A, FxBuildHasher>,
    messages: IndexSet<A::Message, FxBuildHasher>,
    out: Outbox<A::Message>,
}

impl<A: Algorithm> StepperOf<A> {
    pub(super) fn new(config: Config<A::Shape>, forgets: bool) -> Self {
        StepperOf {
            forgets,
            forgets_together: forgets && world::forgets_together::<A>(&config),
            config,
            locals: IndexSet::default(),
            messages: IndexSet::default(),
            out: Outbox::new(),
        }
    }

    /// A packed state as the algorithm sees it.
    pub(super) fn snapshot<'a>(&'a self, cluster: PackedCluster<'a>) -> impl Snapshot<A> + 'a {
        Unpacked {
            stepper: self,
            cluster,
        }
    }

    fn local(&self, number: u32) -> &A {
        &self.locals[number as usize]
    }

    pub(super) fn message(&self, number: u32) -> &A::Message {
        &self.messages[number as usize]
    }

    fn number_local(&mut self, node: NodeId, state: A, tables: &mut Tables) -> Result<u32, Full> {
        if self.locals.len() == LOCALS_MAX && !self.locals.contains(&state) {
            return Err(Full);
        }
        let (number, is_new) = self.locals.insert_full(state);
        if is_new {
            let facts = self.facts(node, number as u32, tables);
            tables.facts.push(facts);
        }
        Ok(number as u32)
    }

    fn facts(&self, node: NodeId, local: u32, tables: &mut Tables) -> Facts {
        let state = self.local(local);
        let config = self.config.at(node);
        let rests_alone = A::rests_alone(config.variants, config.start);
        let is_at_rest = self.forgets && rests_alone && state.is_at_rest(&config);
        let with_all = self.forgets_together && state.phase() == Phase::Idle;
        let may_be_new = is_at_rest || with_all;
        let differs = |jump| may_be_new && world::recreated(state, &config, jump) != *state;
        let jumps = differs(1) && A::clock(&world::recreated(state, &config, 1)) > state.clock();
        Facts {
            phase: state.phase(),
            has_token: state.has_token(),
            is_recovering: state.is_recovering(),
            owes_request: state.owes_request(),
            request: tables.number_request(state.request_id()),
            broken: state.invariant().err(),
            may_be_forgotten: is_at_rest && differs(0),
            may_jump: is_at_rest && jumps,
            may_be_forgotten_with_all: with_all,
            differs: [differs(0), jumps],
        }
    }

    fn number_message(&mut self, message: A::Message, tables: &mut Tables) -> Result<u32, Full> {
        if self.messages.len() == MESSAGES_MAX && !self.messages.contains(&message) {
            return Err(Full);
        }
        let facts = MessageFacts {
            is_token: message.is_token(),
            is_roaming: message.is_roaming(),
            is_advice: message.is_advice(),
        };
        let (number, is_new) = self.messages.insert_full(message);
        if is_new {
            tables.messages.push(facts);
        }
        Ok(number as u32)
    }
}

impl<A: Algorithm> Stepper for StepperOf<A> {
    fn first_local(&mut self, node: NodeId, tables: &mut Tables) -> Result<u32, Full> {
        let first = A::new(&self.config.at(node));
        self.number_local(node, first, tables)
    }

    fn step(&mut self, cause: Cause, tables: &mut Tables) -> Result<Consequence, Full> {
        let mut state = self.local(cause.local).clone();
        let mut out = std::mem::take(&mut self.out);
        let node = cause.node;
        let result = match cause.event {
            NodeEvent::Request => world::step(&mut state, Event::Request(node), &mut out),
            NodeEvent::Release(again) => {
                if let Some(again) = again {
                    state.expect_request(again);
                }
                world::step(&mut state, Event::Release(node), &mut out)
            }
            NodeEvent::Receive(from, message) => {
                let message = self.message(message).clone();
                let event = Event::Deliver {
                    from,
                    to: node,
                    message,
                };
                world::step(&mut state, event, &mut out)
            }
            NodeEvent::Crash(incarnation) => {
                state = A::recovering(&self.config.at(node), u64::from(incarnation))
                    .expect("only algorithms with recovery crash");
                Ok(())
            }
            NodeEvent::Start => {
                state.start(&mut out);
                Ok(())
            }
            NodeEvent::Settled => {
                state.settled(&mut out);
                Ok(())
            }
            NodeEvent::Forget(jump) => {
                state = world::recreated(&state, &self.config.at(node), u64::from(jump));
                Ok(())
            }
            NodeEvent::SetCounter(peer, count) => {
                state.set_counter(peer, u64::from(count));
                Ok(())
            }
        };
        let entered = out.effects().iter().position(|e| *e == Effect::Enter);
        let mut sends = Vec::new();
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                assert_ne!(node, to, "a node does not send to itself");
                sends.push((to, self.number_message(message, tables)?));
            }
        }
        self.out = out;
        Ok(Consequence {
            local: self.number_local(node, state, tables)?,
            sends: sends.into(),
            entered,
            refused: result.err(),
        })
    }

    fn cluster_invariant(&self, cluster: PackedCluster) -> Result<(), &'static str> {
        A::cluster_invariant(&Unpacked {
            stepper: self,
            cluster,
        })
    }

    fn may_be_down_together(&self, one: NodeId, other: NodeId) -> bool {
        A::may_be_down_together(&self.config.place.shape, one, other)
    }

    fn clock(&self, local: u32) -> u64 {
        self.local(local).clock()
    }

    fn counter(&self, local: u32, peer: NodeId) -> Option<u64> {
        self.local(local).counter(peer)
    }

    fn describe(&self, message: u32) -> String {
        self.message(message).to_string()
    }
}

/// A packed state, with the node states and messages that its numbers stand for.
struct Unpacked<'a, A: Algorithm> {
    stepper: &'a StepperOf<A>,
    cluster: PackedCluster<'a>,
}

impl<A: Algorithm> Snapshot<A> for Unpacked<'_, A> {
    fn len(&self) -> usize {
        self.cluster.nodes.len()
    }

    fn node(&self, node: NodeId) -> &A {
        let word = PackedNode(self.cluster.nodes[node.index()]);
        self.stepper.local(word.local())
    }

    fn for_each_envelope(&self, visit: &mut dyn FnMut(NodeId, NodeId, &A::Message)) {
        for &word in self.cluster.envelopes {
            let envelope = PackedEnvelope(word);
            let message = self.stepper.message(envelope.message());
            visit(envelope.from(), envelope.to(), message);
        }
    }
}
