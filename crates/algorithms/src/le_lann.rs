//! Le Lann 1977, *Distributed systems - towards a formal approach*, IFIP Congress, pp. 155-160, as
//! it is commonly described: a token circulates on a ring, and the node that has it may be inside.
//! The resting form is our own.
//!
//! **Channels**: any order. **Cost** of the circulating token: 1 message per entry when every node
//! always wants to enter. When none does, the token still moves; that cost is reported per unit of
//! time. A node waits for at most N moves of the token and one entry of each other node;
//! synchronisation delay T to (N-1)T.
//!
//! **Resting form** (variant `resting`): an idle ring sends nothing. The node at which the token
//! starts is its *resting place*. A node that wants to enter sends a REQUEST to the right. The
//! REQUEST travels to the resting place and wakes the token, which then goes round once. Between
//! two visits of the token a node forwards only one REQUEST, since one is enough; the next one ends
//! there and is recorded. A token that finds such a record, or is requested while it is away, goes
//! round once more, because it may already have passed the requester. A single request from p
//! places to the right of the resting place costs N-p REQUESTs and N moves of the token, at most
//! 2N-1 messages, and waits NT. The resting place itself enters immediately. When every node always
//! wants to enter, the cost is 2-1/N messages per entry.
//!
//! No node starves in the resting form. Call a node *alerted* if it has sent or forwarded a REQUEST
//! since the token's last visit. Every node that waits away from the resting place is alerted. If
//! the token has yet to pass the waiting node on this round, it will serve it. If not, the REQUEST
//! that the node sent or forwarded is in flight to the right, or it has ended. If it ended at the
//! resting place, or at a node that the token had yet to leave, the token goes round once more. If
//! it ended at an alerted node that the token had already left, the same argument applies to that
//! node. A REQUEST that arrives late, for a node that was served in the meantime, costs one
//! unnecessary round and nothing else. When no message is in flight and no node is inside, each
//! node is in its initial state again.
//!
//! **Invariants**: a node that is inside has the token, and a node that waits does not. A resting
//! token is at its resting place and has not been requested. A node that waits elsewhere is
//! alerted. A REQUEST ends only at an alerted node, at the token or at the resting place.
//!
//! **Proved** for any number of nodes: mutual exclusion for both forms (theorem
//! `le_lann_mutual_exclusion` in `proofs/LeLann.v`).
//!
//! **Left out**: the paper's election, which replaces a lost token. Channels lose nothing here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Ring;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, Outbox, PHASE,
    Phase, Place, Start, Value, Variant, VariantSet, Violation,
};

/// An idle ring sends nothing: the token rests where it started until it is requested.
pub const RESTING: Variant = Variant::new(
    0,
    "resting",
    "the token rests until a request comes: an idle ring sends nothing",
);

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeLann {
    place: Place<Ring>,
    /// Where the token rests, or `None` if it always circulates.
    resting_place: Option<NodeId>,
    phase: Phase,
    /// Whether the token is here.
    token: bool,
    /// Resting form: a REQUEST was sent or forwarded from here since the token's last visit.
    alerted: bool,
    /// Resting form: a REQUEST ended here since the token's last visit, or the token is here and
    /// knows of one that ended elsewhere. The token has to go round once more.
    again: bool,
}

/// Messages between nodes, always to the right neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LeLannMessage {
    /// Resting form: a node to the left requests the token. Forwarded to the right; ends at the
    /// resting place, at the token, or at a node that has sent or forwarded another one since the
    /// token's last visit.
    Request,
    /// The circulating token. The receiver enters if it waits, and otherwise passes it on
    /// immediately.
    Token,
    /// The token of the resting form. Handled in the same way, except that it stays at its resting
    /// place unless it was requested.
    RestingToken {
        /// A REQUEST ended on the token's way, and the token may already have passed its sender: it
        /// has to go round once more.
        again: bool,
    },
}

use LeLannMessage::{Request, RestingToken, Token};

impl Message for LeLannMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "TOKEN"];

    fn kind(&self) -> usize {
        match self {
            Request => 0,
            Token | RestingToken { .. } => 1,
        }
    }

    fn is_token(&self) -> bool {
        matches!(self, Token | RestingToken { .. })
    }

    fn is_roaming(&self) -> bool {
        matches!(self, Token)
    }

    fn examples() -> Vec<Self> {
        vec![Request, Token, RestingToken { again: true }]
    }
}

impl fmt::Display for LeLannMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            RestingToken { again: true } => f.write_str(" again"),
            Request | Token | RestingToken { again: false } => Ok(()),
        }
    }
}

const TOKEN: Field = Field::new("token", FieldKind::Flag, "whether the token is here");
const ALERTED: Field = Field::new(
    "alerted",
    FieldKind::Flag,
    "whether a REQUEST left here since the token's last visit",
);
const AGAIN: Field = Field::new(
    "again",
    FieldKind::Flag,
    "whether the token has to go round once more",
);

impl Algorithm for LeLann {
    type Message = LeLannMessage;
    type Shape = Ring;

    const INFO: Info = Info {
        name: "le-lann",
        aliases: &["ring"],
        paper: "Le Lann 1977, Distributed systems - towards a formal approach",
        channels: Channels::Any,
        variants: &[RESTING],
        presets: &[],
    };

