//! Lamport 1978, *Time, clocks, and the ordering of events in a distributed system*, CACM 21(7):
//! the algorithm of five rules that orders requests for a resource.
//!
//! **Channels**: fifo (over channels that do not preserve order, two nodes can be inside).
//! **Cost**: exactly 3(N-1) messages per entry, synchronisation delay T.
//!
//! A node sends its request to all others, and tells all of them again when it leaves. Each node
//! thus keeps a queue of all requests that it knows of, ordered by timestamp. A node enters when
//! its own request is first and it has received, from every other node, a message that is later
//! than its request: then no earlier request can still be in flight. The acknowledgement guarantees
//! that such a message arrives.
//!
//! Every message carries its sender's clock, so any kind of message can be the later one: a REQUEST
//! or a RELEASE as well as an ACK.
//!
//! **Invariants**: the queue is in order and has at most one request per node. A node's own request
//! is in its queue exactly while the node waits or is inside. A node is inside exactly when its
//! request is first and a later message has arrived from every other node.
//!
//! **Proved** for any number of nodes: mutual exclusion, also with `spare-acks` (theorem
//! `lamport_mutual_exclusion` in `proofs/Lamport.v`).
//!
//! **Deviations**: the clock only orders requests, so only a request advances it (as in Lodha and
//! Kshemkalyani 2000, §1). Every message carries the clock, and the receiver sets its own clock to
//! at least that value. "Timestamped later" then means that the message carries the timestamp of
//! the receiver's own request or a later one: every further request of the sender comes after it in
//! the order. RELEASE also names the request that it ends, so that it is found without a scan.
//!
//! **Forgetting**: an idle node with an empty queue needs to keep only its clock. It sends the
//! clock with every message, and a clock may run ahead. The value that was shown to all others
//! (`shown_to_all`) is forgotten too; with `spare-acks` the node may then send an ACK that it could
//! have saved. Because other messages count as later too, a node may enter, leave and be forgotten
//! before an ACK arrives. An ACK is therefore refused only by a node whose clock is still 0.
//!
//! The variant `spare-acks` is the remark in rule 2: no ACK is needed if a later message, which can
//! be a REQUEST or a RELEASE, was already sent to the requester.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, NodeSet, Outbox,
    PHASE, Phase, Place, RequestId, Role, Start, Variant, VariantSet, Violation,
};

/// Sends no ACK to a requester to which a later message was already sent.
pub const SPARE_ACKS: Variant = Variant::new(
    0,
    "spare-acks",
    "no ACK where something later was sent before (remark in rule 2): 2(N-1) to 3(N-1) messages",
);

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lamport {
    place: Place<Complete>,
    spare_acks: bool,
    phase: Phase,
    clock: u64,
    /// The timestamp of this node's latest request.
    my_timestamp: u64,
    /// The clock value that all others have received: that of the last REQUEST or RELEASE.
    shown_to_all: u64,
    /// All known requests that have not been released, in order.
    queue: VecDeque<RequestId>,
    /// The nodes whose requests are in the queue.
    asking: NodeSet,
    /// The nodes from which a message later than this node's request has arrived. Their next
    /// requests come after it.
    heard_later: NodeSet,
}

/// Messages between nodes. All carry the sender's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LamportMessage {
    /// From a node to all others: requests the critical section. Receivers enqueue the request and
    /// acknowledge it.
    Request {
        /// The sender's clock, advanced for this request: the request's timestamp.
        time: u64,
    },
    /// To a requester: its request is in the sender's queue.
    Ack {
        /// The sender's clock.
        time: u64,
    },
    /// From a node that left to all others, which remove its request from their queues.
    Release {
        /// The sender's clock.
        time: u64,
        /// The timestamp of the request that ends.
        request: u64,
    },
}

use LamportMessage::{Ack, Release, Request};

impl LamportMessage {
    fn time(&self) -> u64 {
        match *self {
            Request { time } | Ack { time } | Release { time, .. } => time,
        }
    }
}

