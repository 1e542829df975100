//! Lodha and Kshemkalyani 2000, *A fair distributed mutual exclusion algorithm*, IEEE TPDS 11(6),
//! Fig. 2 with repairs.
//!
//! **Channels**: fifo, which remains necessary: a REQUEST that overtakes the REPLY sent before it
//! looks concurrent. Here the late REPLY is refused. Without that check, two nodes can be inside
//! even with N = 2.
//! **Cost**: N-1 REQUESTs, N-1-x REPLYs where x is the number of requests concurrent with this one
//! (Definition 1), and one FLUSH if one of them is later in the order (§4.1). The cost is exact in
//! every interleaving, also with the repairs. Synchronisation delay T.
//! **Fairness**: entries follow the order of their requests' identities, in every interleaving.
//!
//! A node sends its request to all others, as in Ricart and Agrawala's algorithm. But if two
//! requests cross, each is the answer to the other, and neither node replies. A node that leaves
//! names its request in a FLUSH to the next of the crossing requests, and in a REPLY to each node
//! whose request came after its answer. Since nodes enter in order, the receiver knows that all
//! requests up to the one named are satisfied.
//!
//! **Invariants**: LRQ is in order and has no request that is known to be satisfied. While a node
//! waits or is inside, its own request is in its LRQ. A node is inside exactly when all nodes have
//! answered (RV) and its request is first in LRQ. Each peer answers a request exactly once, with a
//! REPLY or a REQUEST. A deferred request comes after the node's own.
//!
//! **Proved** for any number of nodes: mutual exclusion, also with `clock-everywhere` (theorem
//! `lodha_kshemkalyani_mutual_exclusion` in `proofs/LodhaKshemkalyani.v`).
//!
//! **Errata**. Fig. 2 as printed (`as-published`) deadlocks, and lets two nodes inside, at N = 3.
//! Four repairs, none of which costs a message, follow; `repair-1` to `repair-4` add one each to
//! the printed rules. The scenario that demonstrates each fault
//! is in parentheses; the first three have a counterpart that runs with the repair:
//!
//! 1. RcvFlush step 1 is left out: a FLUSH does not set RV. A FLUSH that is overtaken by another
//!    logical reply arrives during the receiver's next request, and would count as an answer to
//!    that: two nodes inside, with six requests. A FLUSH that matters finds RV already set, by the
//!    REQUEST of the same sender. (`lodha-kshemkalyani-as-published-slow-flush`)
//! 2. A node remembers the latest request that was named to it as satisfied (`done`). A REQUEST at
//!    or before it counts as an answer but is not enqueued. Otherwise, if a FLUSH arrives before a
//!    REQUEST that it makes obsolete (from another node, so fifo does not help), that request stays
//!    in LRQ forever: a deadlock with one request each.
//!    (`lodha-kshemkalyani-as-published-late-request`)
//! 3. REQUEST names the sender's last satisfied request, as REPLY does. Otherwise, if a node makes
//!    its next request before a peer's REQUEST arrives that it had to answer, it never names its
//!    satisfied request to that peer, since the two requests count as concurrent: a deadlock with
//!    four requests. (`lodha-kshemkalyani-as-published-asks-again`)
//! 4. A node's own numbers count as seen. Otherwise it uses an identity twice.
//!    (`lodha-kshemkalyani-as-published-number-twice`)
//!
//! The cost given in §1 and §5, 2(N-1)-x, omits the FLUSH; §4.1 is correct.
//!
//! **Deviations**: RV and LRQ are also cleared when the node leaves. Nothing reads them before its
//! next request (InvMutEx 2 and 6), and an idle node keeps neither. A node that starts inside does
//! so for its request (0, node).
//!
//! **Forgetting**: only all nodes together. A node that has left names its request in a REPLY to
//! later requesters. That REPLY may be the only message from which a third node learns that the
//! requests before its own are satisfied.
//!
//! **The improvements of §5**. The third is the variant `clock-everywhere`. The first is the
//! variant `one-reply`: a node that leaves answers only the first of the deferred requests, and
//! that node carries the other answers on when it leaves itself. An exit then costs at most two
//! messages, but they are long. The paper gives no further detail; [`ONE_REPLY`] describes what is
//! needed. The second is the variant `late-reply`: a node that will request again leaves the
//! deferred requests unanswered until then ([`LATE_REPLY`]). The lab's search tells nodes whether
//! they will, and holds them to it (`--known-requests`). Without that knowledge it is not live: at
//! N = 2 with one request each, the second waits forever.

