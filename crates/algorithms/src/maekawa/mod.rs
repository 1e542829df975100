//! Maekawa 1985, *A √N algorithm for mutual exclusion in decentralized systems*, ACM TOCS 3(2).
//!
//! **Channels**: fifo. (With the sequence numbers that all messages carry here, it also holds in
//! any order, as searches of small clusters show; the variant `as-published` needs fifo channels to
//! show only its own faults.)
//! **Cost**: 3(K-1) messages per entry without contention, K being the size of a node's set, about
//! √N. Contention adds FAILED, INQUIRE and RELINQUISH: at most 6(K-1) on average over a run, which
//! is more than the 5√N of the paper (docs/errata.md, M3). Synchronisation delay 2T.
//!
//! A node asks the members of its set ([`Quorums`]) to lock themselves for its request, and enters
//! when all have done so. Every two sets intersect, and a member is locked for one request at a
//! time, so one node is inside at a time. Requests are totally ordered. If a request arrives at a
//! member that is locked for a later one, the member asks the owner of the lock, which gives it
//! back (relinquishes it) if it knows that another member made it wait. This breaks cycles of nodes
//! that wait for each other.
//!
//! A node that is in its own set handles messages to itself immediately.
//!
//! **Invariants**: a member that is not locked has an empty queue. The first waiting request
//! precedes the locking request exactly while an INQUIRE is in flight or deferred, and it is the
//! only one that has not been sent FAILED. The number of requests that wait at a node is at most
//! the number of sets that contain it.
//!
//! **Proved** for any number of nodes: mutual exclusion without `as-published`, for any sets of
//! which every two intersect (theorem `maekawa_mutual_exclusion` in `proofs/Maekawa.v`).
//!
//! **Forgetting**: an idle node that is not locked needs to keep only the highest sequence number
//! seen. FAILED and INQUIRE messages about its earlier requests may arrive later; they are
//! recognised by their numbers, which are never reused.
//!
//! **Errata**, both repaired unless `as-published` is chosen; `repair-1` and `repair-2` add one
//! repair to it:
//! - Step (2) sends no FAILED to the first waiting request. If a later arrival precedes it and
//!   takes its place, its node is never told and defers INQUIREs forever: a deadlock (B. Sanders
//!   1987, *The information structure of distributed mutual exclusion algorithms*, ACM TOCS 5(3)).
//!   Three requests on a 2x2 grid are enough, and on Fig. 1b those of nodes 2, 3, 4 and 5. The end
//!   of §5 contains such a displaced request (node 7 at node 13). In that example it is served in
//!   the end, but one more request turns it into a deadlock. Repair (R1): a request that is
//!   displaced from the first place is sent FAILED.
//! - Step (3) lets a node answer an INQUIRE that crossed its own RELEASE and arrives during its
//!   next request. Together with a FAILED this causes a RELINQUISH of a lock that the node does not
//!   hold, and step (4) takes the lock from its rightful owner: two nodes inside, with three nodes
//!   and three requests. Step (4) has two readings, see [`PUT_BACK_FIRST`]; on Fig. 1b, two
//!   requests each of nodes 1 and 5 break both. Repair (R2): an INQUIRE is answered only while the
//!   LOCKED that it asks about is held.
//!
//! Step (3) does not say how long a FAILED counts. Here it counts until entry; see
//! [`FAILED_BY_MEMBER`].
//!
//! **Deviation**: in the paper only REQUEST carries a sequence number. Here each message carries
//! that of the request that it is about, so that late messages are recognised. The variant
//! `as-published` ignores these additional numbers.

mod check;
mod fields;
mod invariants;
mod message;
mod variants;

use std::collections::VecDeque;

use crate::mutant::Mutant;
use crate::shape::Quorums;
use crate::{
    Algorithm, Channels, Config, Fields, Info, NodeId, Outbox, Phase, Place, RequestId, Snapshot,
    Start, VariantSet, Violation,
};

pub use message::MaekawaMessage;
pub use variants::{AS_PUBLISHED, FAILED_BY_MEMBER, PUT_BACK_FIRST, REPAIR_1, REPAIR_2};

use message::MaekawaMessage::{Failed, Inquire, Locked, Release, Relinquish, Request};

