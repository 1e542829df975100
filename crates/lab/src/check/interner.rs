//! Interner with memoised transitions: each distinct node state and message is stored once and
//! identified by a number, and the effect of each event on each node state is computed once.
//!
//! Millions of cluster states are combinations of a few thousand node states. A step of the search
//! is therefore little more than looking up a number and copying a few others.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use soloist_algorithms::{
    Algorithm, Config, Effect, Message, NodeId, Outbox, Phase, RequestId, Violation,
};

use super::packed::{LOCALS_MAX, MESSAGES_MAX};
use super::reduction::{self, Prospect};
use crate::world::{self, Event};

/// An event at one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NodeEvent {
    Request,
    Release,
    /// The message with this number arrives from this node.
    Receive(NodeId, u32),
    /// The node crashes and recovers as this incarnation.
    Crash(u8),
    Start,
    Settled,
    /// The node is forgotten and re-created with its clock advanced by this.
    Forget(u8),
}

/// A node state and an event: the key of a memoised transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cause {
    pub node: NodeId,
    pub local: u32,
    pub event: NodeEvent,
}

/// The result of a transition.
#[derive(Debug)]
pub(crate) struct Consequence {
    /// The node's next state.
    pub local: u32,
    /// Receivers and messages, in the order sent.
    pub sends: Box<[(NodeId, u32)]>,
    /// Number of messages sent before the node enters, if it enters.
    pub entered: Option<usize>,
    pub refused: Option<Violation>,
}

/// Derived facts about a node state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub phase: Phase,
    pub has_token: bool,
    pub is_recovering: bool,
    /// The interned number of the latest request id; 0 if entries are not ordered.
    pub request: u32,
    /// The violated invariant, if any.
    pub broken: Option<&'static str>,
    /// Whether the node may be forgotten by itself and that changes its state.
    pub may_be_forgotten: bool,
    /// Whether the node may be forgotten and its clock advanced.
    pub may_jump: bool,
    /// Whether the node is idle and all nodes may be forgotten together.
    pub may_be_forgotten_with_all: bool,
    /// Whether re-creating the node changes its state: with the same clock, and with a later one.
    pub differs: [bool; 2],
}

/// There are more distinct node states or messages than numbers.
#[derive(Debug)]
pub(crate) struct Full;

pub(crate) struct Interner<A: Algorithm> {
    config: Config<A::Shape>,
    /// Whether nodes may be forgotten.
    forgets: bool,
    /// Whether all nodes may be forgotten together.
    forgets_together: bool,
    locals: IndexSet<A, FxBuildHasher>,
    facts: Vec<Facts>,
    messages: IndexSet<A::Message, FxBuildHasher>,
    is_token: Vec<bool>,
    requests: IndexSet<Option<RequestId>, FxBuildHasher>,
    consequences: Vec<Consequence>,
    known: FxHashMap<Cause, u32>,
    notes: FxHashMap<Prospect, Vec<bool>>,
    out: Outbox<A::Message>,
}

impl<A: Algorithm> Interner<A> {
    pub fn new(config: Config<A::Shape>, forgets: bool) -> Self {
        let forgets_together = forgets && world::forgets_together::<A>(&config);
        Interner {
            config,
            forgets,
            forgets_together,
            locals: IndexSet::default(),
            facts: Vec::new(),
            messages: IndexSet::default(),
            is_token: Vec::new(),
            requests: IndexSet::from_iter([None]),
            consequences: Vec::new(),
            known: FxHashMap::default(),
            notes: FxHashMap::default(),
            out: Outbox::new(),
        }
    }

    /// The state of a node before its first event.
    pub fn first_local(&mut self, node: NodeId) -> Result<u32, Full> {
        let first = A::new(&self.config.at(node));
        self.number_local(node, first)
    }

    pub fn local(&self, number: u32) -> &A {
        &self.locals[number as usize]
    }

    pub fn facts(&self, number: u32) -> &Facts {
        &self.facts[number as usize]
    }