    fn new(config: &Config<Ring>) -> Self {
        let (me, start) = (config.place.me, config.start);
        LeLann {
            place: config.place.clone(),
            resting_place: config.variants.has(RESTING).then_some(start.token()),
            phase: start.phase(me),
            token: start.token() == me,
            alerted: false,
            again: false,
        }
    }

    /// Sends the circulating token off, unless its node is inside.
    fn start(&mut self, out: &mut Outbox<Self::Message>) {
        if self.token && self.phase == Phase::Idle {
            self.go_on(out);
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        if self.token {
            self.enter(out);
            return Ok(());
        }
        self.phase = Phase::Waiting;
        // A circulating token comes by itself, and a resting one returns to its resting place by
        // itself.
        if self.resting_place.is_some() && !self.is_resting_place() {
            self.alert(out);
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
        self.refuse_impossible(from, message)?;
        match message {
            Request if self.alerted || self.token || self.is_resting_place() => {
                self.again |= self.token
                    || self.is_resting_place()
                    || !Mutant::LeLannRequestNotNoted.planted();
                if self.token && self.phase == Phase::Idle {
                    self.go_on(out);
                }
            }
            Request => self.alert(out),
            Token => self.on_token(false, out),
            RestingToken { again } => self.on_token(again, out),
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        self.go_on(out);
        Ok(())
    }

    fn peers(place: &Place<Ring>) -> Vec<NodeId> {
        let Place { me, shape } = place;
        let is_beside = |peer: &NodeId| shape.right(*me) == *peer || shape.right(*peer) == *me;
        place.peers().filter(is_beside).collect()
    }

    /// The token rests where it started, which is not home if another node started inside.
    fn rests_alone(variants: VariantSet, start: Start) -> bool {
        variants.has(RESTING) && start.token() == start.home
    }

    fn fields(&self, fields: &mut dyn Fields) {
        let rests = self.resting_place.is_some();
        fields.add(&PHASE, self.phase.into());
        fields.add(&TOKEN, self.token.into());
        fields.add(&ALERTED, Value::from(self.alerted).only_if(rests));
        fields.add(&AGAIN, Value::from(self.again).only_if(rests));
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.token
    }

    fn invariant(&self) -> Result<(), &'static str> {
        match self.phase {
            Phase::Inside if !self.token => return Err("inside without the token"),
            Phase::Waiting if self.token => return Err("the token is here and the node waits"),
            Phase::Idle | Phase::Waiting | Phase::Inside => {}
        }
        if self.resting_place.is_none() {
            return if self.alerted || self.again {
                Err("the circulating token is requested")
            } else {
                Ok(())
            };
        }
        if self.token && self.phase == Phase::Idle && (!self.is_resting_place() || self.again) {
            return Err("the token rests at another node, or although it was requested");
        }
        if self.is_resting_place() {
            return if self.alerted {
                Err("a REQUEST was forwarded beyond the resting place")
            } else {
                Ok(())
            };
        }
        if self.phase == Phase::Waiting && !self.alerted {
            return Err("the node waits and has sent no REQUEST");
        }
        if self.again && !self.alerted && !self.token {
            return Err("a REQUEST ended where none was forwarded before");
        }
        Ok(())
    }
}

impl LeLann {
    fn is_resting_place(&self) -> bool {
        self.resting_place == Some(self.place.me)
    }

    /// The only validation of input. Called before any state changes.
    fn refuse_impossible(&self, from: NodeId, message: LeLannMessage) -> Result<(), Violation> {
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        if self.place.shape.right(from) != self.place.me {
            return refuse("it is not the left neighbour");
        }
        if self.resting_place.is_none() != matches!(message, Token) {
            return refuse("the ring is of the other form");
        }
        if self.resting_place == Some(from) && message != (RestingToken { again: false }) {
            return refuse("its message ends at the resting place");
        }
        if message.is_token() && self.token {
            return refuse("the token is here");
        }
        Ok(())
    }

    /// Requests the token or forwards another node's REQUEST, at most once between two visits of
    /// the token.
    fn alert(&mut self, out: &mut Outbox<LeLannMessage>) {
        if !self.alerted {
            self.alerted = true;
            out.send(self.place.shape.right(self.place.me), Request);
        }
    }

    fn on_token(&mut self, again: bool, out: &mut Outbox<LeLannMessage>) {
        self.token = true;
        self.again |= again;
        if self.phase == Phase::Waiting {
            self.enter(out);
        } else {
            self.go_on(out);
        }
    }

    fn enter(&mut self, out: &mut Outbox<LeLannMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }

    /// Passes the token to the right, unless it rests here or there is no other node. A token that
    /// leaves its resting place passes all nodes that wait now, so it starts with `again` unset.
    fn go_on(&mut self, out: &mut Outbox<LeLannMessage>) {
        let rests = self.is_resting_place() && !self.again;
        if rests || self.place.nodes() == 1 {
            return;
        }
        let message = match self.resting_place {
            None => Token,
            Some(_) => RestingToken {
                again: self.again
                    && !self.is_resting_place()
                    && !Mutant::LeLannAgainDropped.planted(),
            },
        };
        self.token = Mutant::LeLannTokenKept.planted();
        self.alerted = false;
        self.again = false;
        let right = self.place.shape.right(self.place.me);
        if Mutant::LeLannTokenTwice.planted() {
            out.send(right, message);
        }
        out.send(right, message);
    }
}