/// State of one node, both as a requester and as a member of other nodes' sets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maekawa {
    place: Place<Quorums>,
    /// Repair R1: a request displaced from the first place is sent FAILED.
    tells_displaced: bool,
    /// Repair R2: an INQUIRE is answered only while the LOCKED that it asks about is held.
    checks_lock: bool,
    /// The variant `put-back-first`.
    puts_back_first: bool,
    phase: Phase,
    /// The sequence number of this node's latest request.
    sequence_number: u64,
    highest_sequence_number_seen: u64,
    /// The state of this node's request at each member, in the order of the set.
    members: Box<[MemberLock]>,
    /// Number of members whose LOCKED is held.
    locked_members: u32,
    /// Whether a member has answered this node's request with FAILED. Stays set until entry.
    failed: bool,
    /// With `failed-by-member`: the members, in the order of the set, whose FAILED counts. Empty
    /// otherwise.
    failed_by: Box<[bool]>,

    /// As a member: the request for which this node is locked.
    locking_request: Option<RequestId>,
    /// As a member: whether an INQUIRE about the locking request was sent and is not yet answered.
    inquired: bool,
    /// As a member: the waiting requests, in order of precedence.
    waiting_queue: VecDeque<RequestId>,
}

/// The state of a request at one member of the set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum MemberLock {
    /// No LOCKED from the member is held.
    Open,
    /// The member is locked for this node.
    Locked,
    /// The member is locked for this node and has asked for the lock back; the answer is deferred.
    LockedInquired,
    /// The member's INQUIRE arrived before its LOCKED. Between correct nodes this happens only over
    /// channels that do not preserve order.
    Inquired,
}

type Out = Outbox<MaekawaMessage>;

impl Algorithm for Maekawa {
    type Message = MaekawaMessage;
    type Shape = Quorums;

    const INFO: Info = Info {
        name: "maekawa",
        aliases: &["quorum"],
        paper: "Maekawa 1985, A √N algorithm for mutual exclusion in decentralized systems",
        channels: Channels::Fifo,
        variants: &[
            AS_PUBLISHED,
            REPAIR_1,
            REPAIR_2,
            PUT_BACK_FIRST,
            FAILED_BY_MEMBER,
        ],
        presets: &[],
    };

    const COUNTS_REQUESTS: bool = true;

    // All sets together have about N√N members.
    const NODES_MAX: usize = 1 << 18;

    fn new(config: &Config<Quorums>) -> Self {
        let Place { me, ref shape } = config.place;
        let phase = config.start.phase(me);
        let size = shape.set(me).len();
        // A node that starts inside has locked its members for a request with the number 0, which
        // precedes all others.
        let (member_lock, locked_members) = match phase {
            Phase::Inside => (MemberLock::Locked, size as u32),
            Phase::Idle | Phase::Waiting => (MemberLock::Open, 0),
        };
        let inside = config.start.inside;
        let printed = config.variants.has(AS_PUBLISHED);
        let by_member = config.variants.has(FAILED_BY_MEMBER);
        Maekawa {
            place: config.place.clone(),
            tells_displaced: !printed || config.variants.has(REPAIR_1),
            checks_lock: !printed || config.variants.has(REPAIR_2),
            puts_back_first: config.variants.has(PUT_BACK_FIRST),
            phase,
            sequence_number: 0,
            highest_sequence_number_seen: 0,
            members: vec![member_lock; size].into(),
            locked_members,
            failed: false,
            failed_by: vec![false; if by_member { size } else { 0 }].into(),
            locking_request: inside
                .filter(|&owner| shape.has_member(owner, me))
                .map(|owner| RequestId::new(0, owner)),
            inquired: false,
            waiting_queue: VecDeque::new(),
        }
    }

    fn request(&mut self, out: &mut Out) -> Result<(), Violation> {
        self.phase.may_request()?;
        // Maekawa 1985, step (1)
        self.phase = Phase::Waiting;
        self.sequence_number = self.highest_sequence_number_seen + 1;
        self.highest_sequence_number_seen = self.sequence_number;
        self.tell_all_members(Request(self.sequence_number), out);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Out,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        self.check(from, message)
            .map_err(|reason| Violation::unexpected(from, &message, reason))?;
        self.handle(from, message, out);
        Ok(())
    }

    fn release(&mut self, out: &mut Out) -> Result<(), Violation> {
        self.phase.may_release()?;
        // Maekawa 1985, step (6)
        self.phase = Phase::Idle;
        self.members.fill(MemberLock::Open);
        self.locked_members = 0;
        let forgotten = usize::from(Mutant::MaekawaReleaseNotToOne.planted());
        for place in 0..self.members.len() - forgotten {
            self.tell(self.member(place), Release(self.sequence_number), out);
        }
        Ok(())
    }

    fn peers(place: &Place<Quorums>) -> Vec<NodeId> {
        let Place { me, shape } = place;
        let is_member =
            |peer: &NodeId| shape.has_member(*me, *peer) || shape.has_member(*peer, *me);
        place.peers().filter(is_member).collect()
    }

    fn clock(&self) -> u64 {
        self.highest_sequence_number_seen
    }

