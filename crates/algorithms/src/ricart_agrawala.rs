//! Ricart and Agrawala 1981, *An optimal algorithm for mutual exclusion in computer networks*, CACM
//! 24(1); with the rule for sequence numbers of Lodha and Kshemkalyani 2000, §2.1.
//!
//! **Channels**: any order. **Cost**: exactly 2(N-1) messages per entry, synchronisation delay T.
//!
//! A node sends its request to all others and enters when all of them have replied. A node defers
//! its reply while it is inside, or while it waits with a request that takes precedence.
//!
//! **Invariants**: a node that does not wait expects no reply. Deferred replies exist only while a
//! node waits or is inside.
//!
//! **Proved** for any number of nodes: mutual exclusion without `as-published` (theorem
//! `ricart_agrawala_mutual_exclusion` in `proofs/RicartAgrawala.v`).
//!
//! **Forgetting**: an idle node needs to keep only the highest sequence number seen. Its next
//! request then has a higher number than every request that it has replied to. A number higher than
//! necessary does no harm.
//!
//! **Errata**: Fig. 1 of Lodha and Kshemkalyani 2000 presents this algorithm with the highest
//! sequence number updated in only one of three branches, which lets two nodes inside at N = 2.
//! Here the number is always updated; the variant `as-published` follows that figure.
//!
//! **Deviations**: a node's own number counts as seen, which neither the paper nor that figure has.
//! So numbers of one node never repeat, and no message is saved or added. The paper's version with
//! bounded sequence numbers is left out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, NodeSet, Outbox,
    PHASE, Phase, Place, RequestId, Role, Start, Variant, VariantSet, Violation,
};

/// Updates the highest sequence number seen only when a reply is deferred, as in Fig. 1 of Lodha
/// and Kshemkalyani 2000.
pub const AS_PUBLISHED: Variant = Variant::new(
    0,
    "as-published",
    "numbers seen as in Lodha-Kshemkalyani 2000, Fig. 1: two nodes inside at N = 2",
)
.faulty();

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RicartAgrawala {
    place: Place<Complete>,
    as_published: bool,
    phase: Phase,
    /// The sequence number of this node's latest request.
    my_sequence_number: u64,
    highest_sequence_number_seen: u64,
    /// The nodes from which a reply is still expected.
    awaited: NodeSet,
    /// The nodes whose reply is deferred until this node's release.
    reply_deferred: NodeSet,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RicartAgrawalaMessage {
    /// From a node to all others: requests the critical section. Carries the request's sequence
    /// number.
    Request(u64),
    /// Permission to enter. Sent immediately, or on release if it was deferred.
    Reply,
}

impl Message for RicartAgrawalaMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "REPLY"];

    fn kind(&self) -> usize {
        match self {
            RicartAgrawalaMessage::Request(_) => 0,
            RicartAgrawalaMessage::Reply => 1,
        }
    }

    fn examples() -> Vec<Self> {
        use RicartAgrawalaMessage::{Reply, Request};
        vec![Request(1), Request(u64::MAX), Reply]
    }
}

impl fmt::Display for RicartAgrawalaMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RicartAgrawalaMessage::Request(number) => write!(f, "REQUEST {number}"),
            RicartAgrawalaMessage::Reply => f.write_str("REPLY"),
        }
    }
}

const OWN: Field = Field::new(
    "own",
    FieldKind::Number,
    "number of this node's latest request",
);
const SEEN: Field = Field::new("seen", FieldKind::Number, "highest number seen").role(Role::Clock);
const AWAITED: Field = Field::new(
    "awaited",
    FieldKind::Set,
    "nodes from which a reply is still expected",
)
.role(Role::Needs);
const DEFERRED: Field = Field::new(
    "deferred",
    FieldKind::Set,
    "nodes whose reply waits for this node's release",
)
.role(Role::Queue);