impl Message for LamportMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "ACK", "RELEASE"];

    fn kind(&self) -> usize {
        match self {
            Request { .. } => 0,
            Ack { .. } => 1,
            Release { .. } => 2,
        }
    }

    fn examples() -> Vec<Self> {
        vec![
            Request { time: 1 },
            Request { time: u64::MAX },
            Ack { time: 2 },
            Release {
                time: 3,
                request: 1,
            },
        ]
    }
}

impl fmt::Display for LamportMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.time())?;
        if let Release { request, .. } = self {
            write!(f, " of {request}")?;
        }
        Ok(())
    }
}

const CLOCK: Field = Field::new("clock", FieldKind::Number, "logical clock").role(Role::Clock);
const OWN: Field = Field::new(
    "own",
    FieldKind::Number,
    "timestamp of this node's latest request",
);
const QUEUE: Field = Field::new(
    "queue",
    FieldKind::Requests,
    "known requests that are not released, in order",
)
.role(Role::Queue);
const HEARD_LATER: Field = Field::new(
    "heard-later",
    FieldKind::Set,
    "nodes that sent a message later than this node's request",
)
.role(Role::Answered);

impl Algorithm for Lamport {
    type Message = LamportMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "lamport",
        aliases: &[],
        paper: "Lamport 1978, Time, clocks, and the ordering of events in a distributed system",
        channels: Channels::Fifo,
        variants: &[SPARE_ACKS],
        presets: &[],
    };

    const NODES_MAX: usize = crate::algorithm::NODES_MAX_OF_BROADCAST;

    const COUNTS_REQUESTS: bool = true;

    fn new(config: &Config<Complete>) -> Self {
        let nodes = config.place.nodes();
        let mut node = Lamport {
            place: config.place.clone(),
            spare_acks: config.variants.has(SPARE_ACKS),
            phase: config.start.phase(config.place.me),
            clock: 0,
            my_timestamp: 0,
            shown_to_all: 0,
            queue: VecDeque::new(),
            asking: NodeSet::new(nodes),
            heard_later: NodeSet::new(nodes),
        };
        // As in the paper, in which one node is initially granted the resource: every queue has a
        // request of that node that is older than any clock.
        if let Some(inside) = config.start.inside {
            node.queue.push_back(RequestId::new(0, inside));
            node.asking.insert(inside);
        }
        if node.phase == Phase::Inside {
            node.heard_later.extend(node.place.peers());
        }
        node
    }

    /// Rule 1.
    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        self.clock += 1; // IR1
        self.my_timestamp = self.clock;
        self.shown_to_all = self.clock;
        self.enqueue(self.my_request());
        for peer in self.place.peers() {
            out.send(peer, Request { time: self.clock });
        }
        self.enter_if_first(out);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        self.check(from, &message)
            .map_err(|reason| Violation::unexpected(from, &message, reason))?;
        let sent = RequestId::new(message.time(), from);
        if !Mutant::LamportClockNotSet.planted() {
            self.clock = self.clock.max(sent.sequence); // IR2
        }
        match message {
            Request { .. } => {
                self.enqueue(sent);
                // Rule 2
                let forgotten = self.phase == Phase::Idle && Mutant::LamportAckForgotten.planted();
                if !forgotten && (!self.spare_acks || self.shown_to_all < sent.sequence) {
                    out.send(from, Ack { time: self.clock });
                }
            }
            Ack { .. } => {}
            Release { request, .. } => {
                // Rule 4
                if let Ok(place) = self.queue.binary_search(&RequestId::new(request, from)) {
                    self.queue.remove(place);
                    self.asking.remove(from);
                }
            }
        }
        let is_later = sent.sequence >= self.my_timestamp || Mutant::LamportHearsEarlier.planted();
        if self.phase == Phase::Waiting && is_later {
            self.heard_later.insert(from);
        }
        self.enter_if_first(out);
        Ok(())
    }

    /// Rule 3.
    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        self.shown_to_all = self.clock;
        self.queue.pop_front();
        self.asking.remove(self.place.me);
        self.heard_later.clear();
        let (time, request) = (self.clock, self.my_timestamp);
        let forgotten = usize::from(Mutant::LamportReleaseNotToOne.planted());
        for peer in self.place.peers().skip(forgotten) {
            out.send(peer, Release { time, request });
        }
        Ok(())
    }

    fn request_id(&self) -> Option<RequestId> {
        Some(self.my_request())
    }

    fn clock(&self) -> u64 {
        self.clock
    }

    fn set_clock(&mut self, clock: u64) {
        if !Mutant::LamportClockForgotten.planted() {
            self.clock = self.clock.max(clock);
        }
    }

    fn rests_alone(_variants: VariantSet, _start: Start) -> bool {
        true
    }

    fn is_at_rest(&self, _config: &Config<Complete>) -> bool {
        self.phase == Phase::Idle && self.queue.is_empty()
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&CLOCK, self.clock.into());
        fields.add(&OWN, self.my_timestamp.into());
        fields.add(&QUEUE, (&self.queue).into());
        fields.add(&HEARD_LATER, (&self.heard_later).into());
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if !self.queue.iter().is_sorted_by(|a, b| a < b) {
            return Err("the queue is out of order");
        }
        if self.queue.len() != self.asking.len() {
            return Err("the queue has more than one request of a node");
        }
        let asks = self.phase != Phase::Idle;
        if self.queue.binary_search(&self.my_request()).is_ok() != asks {
            return Err("the own request is queued exactly while the node waits or is inside");
        }
        if asks && (self.phase == Phase::Inside) != self.is_granted() {
            return Err("a node is inside exactly when rule 5 grants it");
        }
        if !asks && !self.heard_later.is_empty() {
            return Err("an idle node has received a message later than its request");
        }
        Ok(())
    }
}

