//! Naimi, Trehel and Arnold 1996, *A log(N) distributed mutual exclusion algorithm based on path
//! reversal*, JPDC 34(1); first published by Naimi and Trehel in 1987.
//!
//! **Channels**: any order. **Cost**: 0 to N messages per entry, one of them the token. When nodes
//! make requests one at a time, all equally likely, the mean is the harmonic number H(N-1),
//! including the token. Synchronisation delay T.
//!
//! Each node keeps a pointer, `father`, to the last requester it knows of, and sends its own
//! request there. Every node on the path forwards the request and then points its `father` at the
//! requester, which will be the last to hold the token. Paths shorten as they are used: this is the
//! path reversal of the title. The path ends at the last node in the queue of waiters. No node
//! stores the whole queue; each node in it only knows its successor, `next`.
//!
//! **Invariants**: an idle node has either the token or a father, and no next. A node that waits or
//! is inside has a next exactly if it has a father. Fathers and requests in flight together form no
//! cycle, so a request never returns to its requester or to a node that forwarded it.
//!
//! **Proved** for any number of nodes: mutual exclusion (theorem `naimi_trehel_mutual_exclusion` in
//! `proofs/NaimiTrehel.v`).
//!
//! **Deviations**: none. The paper's nil is represented by the node itself, which halves the state.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, Outbox, PHASE,
    Phase, Place, Role, Value, Violation,
};

/// State of one node: 32 bytes, whatever the size of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NaimiTrehel {
    place: Place<Complete>,
    /// Where requests are sent. The node itself means nil, and the node is then a root.
    father: NodeId,
    /// The node that gets the token after this one. The node itself means nil.
    next: NodeId,
    /// The paper's `requesting` is any phase but idle.
    phase: Phase,
    token_present: bool,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NaimiTrehelMessage {
    /// A request of the given node. Sent to its father and forwarded from father to father up to a
    /// root. The root makes the requester its next, or sends it the token if the token rests there.
    Request(NodeId),
    /// The token. The receiver enters.
    Token,
}

use NaimiTrehelMessage::{Request, Token};

impl Message for NaimiTrehelMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "TOKEN"];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Token => 1,
        }
    }

    fn is_token(&self) -> bool {
        matches!(self, Token)
    }

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            Request(origin) => format!("REQUEST {}", name(*origin)),
            Token => "TOKEN".to_owned(),
        }
    }

    fn examples() -> Vec<Self> {
        vec![
            Request(NodeId::new(0)),
            Request(NodeId::new(1_000_000)),
            Token,
        ]
    }
}

impl fmt::Display for NaimiTrehelMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&|node| node.to_string()))
    }
}

const FATHER: Field =
    Field::new("father", FieldKind::Node, "where requests are sent").role(Role::Pointer);
const NEXT: Field = Field::new(
    "next",
    FieldKind::Node,
    "the node that gets the token after this one",
)
.role(Role::Queue);
const TOKEN: Field = Field::new(
    "token_present",
    FieldKind::Flag,
    "whether the token is here",
);

impl Algorithm for NaimiTrehel {
    type Message = NaimiTrehelMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "naimi-trehel",
        aliases: &["path-reversal"],
        paper: "Naimi, Trehel, Arnold 1996, A log(N) distributed mutual exclusion algorithm based on path reversal",
        channels: Channels::Any,
        variants: &[],
        presets: &[],
    };

    fn new(config: &Config<Complete>) -> Self {
        let me = config.place.me;
        NaimiTrehel {
            place: config.place.clone(),
            father: config.start.token(),
            next: me,
            phase: config.start.phase(me),
            token_present: config.start.token() == me,
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        match self.father() {
            Some(father) => {
                self.phase = Phase::Waiting;
                out.send(father, Request(self.place.me));
                self.father = self.place.me;
            }
            // An idle root has the token.
            None => self.enter(out),
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
                self.place.is_peer(origin)?;
                if self.father == origin || self.father == from {
                    return refuse("it goes in a circle");
                }
                self.on_request(origin, out);
            }
            Token => {
                if self.phase != Phase::Waiting {
                    return refuse("this node has the token or has not requested it");
                }
                self.token_present = true;
                self.enter(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        if let Some(next) = self.next() {
            if !Mutant::NaimiTrehelNextNotCleared.planted() {
                self.next = self.place.me;
            }
            self.send_token(next, out);
        }
        Ok(())
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&FATHER, Value::node_or(self.father(), "nil"));
        fields.add(&NEXT, Value::node_or(self.next(), "nil"));
        fields.add(&TOKEN, self.token_present.into());
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.token_present
    }

    fn invariant(&self) -> Result<(), &'static str> {
        let (father, next) = (self.father().is_some(), self.next().is_some());
        match self.phase {
            Phase::Idle if next => Err("an idle node has a next"),
            Phase::Idle if father == self.token_present => {
                Err("an idle node has either the token or a father")
            }
            Phase::Waiting if self.token_present => Err("a node waits although it has the token"),
            Phase::Inside if !self.token_present => Err("a node is inside without the token"),
            Phase::Waiting | Phase::Inside if father != next => {
                Err("a node that requested has a father exactly if it has a next")
            }
            _ => Ok(()),
        }
    }
}

impl NaimiTrehel {
    fn father(&self) -> Option<NodeId> {
        (self.father != self.place.me).then_some(self.father)
    }

    fn next(&self) -> Option<NodeId> {
        (self.next != self.place.me).then_some(self.next)
    }

    /// A root sends the token to the requester or makes it its next; any other node forwards the
    /// request. In each case the requester becomes this node's father.
    fn on_request(&mut self, origin: NodeId, out: &mut Outbox<NaimiTrehelMessage>) {
        match self.father() {
            Some(father) => {
                out.send(father, Request(origin));
                if Mutant::NaimiTrehelNoReversal.planted() {
                    return;
                }
            }
            None if self.phase == Phase::Idle => self.send_token(origin, out),
            None => {
                self.next = origin;
                if Mutant::NaimiTrehelFatherNotSet.planted() {
                    return;
                }
            }
        }
        self.father = origin;
    }

    fn send_token(&mut self, to: NodeId, out: &mut Outbox<NaimiTrehelMessage>) {
        self.token_present = Mutant::NaimiTrehelTokenKept.planted();
        out.send(to, Token);
    }

    fn enter(&mut self, out: &mut Outbox<NaimiTrehelMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }
}

/// A million nodes must fit in memory.
const _: () = assert!(size_of::<NaimiTrehel>() <= 32);
