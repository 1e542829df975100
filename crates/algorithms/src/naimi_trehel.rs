//! Naimi, Trehel and Arnold 1996, *A log(N) distributed mutual exclusion algorithm based on path
//! reversal*, JPDC 34(1); first told by Naimi and Trehel in 1987.
//!
//! **Channels**: any order. **Cost**: 0 to N messages an entry, one of them the token. When nodes
//! ask one at a time, each as likely as any other, the mean is the harmonic number H(N-1), the
//! token included. Synchronisation delay T.
//!
//! Each node knows its `father`, the last node that it knows to have asked, and sends its request
//! there. A request is handed on from father to father; each node on its way takes the asking node
//! as its new father, since that one will have the token last. So the paths shorten as they are
//! used. At the end of the path is the last one in the queue of those who wait: the queue is
//! nowhere as a whole, each node in it knows only who is `next`.
//!
//! **Invariants**: an idle node has the token or a father, not both, and no next. A node that
//! waits or is inside has a next exactly if it has a father. Fathers and requests under way
//! together form no circle, so no request comes back to who sent it or handed it on.
//!
//! **Deviations**: none. The paper's nil is the node itself here, which saves half of the state.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{Algorithm, Channels, Config, Info, Message, NodeId, Outbox, Phase, Place, Violation};

/// One node's part: 32 bytes, whatever the size of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NaimiTrehel {
    place: Place<Complete>,
    /// Where requests are sent: the node itself for nil, which makes it a root.
    father: NodeId,
    /// Who gets the token after this node: the node itself for nil.
    next: NodeId,
    /// The paper's `requesting` is anything but idle.
    phase: Phase,
    token_present: bool,
}

/// What nodes say to each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NaimiTrehelMessage {
    /// This node wants in. From itself to its father, then from father to father up to a root, which
    /// makes the node its next, or sends it the token if it rests there.
    Request(NodeId),
    /// The token: the receiver is inside.
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
        match self {
            Request(origin) => write!(f, "REQUEST {origin}"),
            Token => f.write_str("TOKEN"),
        }
    }
}

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
                    return refuse("this node has the token or has not asked for it");
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
                Err("a node that asked has a father exactly if it has a next")
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

    /// A root serves the request or takes it as its next, others hand it on; for all of them, the
    /// node that asks is now the last one that asked.
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

impl fmt::Display for NaimiTrehel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.phase.fmt(f)?;
        for (name, node) in [("father", self.father()), ("next", self.next())] {
            match node {
                Some(node) => write!(f, " {name}={node}")?,
                None => write!(f, " {name}=nil")?,
            }
        }
        f.write_str(if self.token_present { " token" } else { "" })
    }
}

/// A million nodes are to fit.
const _: () = assert!(size_of::<NaimiTrehel>() <= 32);
