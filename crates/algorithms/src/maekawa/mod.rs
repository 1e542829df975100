//! Maekawa 1985, *A √N algorithm for mutual exclusion in decentralized systems*, ACM TOCS 3(2).
//!
//! **Channels**: fifo. (The numbers that all messages carry here make it hold in any order too, as far
//! as small clusters were searched; the variant `as-published` needs fifo channels to show only its own faults.)
//! **Cost**: 3(K-1) messages an entry without contention, K being the size of a node's set, about √N;
//! with contention FAILED, INQUIRE and RELINQUISH come on top. Synchronisation delay 2T.
//!
//! Who wants in asks the members of its set ([`Quorums`]) to lock themselves for its request, and
//! enters when all have. Every two sets meet, and a member is locked for one request at a time: so one
//! node is inside at a time. Requests are totally ordered; a member that is locked for a later
//! request than one that arrives asks the owner of the lock, which gives it back (relinquishes) if it knows
//! that some other member has kept it waiting. So a circle of nodes that wait for each other opens.
//!
//! A node that is in its own set tells itself at once what it has to tell.
//!
//! **Invariants**: a member that is not locked has nobody waiting. The request that waits first goes
//! before the locking request exactly while an INQUIRE is under way or deferred; it alone has
//! not been told FAILED. At most as many requests wait at a node as there are sets that it is in.
//!
//! **Forgetting**: an idle node that is locked for nobody keeps nothing but the highest number seen. FAILED and
//! INQUIRE about what it asked for before may come later; they are known by their numbers, which are not
//! used again.
//!
//! **Errata**, both repaired unless `as-published` is chosen:
//! - Step (2) sends a request that waits first no FAILED. If a later arrival that precedes it takes its place, it
//!   is never told, and defers INQUIREs for ever: a deadlock (B. Sanders 1987, *The information structure of distributed
//!   mutual exclusion algorithms*, ACM TOCS 5(3)). Three requests on a 2x2 grid are enough, and on Fig. 1b those
//!   of nodes 2, 3, 4 and 5. The end of §5 has such a displaced request (node 7 at node 13); as told there it is
//!   served in the end, and one more request makes a deadlock of it. Repair (R1): whoever is displaced
//!   from the first place is sent FAILED.
//! - Step (3) lets a node answer an INQUIRE that crossed its own RELEASE and arrives during its next
//!   request. With a FAILED that becomes a RELINQUISH of a lock that the node does not hold, and step (4)
//!   takes the lock from its rightful owner: two nodes inside, with three nodes and three requests. Repair (R2): an INQUIRE is
//!   answered only while the LOCKED that it asks about is held.
//!
//! **Deviation**: in the paper only REQUEST carries a sequence number. Here each message carries that of the
//! request it is about, so that one which arrives late is recognised. The variant
//! `as-published` looks at none of these further numbers.

mod check;
mod invariants;
mod message;

use std::collections::VecDeque;
use std::fmt;

use crate::mutant::Mutant;
use crate::shape::Quorums;
use crate::{
    Algorithm, Channels, Config, Info, NodeId, Outbox, Phase, Place, RequestId, Snapshot, Start,
    Variant, VariantSet, Violation,
};

pub use message::MaekawaMessage;

use message::MaekawaMessage::{Failed, Inquire, Locked, Release, Relinquish, Request};

/// Steps (2), (3) and (4) by the letter.
pub const AS_PUBLISHED: Variant = Variant {
    bit: 0,
    name: "as-published",
    about: "steps (2) to (4) by the letter: deadlock, and two nodes inside",
    excludes: &[],
};

/// One node's part: it asks its members, and is a member of other nodes' sets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maekawa {
    place: Place<Quorums>,
    as_published: bool,
    phase: Phase,
    /// The sequence number of the own request, the latest one.
    sequence_number: u64,
    highest_sequence_number_seen: u64,
    /// Where the own request stands with each member, in the order of the set.
    members: Box<[Standing]>,
    /// How many members have returned a LOCKED that is still held.
    locked_members: u32,
    /// Whether a member has returned FAILED to the own request. It stays so until entry.
    failed: bool,

    /// As a member: the request that this node is locked for.
    locking_request: Option<RequestId>,
    /// As a member: an INQUIRE about the locking request was sent and is not answered yet.
    inquired: bool,
    /// As a member: the outstanding requests, the most preceding one first.
    waiting_queue: VecDeque<RequestId>,
}

