//! How a member leaves in an orderly way.
//!
//! First, [`stop`](Participant::stop) admits no new requests. Then [`drain`](Participant::drain)
//! extends no more promises: a hold ends when its client releases it, or when the time last
//! promised to the client has passed, which is at most a lease away. Until then the node is a
//! member like any other: it reports its holds, and changes of epoch do not wait for it. It leaves
//! when nothing is held.

use super::{MemberEffects, Participant, Stage};
use crate::locks::{HoldError, HoldId};
use crate::mutant::Mutant;
use soloist_api::Moment;

impl Participant {
    /// Refuses new requests and denies waiting ones. Holds continue.
    pub fn stop(&mut self, now: Moment, out: &mut MemberEffects) {
        self.table_mut(now, out).stop(now, &mut out.locks);
    }

    /// Extends no promise from now on, and leaves when all of them have ended.
    pub fn drain(&mut self, now: Moment, out: &mut MemberEffects) {
        self.stop(now, out);
        if !self.is_draining {
            self.is_draining = true;
            // No promise reaches beyond the lease.
            let until = self.valid_until().unwrap_or(now);
            let table = self.table_mut(now, out);
            table.drain(now, until, &mut out.locks);
        }
        self.leave_if_over(now, out);
    }

    /// Whether promises are no longer extended.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Until when the holder may rely on a hold without hearing from this node. `None` if the hold
    /// does not expire and the node has no lease yet.
    pub fn promise(&self, hold: HoldId) -> Result<Option<Moment>, HoldError> {
        let expires = self.table().expires(hold)?;
        let both = [expires, self.valid_until()];
        Ok(both.into_iter().flatten().min())
    }

    /// Whether it has left and the keepers know.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether it is draining and nothing is held.
    pub(super) fn is_to_leave(&self) -> bool {
        let is_over = self.table().holds() == 0 || self.tuning().has(Mutant::LeaveWhilePromised);
        self.is_draining && is_over && self.stage != Stage::Gone
    }

    /// Leaves if the node is draining and no promise is outstanding, so that the keepers need not
    /// wait for its lease.
    pub(super) fn leave_if_over(&mut self, now: Moment, out: &mut MemberEffects) {
        if !self.is_to_leave() {
            return;
        }
        self.table.leave(now, &mut out.locks);
        self.stage = Stage::Gone;
        self.current = None;
        self.renewals.clear();
        self.pending = None;
        self.report = None;
        self.incoming = None;
        self.contact_leader(now, out);
    }
}
