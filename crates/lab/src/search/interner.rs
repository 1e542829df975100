//! Interner with memoised transitions: each distinct node state and message is stored once (in the
//! [`Stepper`]) and identified by a number, and the effect of each event on each node state is
//! computed once.
//!
//! Millions of cluster states are combinations of a few thousand node states. A step of the search
//! is therefore little more than looking up a number and copying a few others.

use std::any::Any;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use soloist_algorithms::{Algorithm, NodeId, Phase, RequestId, Violation};

use super::packed::PackedCluster;
use super::reduction::{self, Prospect};
use super::stepper::{Stepper, StepperOf};

/// An event at one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NodeEvent {
    Request,
    /// The node leaves, and knows whether it will request again, if it is told.
    Release(Option<bool>),
    /// The message with this number arrives from this node.
    Receive(NodeId, u32),
    /// The node crashes and recovers as this incarnation.
    Crash(u8),
    Start,
    Settled,
    /// The node is forgotten and re-created with its clock advanced by this.
    Forget(u8),
    /// The node's counter for this peer is set to this: see [`failures`](super::failures).
    SetCounter(NodeId, u8),
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
    /// Whether others wait for its next request.
    pub owes_request: bool,
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

/// Derived facts about a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub is_token: bool,
    pub is_roaming: bool,
    pub is_advice: bool,
}

/// What is known about node states and messages by their numbers.
#[derive(Default)]
pub(crate) struct Tables {
    pub facts: Vec<Facts>,
    pub messages: Vec<MessageFacts>,
    /// Request ids; number 0 stands for `None`.
    requests: IndexSet<Option<RequestId>, FxBuildHasher>,
}

impl Tables {
    pub(super) fn number_request(&mut self, request: Option<RequestId>) -> u32 {
        self.requests.insert_full(request).0 as u32
    }
}

pub(crate) struct Interner {
    stepper: Box<dyn Stepper>,
    tables: Tables,
    consequences: Vec<Consequence>,
    known: FxHashMap<Cause, u32>,
    notes: FxHashMap<Prospect, Vec<bool>>,
}

impl Interner {
    pub(super) fn new(stepper: Box<dyn Stepper>) -> Self {
        let mut tables = Tables::default();
        tables.number_request(None);
        Interner {
            stepper,
            tables,
            consequences: Vec::new(),
            known: FxHashMap::default(),
            notes: FxHashMap::default(),
        }
    }

    /// The state of a node before its first event.
    pub(super) fn first_local(&mut self, node: NodeId) -> Result<u32, Full> {
        self.stepper.first_local(node, &mut self.tables)
    }

    pub(super) fn facts(&self, local: u32) -> &Facts {
        &self.tables.facts[local as usize]
    }

    pub(super) fn message(&self, number: u32) -> &MessageFacts {
        &self.tables.messages[number as usize]
    }

    /// The request id with this number.
    pub(super) fn request(&self, number: u32) -> Option<RequestId> {
        self.tables.requests[number as usize]
    }

    /// The memoised consequence of a cause, if it was [learned](Interner::learn).
    pub(super) fn consequence(&self, cause: &Cause) -> Option<&Consequence> {
        let number = self.known.get(cause)?;
        Some(&self.consequences[*number as usize])
    }

    /// Computes and memoises the consequence of a cause.
    pub(super) fn learn(&mut self, cause: Cause) -> Result<(), Full> {
        if self.known.contains_key(&cause) {
            return Ok(());
        }
        let consequence = self.stepper.step(cause, &mut self.tables)?;
        self.known.insert(cause, self.consequences.len() as u32);
        self.consequences.push(consequence);
        Ok(())
    }

    /// Which of the deliverable messages may be postponed, if [computed](Interner::find_notes).
    pub(super) fn notes(&self, prospect: &Prospect) -> Option<&[bool]> {
        self.notes.get(prospect).map(Vec::as_slice)
    }

    /// Computes and memoises which of the deliverable messages may be postponed.
    pub(super) fn find_notes(&mut self, prospect: Prospect) -> Result<(), Full> {
        let notes = reduction::notes(self, &prospect)?;
        self.notes.insert(prospect, notes);
        Ok(())
    }

    /// See [`Algorithm::cluster_invariant`].
    pub(super) fn cluster_invariant(&self, cluster: PackedCluster) -> Result<(), &'static str> {
        self.stepper.cluster_invariant(cluster)
    }

    /// See [`Algorithm::may_be_down_together`].
    pub(super) fn may_be_down_together(&self, one: NodeId, other: NodeId) -> bool {
        self.stepper.may_be_down_together(one, other)
    }

    /// The clock of a node in this state.
    pub(super) fn clock(&self, local: u32) -> u64 {
        self.stepper.clock(local)
    }

    /// See [`Algorithm::counter`].
    pub(super) fn counter(&self, local: u32, peer: NodeId) -> Option<u64> {
        self.stepper.counter(local, peer)
    }

    /// The text of a message.
    pub(super) fn describe(&self, message: u32) -> String {
        self.stepper.describe(message)
    }

    /// The stepper, for a caller that knows the algorithm.
    ///
    /// # Panics
    /// If it is the stepper of another algorithm.
    pub(super) fn stepper<A: Algorithm>(&self) -> &StepperOf<A> {
        let stepper: &dyn Any = &*self.stepper;
        stepper
            .downcast_ref()
            .expect("the algorithm of this search")
    }
}