use std::collections::VecDeque;

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Fields, Info, NodeId, NodeSet, Outbox, Phase, Place, RequestId,
    Violation,
};

mod check;
mod fields;
mod late_reply;
mod message;
mod one_reply;
mod variants;

pub use message::{Errand, LodhaKshemkalyaniMessage};
pub use variants::{AS_PUBLISHED, CLOCK_EVERYWHERE, LATE_REPLY, ONE_REPLY, REPAIRS};

use LodhaKshemkalyaniMessage::{Flush, Reply, Request};
use late_reply::Late;

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LodhaKshemkalyani {
    place: Place<Complete>,
    /// The repairs in force; see the module documentation.
    repaired: [bool; 4],
    clock_everywhere: bool,
    one_reply: bool,
    /// The only node whose request may have the number 0.
    started_inside: Option<NodeId>,
    phase: Phase,
    /// The sequence number of this node's latest request.
    my_sequence_number: u64,
    highest_sequence_number_seen: u64,
    /// The nodes that have answered this node's request, including itself. Empty while idle.
    rv: NodeSet,
    /// This node's request and those concurrent with it, in order. Empty while idle.
    lrq: VecDeque<RequestId>,
    /// The nodes whose request arrived after they had answered this node's own. They are answered
    /// when this node leaves.
    deferred: NodeSet,
    /// This node's request that was satisfied last.
    last_satisfied: Option<RequestId>,
    /// The latest request that this node knows to be satisfied. All requests before it are
    /// satisfied too.
    done: Option<RequestId>,
    /// With `one-reply`: answers to give or to carry on when this node leaves, including its own to
    /// the deferred requests, in order.
    errands: Vec<Errand>,
    /// With `one-reply`: the requests whose answers this node gave to others to carry when it last
    /// left, in the order of their nodes.
    entrusted: Vec<RequestId>,
    /// With `late-reply`: the deferred requests that this node keeps.
    late: Option<Box<Late>>,
}