    pub fn message(&self, number: u32) -> &A::Message {
        &self.messages[number as usize]
    }

    pub fn is_token(&self, message: u32) -> bool {
        self.is_token[message as usize]
    }

    /// The request id with this number.
    pub fn request(&self, number: u32) -> Option<RequestId> {
        self.requests[number as usize]
    }

    /// The memoised consequence of a cause, if it was [learned](Interner::learn).
    pub fn consequence(&self, cause: &Cause) -> Option<&Consequence> {
        let number = self.known.get(cause)?;
        Some(&self.consequences[*number as usize])
    }

    /// Computes and memoises the consequence of a cause.
    pub fn learn(&mut self, cause: Cause) -> Result<(), Full> {
        if self.known.contains_key(&cause) {
            return Ok(());
        }
        let mut state = self.local(cause.local).clone();
        let mut out = std::mem::take(&mut self.out);
        let node = cause.node;
        let result = match cause.event {
            NodeEvent::Request => world::step(&mut state, Event::Request(node), &mut out),
            NodeEvent::Release => world::step(&mut state, Event::Release(node), &mut out),
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
                    .expect("only what can recover crashes");
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
                state = world::anew(&state, &self.config.at(node), u64::from(jump));
                Ok(())
            }
        };
        let entered = out.effects().iter().position(|e| *e == Effect::Enter);
        let mut sends = Vec::new();
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                assert_ne!(node, to, "a node does not send to itself");
                sends.push((to, self.number_message(message)?));
            }
        }
        let consequence = Consequence {
            local: self.number_local(node, state)?,
            sends: sends.into(),
            entered,
            refused: result.err(),
        };
        self.out = out;
        self.known.insert(cause, self.consequences.len() as u32);
        self.consequences.push(consequence);
        Ok(())
    }

    /// Which of the deliverable messages may be postponed, if [computed](Interner::find_notes).
    pub fn notes(&self, prospect: &Prospect) -> Option<&[bool]> {
        self.notes.get(prospect).map(Vec::as_slice)
    }

    /// Computes and memoises which of the deliverable messages may be postponed.
    pub fn find_notes(&mut self, prospect: Prospect) -> Result<(), Full> {
        let notes = reduction::notes(self, &prospect)?;
        self.notes.insert(prospect, notes);
        Ok(())
    }

    fn number_local(&mut self, node: NodeId, state: A) -> Result<u32, Full> {
        if self.locals.len() == LOCALS_MAX && !self.locals.contains(&state) {
            return Err(Full);
        }
        let (number, is_new) = self.locals.insert_full(state);
        if is_new {
            let state = &self.locals[number];
            let config = self.config.at(node);
            let rests_alone = A::rests_alone(config.variants, config.start);
            let is_at_rest = self.forgets && rests_alone && state.is_at_rest(&config);
            let with_all = self.forgets_together && state.phase() == Phase::Idle;
            let may_be_new = is_at_rest || with_all;
            let differs = |jump| may_be_new && world::anew(state, &config, jump) != *state;
            let jumps = differs(1) && A::clock(&world::anew(state, &config, 1)) > state.clock();
            let facts = Facts {
                phase: state.phase(),
                has_token: state.has_token(),
                is_recovering: state.is_recovering(),
                request: self.requests.insert_full(state.request_id()).0 as u32,
                broken: state.invariant().err(),
                may_be_forgotten: is_at_rest && differs(0),
                may_jump: is_at_rest && jumps,
                may_be_forgotten_with_all: with_all,
                differs: [differs(0), jumps],
            };
            self.facts.push(facts);
        }
        Ok(number as u32)
    }

    fn number_message(&mut self, message: A::Message) -> Result<u32, Full> {
        if self.messages.len() == MESSAGES_MAX && !self.messages.contains(&message) {
            return Err(Full);
        }
        let is_token = message.is_token();
        let (number, is_new) = self.messages.insert_full(message);
        if is_new {
            self.is_token.push(is_token);
        }
        Ok(number as u32)
    }
}
