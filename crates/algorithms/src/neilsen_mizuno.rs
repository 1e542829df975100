//! Neilsen and Mizuno 1991, *A DAG-based algorithm for distributed mutual exclusion*, ICDCS 11.
//!
//! **Channels**: any order. **Cost**: at most D+1 messages per entry, D being the tree's diameter:
//! 3 if all nodes are neighbours of one hub (`star:N-1`). Synchronisation delay T, because the
//! privilege goes directly to the next node. Neither state nor messages grow with N.
//!
//! Nodes form a tree. A request travels along LAST pointers, from neighbour to neighbour, to the
//! last node in the queue of waiters, and reverses the edges on its way. That node stores the
//! requester as FOLLOW and sends it the privilege on release: directly, not along the tree.
//!
//! **Invariants**: every edge is LAST of one of its two ends, or a REQUEST is in flight on it. A
//! request therefore never turns back, and arrives from the side on which its origin is. A node
//! without LAST is the last in the queue: it has the privilege or waits for it, and has no FOLLOW.
//!
//! **Proved** for any number of nodes: mutual exclusion (theorem `neilsen_mizuno_mutual_exclusion`
//! in `proofs/NeilsenMizuno.v`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Tree;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, Outbox, PHASE,
    Phase, Place, Role, Value, Violation,
};

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NeilsenMizuno {
    place: Place<Tree>,
    /// The neighbour in the direction of the last node in the queue, or `None` if this node is the
    /// last.
    last: Option<NodeId>,
    /// The node that gets the privilege after this one.
    follow: Option<NodeId>,
    phase: Phase,
    /// Whether the privilege rests here, unused.
    holding: bool,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NeilsenMizunoMessage {
    /// REQUEST(X, Y): the sender X forwards the request of node Y. The last node in the queue
    /// stores Y as FOLLOW or sends it the privilege; any other node forwards the request towards
    /// the last.
    Request(NodeId),
    /// The privilege, sent directly to the node whose turn it is.
    Privilege,
}

use NeilsenMizunoMessage::{Privilege, Request};

impl Message for NeilsenMizunoMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "PRIVILEGE"];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Privilege => 1,
        }
    }

    fn is_token(&self) -> bool {
        *self == Privilege
    }

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            Request(origin) => format!("REQUEST of {}", name(*origin)),
            Privilege => "PRIVILEGE".to_owned(),
        }
    }

    fn examples() -> Vec<Self> {
        vec![
            Request(NodeId::new(0)),
            Request(NodeId::new(300)),
            Privilege,
        ]
    }
}

impl fmt::Display for NeilsenMizunoMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&|node| node.to_string()))
    }
}

const HOLDING: Field = Field::new(
    "HOLDING",
    FieldKind::Flag,
    "whether the privilege rests here, unused",
);
const LAST: Field = Field::new(
    "LAST",
    FieldKind::Node,
    "neighbour in the direction of the last node in the queue",
)
.role(Role::Pointer);
const FOLLOW: Field = Field::new(
    "FOLLOW",
    FieldKind::Node,
    "the node that gets the privilege after this one",
)
.role(Role::Queue);

impl Algorithm for NeilsenMizuno {
    type Message = NeilsenMizunoMessage;
    type Shape = Tree;

    const INFO: Info = Info {
        name: "neilsen-mizuno",
        aliases: &[],
        paper: "Neilsen, Mizuno 1991, A DAG-based algorithm for distributed mutual exclusion",
        channels: Channels::Any,
        variants: &[],
        presets: &[],
    };

    fn new(config: &Config<Tree>) -> Self {
        let me = config.place.me;
        let privileged = config.start.token();
        let phase = config.start.phase(me);
        let last = config.place.shape.next_hop(me, privileged);
        NeilsenMizuno {
            place: config.place.clone(),
            last: (last != me).then_some(last),
            follow: None,
            phase,
            holding: me == privileged && phase == Phase::Idle,
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        if self.holding {
            self.holding = false;
            self.enter(out);
        } else if let Some(last) = self.last.take() {
            self.phase = Phase::Waiting;
            out.send(last, Request(self.place.me));
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        match message {
            Request(origin) => {
                if origin.index() >= self.place.nodes() {
                    let nodes = self.place.nodes();
                    return Err(Violation::NoSuchNode {
                        node: origin,
                        nodes,
                    });
                }
                let Place { me, shape } = &self.place;
                if !shape.is_neighbour(*me, from) {
                    return refuse("it is not a neighbour in the tree");
                }
                if self.last == Some(from) {
                    return refuse("the last one in line is on its own side");
                }
                if !shape.leads_to(*me, from, origin) {
                    return refuse("the requesting node is not on its side");
                }
                self.on_request(from, origin, out);
            }
            Privilege => {
                if self.phase != Phase::Waiting {
                    return refuse("this node does not wait for it");
                }
                self.enter(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        match self.follow.take() {
            Some(next) => {
                self.follow = Mutant::NeilsenMizunoFollowNotCleared
                    .planted()
                    .then_some(next);
                out.send(next, Privilege);
            }
            None => self.holding = true,
        }
        Ok(())
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&HOLDING, self.holding.into());
        fields.add(&LAST, Value::node_or(self.last, "none"));
        fields.add(&FOLLOW, Value::node_or(self.follow, "none"));
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.holding || self.phase == Phase::Inside
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if self.holding && self.phase != Phase::Idle {
            return Err("HOLDING although the privilege does not rest here");
        }
        if self.phase == Phase::Idle && self.follow.is_some() {
            return Err("FOLLOW at a node that neither waits nor is inside");
        }
        let in_line = self.holding || self.phase != Phase::Idle;
        if self.last.is_none() != (in_line && self.follow.is_none()) {
            return Err("a node has no LAST exactly while it is last in line");
        }
        Ok(())
    }
}

impl NeilsenMizuno {
    /// REQUEST(X, Y) from X = `from`, Y = `origin`.
    fn on_request(&mut self, from: NodeId, origin: NodeId, out: &mut Outbox<NeilsenMizunoMessage>) {
        match self.last.replace(from) {
            Some(last) => {
                if Mutant::NeilsenMizunoLastNotTurned.planted() {
                    self.last = Some(last);
                }
                out.send(last, Request(origin));
            }
            None if self.holding => {
                self.holding = Mutant::NeilsenMizunoHoldingKept.planted();
                out.send(origin, Privilege);
            }
            None => self.follow = Some(origin),
        }
    }

    fn enter(&mut self, out: &mut Outbox<NeilsenMizunoMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }
}