impl Algorithm for LodhaKshemkalyani {
    type Message = LodhaKshemkalyaniMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "lodha-kshemkalyani",
        aliases: &["fair"],
        paper: "Lodha, Kshemkalyani 2000, A fair distributed mutual exclusion algorithm",
        channels: Channels::Fifo,
        variants: &[
            AS_PUBLISHED,
            CLOCK_EVERYWHERE,
            ONE_REPLY,
            LATE_REPLY,
            REPAIRS[0],
            REPAIRS[1],
            REPAIRS[2],
            REPAIRS[3],
        ],
        presets: &[],
    };

    const NODES_MAX: usize = crate::algorithm::NODES_MAX_OF_BROADCAST;

    const COUNTS_REQUESTS: bool = true;

    fn new(config: &Config<Complete>) -> Self {
        let nodes = config.place.nodes();
        let mut node = LodhaKshemkalyani {
            place: config.place.clone(),
            repaired: REPAIRS
                .map(|repair| !config.variants.has(AS_PUBLISHED) || config.variants.has(repair)),
            clock_everywhere: config.variants.has(CLOCK_EVERYWHERE),
            one_reply: config.variants.has(ONE_REPLY),
            started_inside: config.start.inside,
            phase: config.start.phase(config.place.me),
            my_sequence_number: 0,
            highest_sequence_number_seen: 0,
            rv: NodeSet::new(nodes),
            lrq: VecDeque::new(),
            deferred: NodeSet::new(nodes),
            last_satisfied: None,
            done: None,
            errands: Vec::new(),
            entrusted: Vec::new(),
            late: config.variants.has(LATE_REPLY).then(Box::default),
        };
        if node.phase == Phase::Inside {
            // Its request (0, node) precedes all others, and all nodes have answered it.
            node.rv.extend(NodeId::all(nodes));
            node.lrq.push_back(node.my_request());
        }
        node
    }

    /// InvMutEx.
    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        self.my_sequence_number = self.highest_sequence_number_seen + 1; // InvMutEx 1
        if self.repaired[3] && !Mutant::LodhaKshemkalyaniOwnNotSeen.planted() {
            self.highest_sequence_number_seen = self.my_sequence_number; // repair (4)
        }
        let request = self.my_request();
        // InvMutEx 2 to 4
        self.lrq.clear();
        self.lrq.push_back(request);
        // InvMutEx 6
        self.rv.clear();
        self.rv.insert(self.place.me);
        self.count_kept();
        let tells = self.repaired[2] && !Mutant::LodhaKshemkalyaniSatisfiedNotTold.planted();
        let satisfied = self.last_satisfied.filter(|_| tells); // repair (3)
        let mut entrusted = self.entrusted.drain(..).peekable();
        for peer in self.place.peers() {
            let had_yours = entrusted.next_if(|theirs| theirs.node == peer);
            let message = Request {
                request,
                satisfied,
                had_yours: had_yours.map(|theirs| theirs.sequence),
            };
            out.send(peer, message); // InvMutEx 5
        }
        drop(entrusted);
        self.check_execute_cs(out);
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
        match message {
            Request {
                request,
                satisfied,
                had_yours,
            } => {
                if !Mutant::LodhaKshemkalyaniHighestNotSeen.planted() {
                    self.see(request.sequence); // RcvReq 1
                }
                self.learn(satisfied); // repair (3)
                self.answer(request, had_yours, out);
            }
            Reply {
                satisfied,
                highest,
                errands,
            } => {
                self.see(highest);
                self.rv.insert(from); // RcvReply 1
                self.learn(satisfied); // RcvReply 2
                self.take_errands(errands);
            }
            Flush {
                satisfied,
                highest,
                errands,
            } => {
                self.see(highest);
                if !self.repaired[0] || Mutant::LodhaKshemkalyaniFlushAnswers.planted() {
                    self.rv.insert(from); // RcvFlush 1, left out by repair (1)
                }
                self.learn(Some(satisfied)); // RcvFlush 2
                self.take_errands(errands);
            }
        }
        self.check_execute_cs(out); // RcvReq 2a, RcvReply 3, RcvFlush 3
        Ok(())
    }

    /// FinCS.
    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        let next = if Mutant::LodhaKshemkalyaniFlushToLast.planted() {
            self.lrq.range(1..).next_back().copied()
        } else {
            self.lrq.get(1).copied()
        };
        self.last_satisfied = Some(self.my_request());
        self.lrq.clear();
        self.rv.clear();
        self.learn(self.last_satisfied);
        if self.one_reply {
            self.hand_on(next, out);
        } else {
            if let Some(next) = next {
                out.send(next.node, self.flush(Vec::new())); // FinCS 1
            }
            if self.keeps_deferred() {
                self.deferred.clear();
                return Ok(());
            }
            let forgotten = usize::from(Mutant::LodhaKshemkalyaniReplyForgotten.planted());
            for peer in self.deferred.iter().skip(forgotten) {
                out.send(peer, self.reply(Vec::new())); // FinCS 2
            }
        }
        self.deferred.clear();
        Ok(())
    }

    fn expect_request(&mut self, again: bool) {
        if let Some(late) = &mut self.late {
            late.stops = !again;
        }
    }

    fn owes_request(&self) -> bool {
        self.phase == Phase::Idle && self.late.as_ref().is_some_and(|late| !late.kept.is_empty())
    }

    fn request_id(&self) -> Option<RequestId> {
        Some(self.my_request())
    }

    fn clock(&self) -> u64 {
        self.highest_sequence_number_seen
    }

    fn set_clock(&mut self, clock: u64) {
        self.see(clock);
    }

    fn fields(&self, fields: &mut dyn Fields) {
        self.name_fields(fields);
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if !self.lrq.iter().is_sorted_by(|a, b| a < b) {
            return Err("LRQ is out of order");
        }
        if !self.is_fully_repaired() {
            return Ok(());
        }
        if self.phase == Phase::Idle {
            let clear = self.rv.is_empty() && self.lrq.is_empty() && self.deferred.is_empty();
            return if clear && self.errands.is_empty() {
                Ok(())
            } else {
                Err("an idle node stores answers or requests")
            };
        }
        if (self.phase == Phase::Inside) != self.may_execute_cs() {
            return Err("a node is inside exactly when all have answered and its request is first");
        }
        if self.lrq.binary_search(&self.my_request()).is_err() {
            return Err("the own request is not in LRQ");
        }
        if self.lrq.front().copied() <= self.done {
            return Err("LRQ has a request that is known to be satisfied");
        }
        let ordered = self.errands.is_sorted_by(|a, b| a < b);
        if !ordered || self.errands.iter().any(|e| e.request < self.my_request()) {
            return Err("an errand to a request before the own one, or errands out of order");
        }
        Ok(())
    }
}

