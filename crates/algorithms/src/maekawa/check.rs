//! Validation of messages and invariants of one node of Maekawa's algorithm.

use super::MaekawaMessage::{self, Failed, Inquire, Locked, Release, Relinquish, Request};
use super::{Maekawa, MemberLock};
use crate::{NodeId, Phase, RequestId};

impl Maekawa {
    /// Returns an error with the reason if no correct peer sends this message in this state. Does
    /// not rely on channels that preserve order.
    pub(super) fn check(&self, from: NodeId, message: MaekawaMessage) -> Result<(), &'static str> {
        if message.is_to_member() {
            if !self.place.shape.has_member(from, self.place.me) {
                return Err("this node is not in its set");
            }
        } else if self.place_of(from).is_none() {
            return Err("it is not in this node's set");
        }
        match message {
            Request(number) if !RequestId::is_sequence(number) => {
                Err("a number that no request has")
            }
            // As printed, locks are taken from their owners, so messages that result from this are
            // accepted.
            _ if !self.checks_lock => Ok(()),
            Request(number) => self.check_request(RequestId::new(number, from)),
            Relinquish(number) | Release(number) => {
                let owner = RequestId::new(number, from);
                if self.locking_request != Some(owner) {
                    Err("this node is not locked for that request")
                } else if matches!(message, Relinquish(_)) && !self.inquired {
                    Err("it was not asked to relinquish")
                } else if matches!(message, Relinquish(_)) && self.waits(from) {
                    // A node requests again only after it has left the critical section that it
                    // entered with this lock, so it cannot relinquish the lock.
                    Err("its next request waits here already")
                } else {
                    Ok(())
                }
            }
            Locked(number) => match self.member_lock(from) {
                MemberLock::Open | MemberLock::Inquired if self.waits_with(number) => Ok(()),
                _ => Err("no LOCKED is expected from it"),
            },
            Failed(number) | Inquire(number) => {
                // This node's own request may be forgotten, but the highest number seen is not.
                if number == 0 || number > self.highest_sequence_number_seen {
                    Err("this node has made no such request")
                } else if matches!(message, Inquire(_)) && self.is_inquired_twice(from, number) {
                    Err("it has inquired before and is not answered yet")
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Whether a request of that node is in the WAITING QUEUE.
    fn waits(&self, node: NodeId) -> bool {
        self.waiting_queue
            .iter()
            .any(|request| request.node == node)
    }

    fn check_request(&self, request: RequestId) -> Result<(), &'static str> {
        if self.waits(request.node) {
            return Err("a request of that node waits here");
        }
        match self
            .locking_request
            .filter(|locking| locking.node == request.node)
        {
            // Its RELEASE may be overtaken by its next REQUEST over channels that do not preserve
            // order.
            Some(locking) if locking >= request => Err("this node is locked for that request"),
            _ => Ok(()),
        }
    }

    fn is_inquired_twice(&self, member: NodeId, number: u64) -> bool {
        let member_lock = self.member_lock(member);
        let inquired = matches!(
            member_lock,
            MemberLock::Inquired | MemberLock::LockedInquired
        );
        self.waits_with(number) && inquired
    }

    pub(super) fn invariant_of_member(&self) -> Result<(), &'static str> {
        let queue = &self.waiting_queue;
        let Some(locking) = self.locking_request else {
            return match (queue.is_empty(), self.inquired) {
                (true, false) => Ok(()),
                _ => Err("a request waits at a node that is not locked"),
            };
        };
        if !queue.iter().is_sorted_by(|one, next| one < next) {
            return Err("the waiting queue is not in order of precedence");
        }
        let first_precedes = queue.front().is_some_and(|first| *first < locking);
        if first_precedes != self.inquired {
            return Err("an INQUIRE is open exactly while a waiting request precedes the lock");
        }
        let shape = &self.place.shape;
        let mut owners = queue.iter().chain([&locking]);
        if !owners.all(|request| shape.has_member(request.node, self.place.me)) {
            return Err("a request of a node whose set this node is not in");
        }
        let is_twice = |place: usize| queue.range(..place).any(|r| r.node == queue[place].node);
        if (0..queue.len()).any(is_twice) {
            return Err("two requests of one node wait");
        }
        Ok(())
    }

    pub(super) fn invariant_of_requester(&self) -> Result<(), &'static str> {
        let is_locked =
            |s: &&MemberLock| matches!(s, MemberLock::Locked | MemberLock::LockedInquired);
        let locked = self.members.iter().filter(is_locked).count();
        if locked != self.locked_members as usize {
            return Err("members that are locked are miscounted");
        }
        let all_are = |member_lock| self.members.iter().all(|s| *s == member_lock);
        match self.phase {
            Phase::Idle if !all_are(MemberLock::Open) => Err("an idle node holds a member"),
            Phase::Inside if !all_are(MemberLock::Locked) => Err("inside without all members"),
            Phase::Waiting if locked == self.members.len() => Err("waits although it has them all"),
            Phase::Idle | Phase::Inside if self.failed => Err("failed without a request"),
            _ if self.failed && self.members.contains(&MemberLock::LockedInquired) => {
                Err("a node that received FAILED defers an INQUIRE")
            }
            _ => Ok(()),
        }
    }
}
