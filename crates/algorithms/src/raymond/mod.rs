//! Raymond 1989, *A tree-based algorithm for distributed mutual exclusion*, ACM TOCS 7(1).
//!
//! **Channels**: any order. Recovery (§8) needs fifo, or the variant `second-wait`.
//! **Cost**: at most 2D messages per entry, D being the tree's diameter; 4(N-1)/N when all nodes
//! always want to enter. Messages do not grow with N, and a node's state grows only with the number
//! of its neighbours.
//!
//! Nodes form a tree and exchange messages only with their neighbours. Each node knows which
//! neighbour is in the direction of the privilege (HOLDER), and sends that neighbour one request on
//! behalf of all the nodes that have requested the privilege from it. The privilege comes back
//! along the same edges.
//!
//! **Invariants**: USING implies HOLDER = self. A node that holds the privilege without using it
//! has an empty REQUEST_Q. A node that does not hold it has ASKED set exactly if its REQUEST_Q is
//! not empty (after a recovery ASKED may be set with an empty queue). No node is in a REQUEST_Q
//! twice.
//!
//! **Proved** for any number of nodes, without recovery: mutual exclusion on any graph (theorem
//! `raymond_mutual_exclusion` in `proofs/Raymond.v`, and `RaymondInitialize.v` for `initialize`).
//! Without `initialize`, on any tree: the invariants above, that no message of a correct neighbour
//! is refused, and that there is no deadlock (`proofs/RaymondTree.v`).
//!
//! **Variants** of the paper: `piggyback` (§6.1), `greedy` (§6.2), `initialize` (§7).
//!
//! **Deviations**: an arriving PRIVILEGE sets ASKED to false immediately, not only when it is
//! passed on. The difference is visible only at a node that recovered and has an empty REQUEST_Q. A
//! node that wants to enter before INITIALIZE has reached it waits in its own REQUEST_Q until then.
//!
//! **Errata**: in §8.1 the conclusions of (3) and (4) are interchanged: X in REQUEST_Q of Y means
//! that X *has* asked, as §8.3 says. As printed (`as-published`), a recovered node waits forever
//! for an answer to a request that it never made. §8.6 claims that duplicate requests correct
//! themselves. After two recoveries (`duplicates`) the privilege can travel back and forth forever,
//! so each request is enqueued once. For what §8 assumes and leaves open, see `recovery.rs`.

mod fields;
mod invariants;
mod message;
mod recovery;
mod variants;

use std::collections::VecDeque;

use crate::mutant::Mutant;
use crate::shape::Tree;
use crate::{
    Algorithm, Channels, Config, Fields, Info, NodeId, Outbox, Phase, Place, Snapshot, VariantSet,
    Violation,
};
use recovery::Recovery;
use variants::Rules;

pub use message::{RaymondMessage, Relation};
pub use variants::{
    AS_PUBLISHED, COUNTERS, DUPLICATES, GREEDY, INITIALIZE, PIGGYBACK, REPAIRS, SECOND_WAIT,
};

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Raymond {
    place: Place<Tree>,
    /// The neighbour in the direction of the privilege, or this node itself. `None` before
    /// INITIALIZE has arrived and in recovery.
    holder: Option<NodeId>,
    /// The nodes that request the privilege from this node: neighbours, and this node itself.
    request_q: VecDeque<NodeId>,
    /// USING is `Inside`; "self" is in `request_q` exactly while `Waiting`.
    phase: Phase,
    /// Whether HOLDER was sent a REQUEST that it has not yet answered.
    asked: bool,
    variants: VariantSet,
    /// Number of PRIVILEGEs received from each neighbour (§8.4), with the variant `counters`.
    received: Option<Box<[u64]>>,
    recovery: Option<Box<Recovery>>,
}

impl Algorithm for Raymond {
    type Message = RaymondMessage;
    type Shape = Tree;

    const INFO: Info = Info {
        name: "raymond",
        aliases: &["tree"],
        paper: "Raymond 1989, A tree-based algorithm for distributed mutual exclusion",
        channels: Channels::Any,
        variants: &[
            PIGGYBACK,
            GREEDY,
            INITIALIZE,
            SECOND_WAIT,
            DUPLICATES,
            COUNTERS,
            AS_PUBLISHED,
            REPAIRS[0],
            REPAIRS[1],
            REPAIRS[2],
        ],
        presets: &[],
    };

