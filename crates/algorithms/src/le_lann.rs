//! Le Lann 1977, *Distributed systems - towards a formal approach*, IFIP Congress, pp. 155-160, as
//! it is commonly told: a token goes round a ring, and who has it may be inside. The resting form
//! is our own.
//!
//! **Channels**: any order. **Cost** of the restless ring: 1 message an entry when everybody
//! always wants in; when nobody does, the token moves all the same, which is reported for each
//! unit of time. A node waits for N moves of the token and one entry of each other node at most;
//! synchronisation delay T to (N-1)T.
//!
//! **Resting form** (variant `resting`): an idle ring sends nothing. The node at which the token
//! starts is its *resting place*. Who wants in sends a REQUEST to the right, which goes on as far
//! as the resting place and wakes the token; the token goes round once. Between two visits of the
//! token a node lets one REQUEST go on, for one is enough; the next one ends there and is noted. A
//! token that finds such a note, or is asked for while it is away, goes round once more: it may
//! have passed the one who asks. A lone request from p places to the right of the resting place
//! costs N-p REQUESTs and N moves of the token, 2N-1 messages at most, and waits NT; the resting
//! place itself enters at once. When everybody always wants in, it is 2-1/N messages an entry.
//!
//! Why nobody waits for ever there: call a node *alerted* if a REQUEST went on from it since the
//! token was there. Who waits away from the resting place is alerted. If the token is still to
//! pass it on this round, it will. If not, the REQUEST that went on is under way to the right, or
//! it ended: at the resting place, or at a node that the token had yet to leave, and then the
//! token goes round once more; or at an alerted node that the token had left before, of which the
//! same can be said. A REQUEST that comes late, for a node that was served meanwhile, costs a
//! round in vain and nothing else. When nothing is under way and nobody is inside, each node is
//! again as it began.
//!
//! **Invariants**: who is inside has the token, who waits has not; a resting token is at its
//! resting place and nobody has asked for it; who waits elsewhere is alerted; a REQUEST ends only
//! at an alerted node, at the token or at the resting place.
//!
//! **Left out**: the paper's election, by which a lost token is replaced. Channels lose nothing
//! here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Ring;
use crate::{
    Algorithm, Channels, Config, Info, Message, NodeId, Outbox, Phase, Place, Start, Variant,
    VariantSet, Violation,
};

/// An idle ring sends nothing: the token rests where it started until somebody asks for it.
pub const RESTING: Variant = Variant {
    bit: 0,
    name: "resting",
    about: "the token rests until a request comes: an idle ring sends nothing",
    excludes: &[],
};

/// One node's part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeLann {
    place: Place<Ring>,
    /// Where the token rests; `None` if it never does.
    resting_place: Option<NodeId>,
    phase: Phase,
    /// Whether the token is here.
    token: bool,
    /// Resting form: a REQUEST went on from here since the token was here.
    alerted: bool,
    /// Resting form: a REQUEST ended here since the token was here, or the token that is here
    /// knows of one that ended elsewhere. So the token has to go round once more.
    again: bool,
}

/// What nodes say to each other; always to the right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LeLannMessage {
    /// Resting form: somebody to the left wants the token. Goes on to the right, and ends at the
    /// resting place, at the token, or where another one went on since the token was there.
    Request,
    /// The restless token. Who gets it enters if it waits, else passes it on at once.
    Token,
    /// The token of the resting form, likewise; at its resting place it stays unless asked for.
    RestingToken {
        /// A REQUEST ended on its way, whose sender it may have passed before: go round once more.
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

    /// The restless token sets out, unless its node is inside.
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
        // A restless token comes by itself, and a resting one comes home by itself.
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

    /// The token rests where it started: elsewhere than at home, if somebody was inside there.
    fn rests_alone(variants: VariantSet, start: Start) -> bool {
        variants.has(RESTING) && start.token() == start.home
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
                Err("the restless token is asked for")
            } else {
                Ok(())
            };
        }
        if self.token && self.phase == Phase::Idle && (!self.is_resting_place() || self.again) {
            return Err("the token rests elsewhere, or although it was asked for");
        }
        if self.is_resting_place() {
            return if self.alerted {
                Err("a REQUEST went on beyond the resting place")
            } else {
                Ok(())
            };
        }
        if self.phase == Phase::Waiting && !self.alerted {
            return Err("the node waits and has told nobody");
        }
        if self.again && !self.alerted && !self.token {
            return Err("a REQUEST ended where none went on before");
        }
        Ok(())
    }
}

impl LeLann {
    fn is_resting_place(&self) -> bool {
        self.resting_place == Some(self.place.me)
    }

    /// The one check of what comes in: nothing has changed yet.
    fn refuse_impossible(&self, from: NodeId, message: LeLannMessage) -> Result<(), Violation> {
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        if self.place.shape.right(from) != self.place.me {
            return refuse("it is not the left neighbour");
        }
        if self.resting_place.is_none() != matches!(message, Token) {
            return refuse("the ring is of the other form");
        }
        if self.resting_place == Some(from) && message != (RestingToken { again: false }) {
            return refuse("what it says ends at the resting place");
        }
        if message.is_token() && self.token {
            return refuse("the token is here");
        }
        Ok(())
    }

    /// Asks for the token, or lets another's REQUEST go on; once between two visits of the token.
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

    /// The token goes to the right, unless it rests here or there is nobody else. All who wait now
    /// are on the way of a token that leaves its resting place: it begins with no knowledge.
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

impl fmt::Display for LeLann {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.phase)?;
        for (holds, what) in [
            (self.token, " token"),
            (self.alerted, " alerted"),
            (self.again, " again"),
        ] {
            if holds {
                f.write_str(what)?;
            }
        }
        Ok(())
    }
}