impl Algorithm for RicartAgrawala {
    type Message = RicartAgrawalaMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "ricart-agrawala",
        aliases: &["ra"],
        paper: "Ricart, Agrawala 1981, An optimal algorithm for mutual exclusion in computer networks",
        channels: Channels::Any,
        variants: &[AS_PUBLISHED],
        presets: &[],
    };

    const NODES_MAX: usize = crate::algorithm::NODES_MAX_OF_BROADCAST;

    const COUNTS_REQUESTS: bool = true;

    fn new(config: &Config<Complete>) -> Self {
        let nodes = config.place.nodes();
        RicartAgrawala {
            place: config.place.clone(),
            as_published: config.variants.has(AS_PUBLISHED),
            // A node that starts inside has all replies, and the number 0, which precedes all
            // others.
            phase: config.start.phase(config.place.me),
            my_sequence_number: 0,
            highest_sequence_number_seen: 0,
            awaited: NodeSet::new(nodes),
            reply_deferred: NodeSet::new(nodes),
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.my_sequence_number = self.highest_sequence_number_seen + 1;
        if !self.as_published {
            self.highest_sequence_number_seen = self.my_sequence_number;
        }
        self.phase = Phase::Waiting;
        for peer in self.place.peers() {
            self.awaited.insert(peer);
            out.send(
                peer,
                RicartAgrawalaMessage::Request(self.my_sequence_number),
            );
        }
        self.enter_if_all_replied(out);
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
            RicartAgrawalaMessage::Request(number) => {
                if self.reply_deferred.contains(from) {
                    return refuse("its previous request has no reply yet");
                }
                if !RequestId::is_sequence(number) {
                    return refuse("a number that no request has");
                }
                self.on_request(RequestId::new(number, from), out);
            }
            RicartAgrawalaMessage::Reply => {
                if !self.awaited.remove(from) {
                    return refuse("no reply is expected from it");
                }
                self.enter_if_all_replied(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        let forgotten = usize::from(Mutant::RicartAgrawalaReplyForgotten.planted());
        for peer in self.reply_deferred.iter().skip(forgotten) {
            out.send(peer, RicartAgrawalaMessage::Reply);
        }
        self.reply_deferred.clear();
        Ok(())
    }

    fn request_id(&self) -> Option<RequestId> {
        Some(RequestId::new(self.my_sequence_number, self.place.me))
    }

    fn clock(&self) -> u64 {
        self.highest_sequence_number_seen
    }

    fn set_clock(&mut self, clock: u64) {
        if !Mutant::RicartAgrawalaClockForgotten.planted() {
            self.highest_sequence_number_seen = self.highest_sequence_number_seen.max(clock);
        }
    }

    /// With the published rule, sequence numbers are not reliable enough to forget a node's state.
    fn rests_alone(variants: VariantSet, _start: Start) -> bool {
        !variants.has(AS_PUBLISHED)
    }

    fn is_at_rest(&self, _config: &Config<Complete>) -> bool {
        // An idle node neither awaits nor defers a reply.
        self.phase == Phase::Idle && !self.as_published
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&OWN, self.my_sequence_number.into());
        fields.add(&SEEN, self.highest_sequence_number_seen.into());
        fields.add(&AWAITED, (&self.awaited).into());
        fields.add(&DEFERRED, (&self.reply_deferred).into());
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if (self.phase == Phase::Waiting) == self.awaited.is_empty() {
            return Err("a node waits exactly while a reply is awaited");
        }
        if self.phase == Phase::Idle && !self.reply_deferred.is_empty() {
            return Err("an idle node defers a reply");
        }
        Ok(())
    }
}

impl RicartAgrawala {
    /// Replies immediately, or defers the reply if this node takes precedence.
    fn on_request(&mut self, theirs: RequestId, out: &mut Outbox<RicartAgrawalaMessage>) {
        let ours = RequestId::new(self.my_sequence_number, self.place.me);
        let mut we_go_first = self.phase.goes_before(ours, theirs);
        if self.phase == Phase::Waiting && ours.sequence == theirs.sequence {
            we_go_first &= !Mutant::RicartAgrawalaNoTieBreak.planted();
            we_go_first |= Mutant::RicartAgrawalaTieBothWait.planted();
        }
        if Mutant::RicartAgrawalaRepliesInside.planted() {
            we_go_first &= self.phase == Phase::Waiting;
        }
        // The published figure does this only where the reply is deferred: see the errata above.
        let seen = we_go_first || !self.as_published;
        if seen && !Mutant::RicartAgrawalaHighestNotSeen.planted() {
            self.highest_sequence_number_seen =
                self.highest_sequence_number_seen.max(theirs.sequence);
        }
        if we_go_first {
            self.reply_deferred.insert(theirs.node);
        } else {
            out.send(theirs.node, RicartAgrawalaMessage::Reply);
        }
    }

    fn enter_if_all_replied(&mut self, out: &mut Outbox<RicartAgrawalaMessage>) {
        if self.awaited.is_empty() {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}