    fn new(config: &Config<Tree>) -> Self {
        let me = config.place.me;
        let privileged = config.start.token();
        let knows = me == privileged || !config.variants.has(INITIALIZE);
        Raymond {
            place: config.place.clone(),
            holder: knows.then(|| config.place.shape.next_hop(me, privileged)),
            request_q: VecDeque::new(),
            phase: config.start.phase(me),
            asked: false,
            variants: config.variants,
            received: recovery::new_counters(config),
            recovery: None,
        }
    }

    fn start(&mut self, out: &mut Outbox<Self::Message>) {
        if self.recovery.is_some() {
            self.restart(out);
        } else if self.variants.has(INITIALIZE) && self.has_token() {
            // Raymond 1989, §7: the initial privileged node tells its neighbours.
            self.tell_initialize(None, out);
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        // Raymond 1989, §3.4, first event.
        self.phase = Phase::Waiting;
        if self.variants.has(GREEDY) {
            self.request_q.push_front(self.place.me);
        } else {
            self.request_q.push_back(self.place.me);
        }
        self.assign_and_ask(out);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        self.check(from, message)
            .map_err(|reason| Violation::unexpected(from, &message, reason))?;
        match message {
            // Raymond 1989, §3.4, second event.
            RaymondMessage::Request => {
                self.request_q.push_back(from);
                self.assign_and_ask(out);
            }
            // Raymond 1989, §3.4, third event.
            RaymondMessage::Privilege => {
                self.take_privilege(from);
                self.assign_and_ask(out);
            }
            // Raymond 1989, §6.1: handled like two messages. The REQUEST goes first, which §3.5
            // permits, so that a PRIVILEGE sent now can already request its own return.
            RaymondMessage::PrivilegeRequest => {
                self.request_q.push_back(from);
                self.take_privilege(from);
                self.assign_and_ask(out);
            }
            RaymondMessage::Initialize => self.on_initialize(from, out),
            RaymondMessage::Restart(incarnation) => {
                let relation = self.relation_to(from);
                out.send(
                    from,
                    match self.counter(from) {
                        None => RaymondMessage::Advise(incarnation, relation),
                        Some(count) => {
                            let count = u32::try_from(count).unwrap_or(u32::MAX);
                            RaymondMessage::AdviseCount(incarnation, relation, count)
                        }
                    },
                );
            }
            RaymondMessage::Advise(incarnation, relation) => {
                self.on_advise(from, incarnation, (relation, 0), out);
            }
            RaymondMessage::AdviseCount(incarnation, relation, count) => {
                self.on_advise(from, incarnation, (relation, u64::from(count)), out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        // Raymond 1989, §3.4, fourth event.
        self.phase = Phase::Idle;
        self.assign_and_ask(out);
        Ok(())
    }

    fn fields(&self, fields: &mut dyn Fields) {
        self.name_fields(fields);
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn peers(place: &Place<Tree>) -> Vec<NodeId> {
        let is_neighbour = |peer: &NodeId| place.shape.is_neighbour(place.me, *peer);
        place.peers().filter(is_neighbour).collect()
    }

    fn has_token(&self) -> bool {
        self.holder == Some(self.place.me)
    }

    fn recovering(config: &Config<Tree>, incarnation: u64) -> Option<Self> {
        let place = config.place.clone();
        let neighbours = place.shape.neighbours(place.me).len();
        Some(Raymond {
            place,
            holder: None,
            request_q: VecDeque::new(),
            // Raymond 1989, §8.5: USING can be set to false.
            phase: Phase::Idle,
            asked: false,
            variants: config.variants,
            // A node that crashes loses its counters.
            received: recovery::new_counters(config),
            recovery: Some(Box::new(Recovery::new(incarnation, neighbours))),
        })
    }

    fn settled(&mut self, out: &mut Outbox<Self::Message>) {
        self.on_settled(out);
    }

    fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    fn counter(&self, peer: NodeId) -> Option<u64> {
        let received = self.received.as_deref()?;
        let place = self.place.shape.position(self.place.me, peer)?;
        Some(received[place])
    }

    fn set_counter(&mut self, peer: NodeId, count: u64) {
        let place = self.place.shape.position(self.place.me, peer);
        if let (Some(received), Some(place)) = (&mut self.received, place) {
            received[place] = count;
        }
    }

    fn cluster_invariant(cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        invariants::holders_lead_to_the_privilege(cluster)
    }

    fn recovers(variants: VariantSet, channels: Channels) -> bool {
        let rules = Rules::of(variants);
        let is_repaired = !rules.interchanged && !rules.duplicates;
        is_repaired && (channels == Channels::Fifo || rules.second_wait)
    }

    fn may_be_down_together(tree: &Tree, one: NodeId, other: NodeId) -> bool {
        // Raymond 1989, §8.8.
        !tree.is_neighbour(one, other)
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if self.phase == Phase::Inside && !self.has_token() {
            return Err("USING without the privilege");
        }
        if self.asked && (self.has_token() || self.holder.is_none()) {
            return Err("ASKED although the node has the privilege");
        }
        if (self.phase == Phase::Waiting) != self.request_q.contains(&self.place.me) {
            return Err("a node waits exactly while it is in its own REQUEST_Q");
        }
        if !self.is_lax() && has_duplicates(&self.request_q) {
            return Err("a name is in REQUEST_Q twice");
        }
        if self.recovery.is_some() || self.holder.is_none() || self.request_q.is_empty() {
            return Ok(());
        }
        if self.has_token() && self.phase != Phase::Inside {
            return Err("the privilege rests although REQUEST_Q has entries");
        }
        if !self.has_token() && !self.asked {
            return Err("REQUEST_Q has entries but no REQUEST went to the HOLDER");
        }
        Ok(())
    }
}

impl Raymond {
    /// Up to this length REQUEST_Q is searched for duplicate requests of a neighbour. The hub of a
    /// large star must not do so for each message; there, only the queue's length is bounded.
    const SEARCHED_MAX: usize = 16;

    /// The nodes that request the privilege from this node, in order: neighbours, and this node
    /// itself.
    pub fn request_q(&self) -> &VecDeque<NodeId> {
        &self.request_q
    }

    /// The neighbour in the direction of the privilege, or this node itself, if it knows.
    pub fn holder(&self) -> Option<NodeId> {
        self.holder
    }

    fn assign_and_ask(&mut self, out: &mut Outbox<RaymondMessage>) {
        // Raymond 1989, §8: neither procedure is called during the recovery phase.
        if self.recovery.is_none() {
            let had_token = self.has_token();
            self.assign_privilege(out);
            if had_token && Mutant::RaymondDoesNotAskBack.planted() {
                return;
            }
            self.make_request(out);
        }
    }

    /// Raymond 1989, §3.2, ASSIGN_PRIVILEGE.
    fn assign_privilege(&mut self, out: &mut Outbox<RaymondMessage>) {
        if !self.has_token() || self.phase == Phase::Inside {
            return;
        }
        let next = if Mutant::RaymondLifo.planted() {
            self.request_q.pop_back()
        } else {
            self.request_q.pop_front()
        };
        let Some(next) = next else {
            return;
        };
        if !Mutant::RaymondTokenKept.planted() {
            self.holder = Some(next);
        }
        self.asked &= Mutant::RaymondAskedNotReset.planted();
        if next == self.place.me {
            self.phase = Phase::Inside;
            out.enter();
        } else if self.variants.has(PIGGYBACK) && !self.request_q.is_empty() {
            // Raymond 1989, §6.1: the REQUEST that MAKE_REQUEST would send next travels along.
            self.asked = !Mutant::RaymondPiggybackAsksTwice.planted();
            out.send(next, RaymondMessage::PrivilegeRequest);
        } else {
            if Mutant::RaymondTokenTwice.planted() {
                out.send(next, RaymondMessage::Privilege);
            }
            out.send(next, RaymondMessage::Privilege);
        }
    }

    /// Raymond 1989, §3.3, MAKE_REQUEST.
    fn make_request(&mut self, out: &mut Outbox<RaymondMessage>) {
        let Some(holder) = self.holder else {
            return;
        };
        if holder != self.place.me && !self.request_q.is_empty() && !self.asked {
            self.asked = true;
            out.send(holder, RaymondMessage::Request);
        }
    }

    fn take_privilege(&mut self, from: NodeId) {
        if let Some(count) = self.counter(from) {
            self.set_counter(from, count + 1);
        }
        self.holder = Some(self.place.me);
        self.asked &= Mutant::RaymondAskedNotReset.planted();
    }

    /// Raymond 1989, §7: tells all neighbours, except the one that told this node, where the
    /// privilege is.
    fn tell_initialize(&self, from: Option<NodeId>, out: &mut Outbox<RaymondMessage>) {
        for &neighbour in self.place.shape.neighbours(self.place.me) {
            if Some(neighbour) != from {
                out.send(neighbour, RaymondMessage::Initialize);
            }
        }
    }

    fn on_initialize(&mut self, from: NodeId, out: &mut Outbox<RaymondMessage>) {
        if self.recovery.is_some() {
            self.on_initialize_in_recovery(from, out);
            return;
        }
        self.holder = Some(from);
        if !Mutant::RaymondInitializeStops.planted() {
            self.tell_initialize(Some(from), out);
        }
        self.assign_and_ask(out);
    }

    /// Returns an error with the reason if no correct neighbour sends this message in this state.
    fn check(&self, from: NodeId, message: RaymondMessage) -> Result<(), &'static str> {
        if !self.place.shape.is_neighbour(self.place.me, from) {
            return Err("it is not a neighbour in the tree");
        }
        match message {
            RaymondMessage::Request => self.check_request(from),
            RaymondMessage::Privilege => self.check_privilege(from),
            RaymondMessage::PrivilegeRequest if !self.variants.has(PIGGYBACK) => {
                Err("nothing is piggybacked in this cluster")
            }
            RaymondMessage::PrivilegeRequest => {
                self.check_privilege(from)?;
                self.check_request(from)
            }
            RaymondMessage::Initialize if self.holder.is_some() && self.recovery.is_none() => {
                Err("this node knows where the privilege is")
            }
            RaymondMessage::AdviseCount(..) if self.received.is_none() => {
                Err("nothing is counted in this cluster")
            }
            RaymondMessage::Advise(..) if self.received.is_some() => Err("its count is missing"),
            RaymondMessage::Advise(incarnation, relation)
            | RaymondMessage::AdviseCount(incarnation, relation, _) => {
                self.check_advise(from, incarnation, relation)
            }
            RaymondMessage::Initialize | RaymondMessage::Restart(_) => Ok(()),
        }
    }

    fn check_request(&self, from: NodeId) -> Result<(), &'static str> {
        if self.holder.is_none() && self.recovery.is_none() {
            // Nothing overtakes INITIALIZE. The sender's side has the privilege, and requests it
            // from here only after passing it here; our side receives INITIALIZE through this node.
            return Err("INITIALIZE has not come yet");
        }
        if self.is_lax() {
            return Ok(());
        }
        if self.holder == Some(from) && !self.asked {
            return Err("the privilege is on its own side and was not requested");
        }
        let queue = &self.request_q;
        let neighbours = || self.place.shape.neighbours(self.place.me).len();
        let twice = if queue.len() <= Self::SEARCHED_MAX {
            queue.contains(&from)
        } else {
            queue.len() > neighbours()
        };
        if twice {
            return Err("its previous request has not been served");
        }
        Ok(())
    }

    fn check_privilege(&self, from: NodeId) -> Result<(), &'static str> {
        if self.recovery.is_some() {
            return match self.has_token() {
                true => Err("the privilege is here"),
                false => Ok(()),
            };
        }
        if self.holder != Some(from) {
            return Err("the privilege is not on its side");
        }
        if !self.asked && !self.is_lax() {
            return Err("no REQUEST for the privilege was sent to it");
        }
        Ok(())
    }

    /// Whether the variants allow duplicate requests, and a privilege that was not requested
    /// (§8.6).
    fn is_lax(&self) -> bool {
        let rules = Rules::of(self.variants);
        rules.duplicates || rules.interchanged
    }
}

fn has_duplicates(queue: &VecDeque<NodeId>) -> bool {
    let mut sorted: Vec<_> = queue.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