    fn set_clock(&mut self, clock: u64) {
        if !Mutant::MaekawaClockForgotten.planted() {
            self.highest_sequence_number_seen = self.highest_sequence_number_seen.max(clock);
        }
    }

    /// With the steps as printed, nothing that forgetting relies on holds.
    fn rests_alone(variants: VariantSet, _start: Start) -> bool {
        !variants.has(AS_PUBLISHED) && !variants.has(FAILED_BY_MEMBER)
    }

    fn is_at_rest(&self, _config: &Config<Quorums>) -> bool {
        // A member that is not locked has an empty queue.
        self.phase == Phase::Idle && self.locking_request.is_none() && self.checks_lock
    }

    fn fields(&self, fields: &mut dyn Fields) {
        self.name_fields(fields);
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn cluster_invariant(cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        invariants::one_lock_a_member(cluster)
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if !self.checks_lock {
            return Ok(());
        }
        self.invariant_of_requester()?;
        self.invariant_of_member()
    }
}

impl Maekawa {
    /// Sends a message to a node, or handles it immediately if it is for this node. Every step
    /// calls this after all its own changes of state.
    fn tell(&mut self, to: NodeId, message: MaekawaMessage, out: &mut Out) {
        if to == self.place.me {
            self.handle(to, message, out);
        } else {
            out.send(to, message);
        }
    }

    fn tell_all_members(&mut self, message: MaekawaMessage, out: &mut Out) {
        for place in 0..self.members.len() {
            self.tell(self.member(place), message, out);
        }
    }

    fn member(&self, place: usize) -> NodeId {
        self.place.shape.set(self.place.me)[place]
    }

    fn place_of(&self, member: NodeId) -> Option<usize> {
        let set = self.place.shape.set(self.place.me);
        set.binary_search(&member).ok()
    }

    fn handle(&mut self, from: NodeId, message: MaekawaMessage, out: &mut Out) {
        match message {
            Request(number) => self.on_request(RequestId::new(number, from), out),
            Locked(_) => self.on_locked(from, out),
            Failed(number) => self.on_failed(from, number, out),
            Inquire(number) => self.on_inquire(from, number, out),
            Relinquish(_) => self.on_relinquish(out),
            Release(_) => self.on_release(out),
        }
    }

    /// Whether a message with this number is about the request with which this node waits. As
    /// printed, messages have no number, and any message is assumed to be.
    fn is_about_current(&self, number: u64) -> bool {
        self.waits_with(number) || (!self.checks_lock && self.phase == Phase::Waiting)
    }

    fn waits_with(&self, number: u64) -> bool {
        self.phase == Phase::Waiting && self.sequence_number == number
    }
}

/// Handlers of this node as a member of other nodes' sets.
impl Maekawa {
    fn on_request(&mut self, request: RequestId, out: &mut Out) {
        // Maekawa 1985, step (1): the next number is greater than any received.
        self.highest_sequence_number_seen = self.highest_sequence_number_seen.max(request.sequence);
        // Maekawa 1985, step (2)
        let Some(locking) = self.locking_request else {
            self.lock_for(request, out);
            return;
        };
        if self.enqueue(request) > 0 || locking < request {
            if locking < request && Mutant::MaekawaLaterNotFailed.planted() {
                return;
            }
            self.tell(request.node, Failed(request.sequence), out);
            if Mutant::MaekawaFailedTwice.planted() {
                self.tell(request.node, Failed(request.sequence), out);
            }
        } else if !self.inquired {
            self.inquired = true;
            self.tell(locking.node, Inquire(locking.sequence), out);
        } else if self.tells_displaced && !Mutant::MaekawaDisplacedNotFailed.planted() {
            // Repair R1. The INQUIRE was sent on behalf of the request that has been first until
            // now. Its node was not sent FAILED and must no longer count on this member. As
            // printed, nothing tells it: see `as_published_deadlocks` of the search.
            if let Some(&displaced) = self.waiting_queue.get(1) {
                self.tell(displaced.node, Failed(displaced.sequence), out);
            }
        }
    }

    fn on_relinquish(&mut self, out: &mut Out) {
        // Maekawa 1985, step (4). As printed, the member does not check which node holds the lock.
        // A correct peer relinquishes in favour of a request that waits here; if none waits, the
        // lock stays as it is. "The current locking REQUEST is placed in the WAITING QUEUE, whereas
        // the most preceding REQUEST is removed from it" has two readings.
        self.inquired = false;
        let Some(relieved) = self.locking_request else {
            return;
        };
        if self.puts_back_first {
            self.enqueue(relieved);
        }
        let Some(next) = self.waiting_queue.pop_front() else {
            return;
        };
        if !self.puts_back_first {
            self.enqueue(relieved);
        }
        self.lock_for(next, out);
        if Mutant::MaekawaLockNotMoved.planted() {
            self.locking_request = Some(relieved);
        }
    }