/// Where a request stands with one member of the set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    /// No LOCKED from it is held.
    Open,
    /// It is locked for us.
    Locked,
    /// It is locked for us and has asked to be given back; the answer is deferred.
    LockedInquired,
    /// Its INQUIRE came before its LOCKED. Between correct nodes only if channels keep no order.
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
        variants: &[AS_PUBLISHED],
        presets: &[],
    };

    // All sets together have about N√N members.
    const NODES_MAX: usize = 1 << 18;

    fn new(config: &Config<Quorums>) -> Self {
        let Place { me, ref shape } = config.place;
        let phase = config.start.phase(me);
        let size = shape.set(me).len();
        // A node that starts inside has locked its members for a request with the number 0,
        // which goes before all others.
        let (standing, locked_members) = match phase {
            Phase::Inside => (Standing::Locked, size as u32),
            Phase::Idle | Phase::Waiting => (Standing::Open, 0),
        };
        let inside = config.start.inside;
        Maekawa {
            place: config.place.clone(),
            as_published: config.variants.has(AS_PUBLISHED),
            phase,
            sequence_number: 0,
            highest_sequence_number_seen: 0,
            members: vec![standing; size].into(),
            locked_members,
            failed: false,
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
        self.members.fill(Standing::Open);
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

    /// By the letter nothing can be relied on.
    fn rests_alone(variants: VariantSet, _start: Start) -> bool {
        !variants.has(AS_PUBLISHED)
    }

    fn is_at_rest(&self, _config: &Config<Quorums>) -> bool {
        // Who is not locked has nobody waiting.
        self.phase == Phase::Idle && self.locking_request.is_none() && !self.as_published
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn cluster_invariant(cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        invariants::one_lock_a_member(cluster)
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if self.as_published {
            return Ok(());
        }
        self.invariant_of_requester()?;
        self.invariant_of_member()
    }
}

impl Maekawa {
    /// Tells a node something; oneself at once, without a message. Every step calls this after it
    /// has changed all it has to change.
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
            Failed(number) => self.on_failed(number, out),
            Inquire(number) => self.on_inquire(from, number, out),
            Relinquish(_) => self.on_relinquish(out),
            Release(_) => self.on_release(out),
        }
    }

    /// Whether a message with this number is about the request that this node waits with. By the
    /// letter messages have no number, and any is taken for that.
    fn is_about_current(&self, number: u64) -> bool {
        self.waits_with(number) || (self.as_published && self.phase == Phase::Waiting)
    }

    fn waits_with(&self, number: u64) -> bool {
        self.phase == Phase::Waiting && self.sequence_number == number
    }
}

