//! Carvalho and Roucairol 1983, *On mutual exclusion in computer networks*, CACM 26(2); with the
//! initial state of Singhal 1992 (*A dynamic information-structure mutual exclusion algorithm for
//! distributed systems*, IEEE TPDS 3(1)) as the variant `staircase`.
//!
//! **Channels**: any order. **Cost**: 0 to 2(N-1) messages per entry, synchronisation delay T.
//!
//! Like Ricart and Agrawala's algorithm, except that a permission is kept until the node that gave
//! it requests the critical section itself. A node sends its request only to the nodes whose
//! permission is missing. Of any two nodes, at most one has the permission of the other.
//!
//! A waiting node that has j's permission may receive a request of j that takes precedence. It
//! gives its own permission to j and thereby loses j's, so it sends its request to j as well, with
//! the same number. A node therefore sends its request to each other node at most once per entry,
//! and the permissions that a waiting node misses are exactly those that it has requested.
//!
//! **Initial state**: no node has any permission, so a node's first request goes to all others. A
//! node that starts inside has all permissions. With `staircase`, each node has the permissions of
//! all nodes after it, counted from home: the first node sends no requests, the last sends one to
//! each other node. The algorithms of the two papers differ in nothing else.
//!
//! **Invariants**: a node that is inside misses no permission, and a node that waits misses at
//! least one. Deferred replies exist only while a node waits or is inside.
//!
//! **Proved** for any number of nodes: mutual exclusion for both initial states (theorem
//! `carvalho_roucairol_mutual_exclusion` in `proofs/CarvalhoRoucairol.v`).
//!
//! **Forgetting**: without the staircase, a recreated node has no permissions. Having fewer than
//! before is safe, because a node requests every permission that it misses; each costs two
//! messages. So the state of any idle node may be forgotten. The highest sequence number seen is
//! kept, so that the node's next request comes after those of the nodes to which it gave its
//! permission. With the staircase, a recreated node would again have initial permissions that it
//! has since given up, so all nodes' states are forgotten together.
//!
//! **Deviations**: none known. The highest sequence number seen is always updated when a request
//! arrives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, NodeSet, Outbox,
    PHASE, Phase, Place, Preset, RequestId, Role, Start, Variant, VariantSet, Violation,
};

/// Of any two nodes, the one nearer to home starts with the permission of the other, as in Singhal
/// 1992.
pub const STAIRCASE: Variant = Variant::new(
    0,
    "staircase",
    "each node begins with the permissions of all nodes after it, as in Singhal 1992",
);

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CarvalhoRoucairol {
    place: Place<Complete>,
    phase: Phase,
    /// The sequence number of this node's latest request.
    my_sequence_number: u64,
    highest_sequence_number_seen: u64,
    /// The nodes whose permission this node does not have. While it waits, it has sent a request to
    /// each of them.
    missing: NodeSet,
    /// The nodes whose reply is deferred until this node's release.
    reply_deferred: NodeSet,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CarvalhoRoucairolMessage {
    /// From a node to the nodes whose permission it does not have: requests the critical section.
    /// Carries the request's sequence number.
    Request(u64),
    /// Permission to enter, valid until the sender requests the receiver's. Sent immediately, or on
    /// release if it was deferred.
    Reply,
}

use CarvalhoRoucairolMessage::{Reply, Request};

impl Message for CarvalhoRoucairolMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "REPLY"];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Reply => 1,
        }
    }

    fn examples() -> Vec<Self> {
        vec![Request(1), Request(u64::MAX), Reply]
    }
}

impl fmt::Display for CarvalhoRoucairolMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request(number) => write!(f, "REQUEST {number}"),
            Reply => f.write_str("REPLY"),
        }
    }
}

const OWN: Field = Field::new(
    "own",
    FieldKind::Number,
    "number of this node's latest request",
);
const SEEN: Field = Field::new("seen", FieldKind::Number, "highest number seen").role(Role::Clock);
const MISSING: Field = Field::new(
    "missing",
    FieldKind::Set,
    "nodes whose permission this node does not have",
)
.role(Role::Needs);
const DEFERRED: Field = Field::new(
    "deferred",
    FieldKind::Set,
    "nodes whose reply waits for this node's release",
)
.role(Role::Queue);

