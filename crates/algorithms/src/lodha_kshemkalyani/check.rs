//! Validation of messages.

use super::{Errand, LodhaKshemkalyani, LodhaKshemkalyaniMessage};
use crate::{NodeId, Phase, RequestId};

use LodhaKshemkalyaniMessage::{Flush, Reply, Request};

impl LodhaKshemkalyani {
    /// Returns an error with the reason if no correct peer sends this message in this state.
    pub(super) fn check(
        &self,
        from: NodeId,
        message: &LodhaKshemkalyaniMessage,
    ) -> Result<(), &'static str> {
        match message {
            Request {
                request,
                satisfied,
                had_yours,
            } => {
                if request.node != from || !RequestId::is_sequence(request.sequence) {
                    return Err("an identity that no request of it has");
                }
                // Without repair (4) an identity is used twice.
                if self.repaired[3] && *satisfied >= Some(*request) {
                    return Err("it was satisfied before it was made");
                }
                let highest = self.highest_sequence_number_seen;
                if had_yours.is_some_and(|n| !self.one_reply || n > highest) {
                    return Err("it had no such request of ours");
                }
                self.check_satisfied(from, *satisfied)?;
                self.check_request(*request)
            }
            Reply {
                satisfied,
                highest,
                errands,
            } => {
                if self.is_fully_repaired()
                    && (self.phase != Phase::Waiting || self.rv.contains(from))
                {
                    return Err("no reply is expected from it");
                }
                self.check_satisfied(from, *satisfied)?;
                self.check_extras(*highest, errands)
            }
            Flush {
                satisfied,
                highest,
                errands,
            } => {
                if satisfied.sequence == 0 {
                    return Err("a node that started inside has no request to report");
                }
                self.check_satisfied(from, Some(*satisfied))?;
                self.check_extras(*highest, errands)
            }
        }
    }

    fn check_satisfied(
        &self,
        from: NodeId,
        satisfied: Option<RequestId>,
    ) -> Result<(), &'static str> {
        let Some(satisfied) = satisfied else {
            return Ok(());
        };
        let possible = RequestId::is_sequence(satisfied.sequence)
            || (satisfied.sequence == 0 && self.started_inside == Some(from));
        if satisfied.node != from || !possible {
            return Err("it names a request that is not its own");
        }
        // The sender's REQUEST arrived before, on the same channel.
        if satisfied.sequence > self.highest_sequence_number_seen {
            return Err("it names a request that it has not made");
        }
        if self.is_fully_repaired() && self.phase != Phase::Idle && satisfied > self.my_request() {
            return Err("it was satisfied before our request, which goes first");
        }
        Ok(())
    }

    fn check_request(&self, request: RequestId) -> Result<(), &'static str> {
        if !self.is_fully_repaired() {
            return Ok(());
        }
        if self.deferred.contains(request.node) {
            return Err("its previous request has no reply yet");
        }
        if self.phase == Phase::Idle && Some(request) <= self.done {
            return Err("it requests after a later request was satisfied");
        }
        if self.rv.contains(request.node) && request < self.my_request() {
            return Err("it has answered our request and goes before it");
        }
        Ok(())
    }

    fn check_extras(&self, highest: u64, errands: &[Errand]) -> Result<(), &'static str> {
        if highest != 0 && !(self.clock_everywhere && RequestId::is_sequence(highest)) {
            return Err("a number that no request has");
        }
        let carries = self.one_reply && self.phase == Phase::Waiting;
        if !errands.is_empty() && !carries {
            return Err("nothing can be carried here");
        }
        if !errands.is_sorted_by(|a, b| a < b) {
            return Err("errands out of order");
        }
        let nodes = self.place.nodes();
        for errand in errands {
            let Errand { request, answers } = *errand;
            if request.node.index() >= nodes || answers.index() >= nodes {
                return Err("an answer from or to an unknown node");
            }
            if answers == request.node || answers == self.place.me {
                return Err("an answer that no node carries");
            }
            if request < self.my_request() || !RequestId::is_sequence(request.sequence) {
                return Err("an answer to a request that does not come after ours");
            }
            if request.node == self.place.me {
                if request != self.my_request() || self.rv.contains(answers) {
                    return Err("an answer to us that is not awaited");
                }
            } else if self.errands.binary_search(errand).is_ok() {
                return Err("an answer that is carried here already");
            }
        }
        Ok(())
    }
}