/// As a member of other nodes' sets.
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
        } else if !self.inquired {
            self.inquired = true;
            self.tell(locking.node, Inquire(locking.sequence), out);
        } else if !self.as_published && !Mutant::MaekawaDisplacedNotFailed.planted() {
            // Repair R1. The INQUIRE was sent for the request that was first so far, which has not been
            // told FAILED and must not count on this member any longer. By the letter nobody tells
            // it: see `as_published_deadlocks` of the search.
            if let Some(&displaced) = self.waiting_queue.get(1) {
                self.tell(displaced.node, Failed(displaced.sequence), out);
            }
        }
    }

    fn on_relinquish(&mut self, out: &mut Out) {
        // Maekawa 1985, step (4). By the letter it is not asked whose lock this is. A correct peer
        // relinquishes to a request that waits here; without one, the lock stays as it is.
        self.inquired = false;
        let (Some(relieved), Some(next)) = (self.locking_request, self.waiting_queue.pop_front())
        else {
            return;
        };
        self.enqueue(relieved);
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

    /// Places a request in the WAITING QUEUE; returns how many precede it there.
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

/// With the own request.
impl Maekawa {
    fn standing(&self, member: NodeId) -> Standing {
        self.place_of(member)
            .map_or(Standing::Open, |place| self.members[place])
    }

    fn on_locked(&mut self, member: NodeId, out: &mut Out) {
        let Some(place) = self.place_of(member) else {
            return;
        };
        if self.phase != Phase::Waiting {
            return; // by the letter only: a lock taken from its owner comes back
        }
        let was = self.members[place];
        self.members[place] = match was {
            Standing::Open | Standing::Locked => Standing::Locked,
            Standing::Inquired | Standing::LockedInquired => Standing::LockedInquired,
        };
        self.locked_members += u32::from(matches!(was, Standing::Open | Standing::Inquired));
        if self.locked_members as usize == self.members.len() {
            self.enter(out);
        } else if self.failed && self.members[place] == Standing::LockedInquired {
            self.relinquish(place, out);
        }
    }

    fn enter(&mut self, out: &mut Out) {
        // Maekawa 1985, step (5). Deferred INQUIREs are answered by the RELEASE, step (3).
        self.phase = Phase::Inside;
        self.failed = false;
        self.members.fill(Standing::Locked);
        out.enter();
    }

    fn on_failed(&mut self, number: u64, out: &mut Out) {
        if !self.is_about_current(number) || self.failed {
            return;
        }
        self.failed = true;
        // Maekawa 1985, step (3): now it is known that not all members can be locked.
        for place in 0..self.members.len() {
            self.relinquish_if_inquired(place, out);
        }
    }

    fn on_inquire(&mut self, member: NodeId, number: u64, out: &mut Out) {
        let Some(place) = self.place_of(member) else {
            return;
        };
        // Maekawa 1985, step (3): inside, the answer is the RELEASE to come; after it, there is none.
        // Repair R2, first half: nor is there one about an earlier request. By the letter the node
        // cannot tell: see `as_published_lets_two_inside` of the search.
        let stale = self.phase == Phase::Waiting && Mutant::MaekawaStaleInquire.planted();
        if !self.is_about_current(number) && !stale {
            return;
        }
        self.members[place] = match self.members[place] {
            Standing::Locked | Standing::LockedInquired => Standing::LockedInquired,
            Standing::Open | Standing::Inquired => Standing::Inquired,
        };
        if self.failed {
            self.relinquish_if_inquired(place, out);
        }
    }

    fn relinquish_if_inquired(&mut self, place: usize, out: &mut Out) {
        match self.members[place] {
            Standing::LockedInquired => self.relinquish(place, out),
            // Repair R2, second half: what is not held is not given back.
            Standing::Inquired
                if self.as_published || Mutant::MaekawaInquireWithoutLock.planted() =>
            {
                self.relinquish(place, out);
            }
            Standing::Inquired | Standing::Locked | Standing::Open => {}
        }
    }

    /// Gives a member back to a request that precedes the own.
    fn relinquish(&mut self, place: usize, out: &mut Out) {
        let held = self.members[place] == Standing::LockedInquired;
        self.locked_members -= u32::from(held);
        self.members[place] = Standing::Open;
        self.failed &= !Mutant::MaekawaFailedForgotten.planted();
        self.tell(self.member(place), Relinquish(self.sequence_number), out);
    }
}

impl fmt::Display for Maekawa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members_that = |test: fn(Standing) -> bool| {
            let set = self.place.shape.set(self.place.me).iter();
            let standings = set.zip(&self.members);
            let names: Vec<_> = standings
                .filter(|(_, standing)| test(**standing))
                .map(|(member, _)| member.to_string())
                .collect();
            names.join(",")
        };
        write!(f, "{}", self.phase)?;
        if self.phase == Phase::Waiting {
            let locked = members_that(|s| matches!(s, Standing::Locked | Standing::LockedInquired));
            let inquired =
                members_that(|s| matches!(s, Standing::Inquired | Standing::LockedInquired));
            write!(f, " number={} locked={{{locked}}}", self.sequence_number)?;
            write!(f, " failed={} inquired={{{inquired}}}", self.failed)?;
        }
        match self.locking_request {
            Some(request) => write!(f, " | locked for {request}")?,
            None => f.write_str(" | unlocked")?,
        }
        if self.inquired {
            f.write_str(" inquired")?;
        }
        write!(f, " waiting={:?}", self.waiting_queue)
    }
}