impl Lamport {
    /// The identity of this node's latest request, or (0, node) before the first.
    pub fn my_request(&self) -> RequestId {
        RequestId::new(self.my_timestamp, self.place.me)
    }

    /// Returns an error with the reason if no correct peer sends this message in this state.
    fn check(&self, from: NodeId, message: &LamportMessage) -> Result<(), &'static str> {
        if self.heard_later.contains(from) && message.time() < self.my_timestamp {
            return Err("its clock runs backwards");
        }
        match *message {
            Request { time } | Ack { time } if !RequestId::is_sequence(time) => {
                Err("a time that no clock shows")
            }
            Request { .. } if self.asking.contains(from) => {
                Err("its previous request has not been released")
            }
            // Each request advances the clock beyond every value sent before.
            Request { time } if self.heard_later.contains(from) && time <= self.my_timestamp => {
                Err("its clock does not run on")
            }
            // A node that started inside may leave at time 0.
            Release { time, request }
                if time < request || !(time == 0 || RequestId::is_sequence(time)) =>
            {
                Err("a time that no clock shows")
            }
            Release { request, .. } => {
                let request = RequestId::new(request, from);
                let known = self.queue.binary_search(&request).is_ok();
                known.then_some(()).ok_or("it has no such request")
            }
            Ack { .. } if self.clock == 0 => Err("this node has never requested"),
            Request { .. } | Ack { .. } => Ok(()),
        }
    }

    fn enqueue(&mut self, request: RequestId) {
        let mut place = self.queue.partition_point(|queued| *queued < request);
        if Mutant::LamportNoTieBreak.planted() {
            let is_earlier = |queued: &RequestId| queued.sequence <= request.sequence;
            place = self.queue.partition_point(is_earlier);
        }
        self.queue.insert(place, request);
        self.asking.insert(request.node);
    }

    /// Rule 5.
    fn is_granted(&self) -> bool {
        self.queue.front() == Some(&self.my_request())
            && self.heard_later.len() + 1 == self.place.nodes()
    }

    fn enter_if_first(&mut self, out: &mut Outbox<LamportMessage>) {
        if self.phase == Phase::Waiting && self.is_granted() {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}
