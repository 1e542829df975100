//! Lamport 1978, *Time, clocks, and the ordering of events in a distributed system*, CACM 21(7):
//! the algorithm of five rules that orders requests for a resource.
//!
//! **Channels**: fifo (with channels that do not keep order two nodes can be inside). **Cost**:
//! exactly 3(N-1) messages an entry, synchronisation delay T.
//!
//! Who wants in tells everybody, and tells everybody again when it leaves; so each node has the
//! queue of all requests that it has heard of, in the order of their timestamps. A node enters
//! when its own request is first, and when it has heard from everybody something that is later
//! than its request: then no earlier request can be under way any more. The acknowledgement is
//! there so that something later comes.
//!
//! Every message shows its sender's clock, so any of them is heard as something later: also a
//! REQUEST and a RELEASE, not only an ACK.
//!
//! **Invariants**: the queue is in order and has at most one request of each node; the own one
//! is in it exactly while the node waits or is inside; it is inside exactly when its request is
//! first and something later came from everybody.
//!
//! **Deviations**: The clock orders requests and nothing else, so only a request advances it (as in
//! Lodha and Kshemkalyani 2000, §1); every message shows it, and who receives one sets its own clock
//! at least as far. "Timestamped later" then means that the message shows the time of the own
//! request or a later one: whatever its sender asks for from then on comes after it in the
//! order. RELEASE also names the request that it ends, which is so found without a scan.
//!
//! **Forgetting**: an idle node with an empty queue keeps nothing but the clock. It shows the clock in
//! whatever it sends, and clocks may run ahead. What all others have been shown is forgotten, too: `spare-acks` then
//! sends an ACK that it could have spared. An ACK may arrive after all this, since other messages count as
//! well; so one is refused only by a node whose clock never ran.
//!
//! The variant `spare-acks` is the remark in rule 2: no ACK is needed where something later was
//! sent before, which can be the own REQUEST or a RELEASE.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Info, Message, NodeId, NodeSet, Outbox, Phase, Place, RequestId,
    Start, Variant, VariantSet, Violation,
};

/// No ACK to whom something later was sent before.
pub const SPARE_ACKS: Variant = Variant {
    bit: 0,
    name: "spare-acks",
    about: "no ACK where something later was sent before (remark in rule 2): 2(N-1) to 3(N-1) messages",
    excludes: &[],
};

/// One node's part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lamport {
    place: Place<Complete>,
    spare_acks: bool,
    phase: Phase,
    clock: u64,
    /// The timestamp of the own request, the latest one.
    my_timestamp: u64,
    /// The clock as all others have been shown it: by the last REQUEST or RELEASE.
    shown_to_all: u64,
    /// All requests that this node knows of and that have not been released, in order.
    queue: VecDeque<RequestId>,
    /// Whose requests are in the queue.
    asking: NodeSet,
    /// From whom something later than the own request came: what they ask for next comes after it.
    heard_later: NodeSet,
}

/// What nodes say to each other; all carry the sender's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LamportMessage {
    /// From a node that wants in, to all others, which put it into their queues and acknowledge it.
    Request {
        /// The sender's clock, which this request has advanced: the request's timestamp.
        time: u64,
    },
    /// To a node that asked: its request is in the queue here.
    Ack {
        /// The sender's clock.
        time: u64,
    },
    /// From a node that left, to all others, which take its request out of their queues.
    Release {
        /// The sender's clock.
        time: u64,
        /// The timestamp of the request that ends here.
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
        // As in the paper, which lets one node be granted the resource at first: everybody's queue
        // has a request of that node that is older than any clock.
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
            return Err("an idle node has heard something later than its request");
        }
        Ok(())
    }
}

impl Lamport {
    /// The identity of the own request, the latest one; (0, node) before the first.
    pub fn my_request(&self) -> RequestId {
        RequestId::new(self.my_timestamp, self.place.me)
    }

    /// Says why no correct peer sends this now.
    fn check(&self, from: NodeId, message: &LamportMessage) -> Result<(), &'static str> {
        if self.heard_later.contains(from) && message.time() < self.my_timestamp {
            return Err("its clock runs backwards");
        }
        match *message {
            Request { time } | Ack { time } if !RequestId::is_sequence(time) => {
                Err("a time that no clock shows")
            }
            Request { .. } if self.asking.contains(from) => {
                Err("it asked before and has not left since")
            }
            // Each request advances the clock beyond what it showed before.
            Request { time } if self.heard_later.contains(from) && time <= self.my_timestamp => {
                Err("its clock does not run on")
            }
            // Who started inside may leave at time 0.
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
            Ack { .. } if self.clock == 0 => Err("this node has never asked"),
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

impl fmt::Display for Lamport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clock={} own={} queue={:?} heard-later={}",
            self.phase, self.clock, self.my_timestamp, self.queue, self.heard_later,
        )
    }
}