impl Algorithm for CarvalhoRoucairol {
    type Message = CarvalhoRoucairolMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "carvalho-roucairol",
        aliases: &["cr"],
        paper: "Carvalho, Roucairol 1983, On mutual exclusion in computer networks",
        channels: Channels::Any,
        variants: &[STAIRCASE],
        presets: &[Preset {
            name: "singhal-dynamic",
            paper: "Singhal 1992, A dynamic information-structure mutual exclusion algorithm for distributed systems",
            variants: &[STAIRCASE],
        }],
    };

    const NODES_MAX: usize = crate::algorithm::NODES_MAX_OF_BROADCAST;

    const COUNTS_REQUESTS: bool = true;

    fn new(config: &Config<Complete>) -> Self {
        let place = config.place.clone();
        let nodes = place.nodes();
        let staircase = config.variants.has(STAIRCASE);
        let mut missing = NodeSet::new(nodes);
        missing.extend(place.peers().filter(|&giver| {
            !begins_with_permission(place.me, giver, config.start, staircase, nodes)
        }));
        CarvalhoRoucairol {
            phase: config.start.phase(place.me),
            place,
            my_sequence_number: 0,
            highest_sequence_number_seen: 0,
            missing,
            reply_deferred: NodeSet::new(nodes),
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.my_sequence_number = self.highest_sequence_number_seen + 1;
        self.highest_sequence_number_seen = self.my_sequence_number;
        self.phase = Phase::Waiting;
        for giver in self.missing.iter() {
            out.send(giver, Request(self.my_sequence_number));
        }
        self.enter_if_none_is_missing(out);
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
            Request(number) => {
                if self.reply_deferred.contains(from) {
                    return refuse("its previous request has no reply yet");
                }
                if !RequestId::is_sequence(number) {
                    return refuse("a number that no request has");
                }
                self.on_request(RequestId::new(number, from), out);
            }
            Reply => {
                if self.phase != Phase::Waiting || !self.missing.remove(from) {
                    return refuse("no reply is expected from it");
                }
                self.enter_if_none_is_missing(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        for peer in self.reply_deferred.iter() {
            if !Mutant::CarvalhoRoucairolPermissionKeptOnRelease.planted() {
                self.missing.insert(peer);
            }
            out.send(peer, Reply);
        }
        self.reply_deferred.clear();
        Ok(())
    }

    fn clock(&self) -> u64 {
        self.highest_sequence_number_seen
    }

    fn set_clock(&mut self, clock: u64) {
        if !Mutant::CarvalhoRoucairolClockForgotten.planted() {
            self.highest_sequence_number_seen = self.highest_sequence_number_seen.max(clock);
        }
    }

    /// With the staircase, a recreated node would again have permissions that it has since given
    /// up.
    fn rests_alone(variants: VariantSet, _start: Start) -> bool {
        !variants.has(STAIRCASE) || Mutant::CarvalhoRoucairolGivenComesBack.planted()
    }

    fn is_at_rest(&self, config: &Config<Complete>) -> bool {
        let is_new = || *self == config.recreate::<Self>(self.clock());
        let rests_alone = Self::rests_alone(config.variants, config.start);
        self.phase == Phase::Idle && (rests_alone || is_new())
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&OWN, self.my_sequence_number.into());
        fields.add(&SEEN, self.highest_sequence_number_seen.into());
        fields.add(&MISSING, (&self.missing).into());
        fields.add(&DEFERRED, (&self.reply_deferred).into());
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if self.phase == Phase::Inside && !self.missing.is_empty() {
            return Err("a node is inside without all permissions");
        }
        if self.phase == Phase::Waiting && self.missing.is_empty() {
            return Err("a node waits although it has all permissions");
        }
        if self.phase == Phase::Idle && !self.reply_deferred.is_empty() {
            return Err("an idle node defers a reply");
        }
        if self.missing.contains(self.place.me) {
            return Err("a node misses its own permission");
        }
        Ok(())
    }
}

impl CarvalhoRoucairol {
    /// The identity of this node's latest request. Entries do not follow the order of identities.
    pub fn my_request(&self) -> RequestId {
        RequestId::new(self.my_sequence_number, self.place.me)
    }

    /// Replies immediately, or defers the reply if this node takes precedence.
    fn on_request(&mut self, theirs: RequestId, out: &mut Outbox<CarvalhoRoucairolMessage>) {
        if !Mutant::CarvalhoRoucairolHighestNotSeen.planted() {
            self.highest_sequence_number_seen =
                self.highest_sequence_number_seen.max(theirs.sequence);
        }
        let ours = RequestId::new(self.my_sequence_number, self.place.me);
        let mut we_go_first = self.phase.goes_before(ours, theirs);
        if self.phase == Phase::Waiting && ours.sequence == theirs.sequence {
            we_go_first &= !Mutant::CarvalhoRoucairolNoTieBreak.planted();
        }
        if we_go_first {
            self.reply_deferred.insert(theirs.node);
            return;
        }
        out.send(theirs.node, Reply);
        if self.phase == Phase::Idle && Mutant::CarvalhoRoucairolPermissionKept.planted() {
            return;
        }
        let had_theirs = self.missing.insert(theirs.node);
        // If their permission was missing, this node has already requested it.
        let asks_again = !Mutant::CarvalhoRoucairolNotAskedAgain.planted();
        if had_theirs && self.phase == Phase::Waiting && asks_again {
            out.send(theirs.node, Request(self.my_sequence_number));
        }
    }

    fn enter_if_none_is_missing(&mut self, out: &mut Outbox<CarvalhoRoucairolMessage>) {
        if self.missing.is_empty() {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}

/// Whether `me` has the permission of `giver` initially. Of any two nodes at most one has the
/// other's; with the staircase exactly one.
fn begins_with_permission(
    me: NodeId,
    giver: NodeId,
    start: Start,
    staircase: bool,
    nodes: usize,
) -> bool {
    match start.inside {
        Some(inside) if inside == me => true,
        Some(inside) if inside == giver => false,
        _ => {
            let step = |node: NodeId| (node.index() + nodes - start.home.index()) % nodes;
            staircase && (step(me) < step(giver) || Mutant::CarvalhoRoucairolBothBegin.planted())
        }
    }
}