impl LodhaKshemkalyani {
    /// The identity of this node's latest request, or (0, node) before the first.
    pub fn my_request(&self) -> RequestId {
        RequestId::new(self.my_sequence_number, self.place.me)
    }

    /// This node's request and the concurrent ones that it knows of, in order.
    pub fn lrq(&self) -> &VecDeque<RequestId> {
        &self.lrq
    }

    /// This node's request that was satisfied last: the node has left the critical section since.
    pub fn last_satisfied(&self) -> Option<RequestId> {
        self.last_satisfied
    }

    /// Whether all repairs are in force. Otherwise correct peers send what should not be.
    fn is_fully_repaired(&self) -> bool {
        self.repaired == [true; 4]
    }

    /// RcvReq 2 and 3.
    fn answer(
        &mut self,
        request: RequestId,
        had_yours: Option<u64>,
        out: &mut Outbox<LodhaKshemkalyaniMessage>,
    ) {
        if self.phase == Phase::Idle {
            out.send(request.node, self.reply(Vec::new())); // RcvReq 3
            return;
        }
        let concurrent = had_yours != Some(self.my_sequence_number) && self.rv.insert(request.node);
        if !concurrent {
            // RcvReq 2b
            self.deferred.insert(request.node);
            if let Some(late) = &mut self.late {
                late.kept.push(request);
            }
            if self.one_reply {
                let answers = self.place.me;
                let errand = Errand { request, answers };
                let place = self.errands.partition_point(|other| *other < errand);
                self.errands.insert(place, errand);
            }
        } else if !self.repaired[1] || Some(request) > self.done {
            // RcvReq 2a, with repair (2)
            let mut place = self.lrq.partition_point(|queued| *queued < request);
            if Mutant::LodhaKshemkalyaniNoTieBreak.planted() {
                let is_earlier = |queued: &RequestId| queued.sequence <= request.sequence;
                place = self.lrq.partition_point(is_earlier);
            }
            self.lrq.insert(place, request);
        }
    }

    /// This node's answer to a peer whose request no longer waits for this node's own.
    fn reply(&self, errands: Vec<Errand>) -> LodhaKshemkalyaniMessage {
        Reply {
            satisfied: self.last_satisfied,
            highest: self.highest_to_tell(),
            errands,
        }
    }

    /// Announces that this node's latest request is satisfied.
    fn flush(&self, errands: Vec<Errand>) -> LodhaKshemkalyaniMessage {
        Flush {
            satisfied: self.my_request(),
            highest: self.highest_to_tell(),
            errands,
        }
    }

    fn see(&mut self, sequence: u64) {
        self.highest_sequence_number_seen = self.highest_sequence_number_seen.max(sequence);
    }

    /// The highest number seen as sent in REPLY and FLUSH, or 0 without `clock-everywhere`.
    fn highest_to_tell(&self) -> u64 {
        if self.clock_everywhere {
            self.highest_sequence_number_seen
        } else {
            0
        }
    }

    /// Records that this request, and all before it, are satisfied.
    fn learn(&mut self, satisfied: Option<RequestId>) {
        while self
            .lrq
            .front()
            .is_some_and(|first| Some(*first) <= satisfied)
        {
            self.lrq.pop_front();
        }
        if self.repaired[1] && !Mutant::LodhaKshemkalyaniDoneForgotten.planted() {
            self.done = self.done.max(satisfied); // repair (2)
        }
    }

    /// CheckExecuteCS.
    fn may_execute_cs(&self) -> bool {
        self.rv.len() == self.place.nodes() && self.lrq.front() == Some(&self.my_request())
    }

    fn check_execute_cs(&mut self, out: &mut Outbox<LodhaKshemkalyaniMessage>) {
        if self.phase == Phase::Waiting && self.may_execute_cs() {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}