    fn on_release(&mut self, out: &mut Out) {
        // Maekawa 1985, step (7)
        self.inquired = false;
        self.locking_request = None;
        if let Some(next) = self.waiting_queue.pop_front() {
            self.lock_for(next, out);
        }
    }

    /// Inserts a request into the WAITING QUEUE. Returns the number of requests that precede it.
    fn enqueue(&mut self, request: RequestId) -> usize {
        let mut place = self.waiting_queue.partition_point(|other| *other < request);
        if Mutant::MaekawaLifo.planted() {
            place = 0;
        }
        self.waiting_queue.insert(place, request);
        place
    }

    fn lock_for(&mut self, request: RequestId, out: &mut Out) {
        self.locking_request = Some(request);
        self.tell(request.node, Locked(request.sequence), out);
    }
}

/// Handlers of this node's own request.
impl Maekawa {
    fn member_lock(&self, member: NodeId) -> MemberLock {
        self.place_of(member)
            .map_or(MemberLock::Open, |place| self.members[place])
    }

    fn on_locked(&mut self, member: NodeId, out: &mut Out) {
        let Some(place) = self.place_of(member) else {
            return;
        };
        if self.phase != Phase::Waiting {
            return; // as printed only: a lock that was taken from its owner comes back
        }
        let was = self.members[place];
        self.members[place] = match was {
            MemberLock::Open | MemberLock::Locked => MemberLock::Locked,
            MemberLock::Inquired | MemberLock::LockedInquired => MemberLock::LockedInquired,
        };
        self.locked_members += u32::from(matches!(was, MemberLock::Open | MemberLock::Inquired));
        if let Some(failed) = self.failed_by.get_mut(place) {
            *failed = false;
            self.failed = self.failed_by.contains(&true);
        }
        if self.locked_members as usize == self.members.len() {
            self.enter(out);
        } else if self.failed && self.members[place] == MemberLock::LockedInquired {
            self.relinquish(place, out);
        }
    }

    fn enter(&mut self, out: &mut Out) {
        // Maekawa 1985, step (5). Deferred INQUIREs are answered by the RELEASE, step (3).
        self.phase = Phase::Inside;
        self.failed = false;
        self.failed_by.fill(false);
        self.members.fill(MemberLock::Locked);
        out.enter();
    }

    fn on_failed(&mut self, member: NodeId, number: u64, out: &mut Out) {
        if !self.is_about_current(number) {
            return;
        }
        let place = self.place_of(member);
        if let Some(failed) = place.and_then(|place| self.failed_by.get_mut(place)) {
            *failed = true;
        }
        if self.failed {
            return;
        }
        self.failed = true;
        // Maekawa 1985, step (3): it is now known that not all members can be locked.
        for place in 0..self.members.len() {
            self.relinquish_if_inquired(place, out);
        }
    }

    fn on_inquire(&mut self, member: NodeId, number: u64, out: &mut Out) {
        let Some(place) = self.place_of(member) else {
            return;
        };
        // Maekawa 1985, step (3): inside, the answer is the RELEASE to come; after it, there is no
        // answer. Repair R2, first half: an INQUIRE about an earlier request gets no answer either.
        // As printed, the node cannot tell: see `as_published_lets_two_inside` of the search.
        let stale = self.phase == Phase::Waiting && Mutant::MaekawaStaleInquire.planted();
        if !self.is_about_current(number) && !stale {
            return;
        }
        self.members[place] = match self.members[place] {
            MemberLock::Locked | MemberLock::LockedInquired => MemberLock::LockedInquired,
            MemberLock::Open | MemberLock::Inquired => MemberLock::Inquired,
        };
        if self.failed {
            self.relinquish_if_inquired(place, out);
        }
    }

    fn relinquish_if_inquired(&mut self, place: usize, out: &mut Out) {
        match self.members[place] {
            MemberLock::LockedInquired => self.relinquish(place, out),
            // Repair R2, second half: a lock that is not held is not given back.
            MemberLock::Inquired
                if !self.checks_lock || Mutant::MaekawaInquireWithoutLock.planted() =>
            {
                self.relinquish(place, out);
            }
            MemberLock::Inquired | MemberLock::Locked | MemberLock::Open => {}
        }
    }

    /// Gives a member's lock back, in favour of a request that precedes this node's.
    fn relinquish(&mut self, place: usize, out: &mut Out) {
        let held = self.members[place] == MemberLock::LockedInquired;
        self.locked_members -= u32::from(held);
        self.members[place] = MemberLock::Open;
        self.failed &= !Mutant::MaekawaFailedForgotten.planted();
        self.tell(self.member(place), Relinquish(self.sequence_number), out);
    }
}
