//! How holds are renewed and end.

use std::time::Duration;

use super::deadlines::Due;
use super::lock::Hold;
use super::table::Context;
use super::{Effects, Grant, HoldError, HoldId, Table};
use soloist_api::{EndReason, Moment};

impl Table {
    /// Renews a hold: it ends no sooner than its time to live from now, and no sooner than it would
    /// have ended without this, unless the table is [draining](Table::drain). Returns when it will
    /// end.
    pub fn renew(
        &mut self,
        now: Moment,
        id: HoldId,
        ttl: Option<Duration>,
    ) -> Result<Option<Moment>, HoldError> {
        let context = &mut self.context;
        if let Some(ttl) = ttl {
            context.check_ttl(ttl).map_err(HoldError::Ttl)?;
        }
        let name = context
            .holds
            .get(&id)
            .ok_or_else(|| context.ended.error(id))?;
        let lock = self.locks.get_mut(name).expect("held locks exist");
        let hold = lock.hold.as_mut().expect("it is held");
        if let Some(life) = hold.life.as_mut().filter(|_| !context.draining) {
            life.set_ttl(ttl.unwrap_or(life.ttl()));
            life.renew(now);
            hold.is_confirmed = true;
        }
        Ok(context.expiry(hold))
    }

    /// When a hold ends unless it is renewed, or `None` if it does not expire.
    pub fn expires(&self, id: HoldId) -> Result<Option<Moment>, HoldError> {
        Ok(self.context.expiry(self.hold(id)?))
    }

    /// The grant that led to a hold.
    pub fn grant(&self, id: HoldId) -> Result<Grant, HoldError> {
        let hold = self.hold(id)?;
        Ok(Grant {
            hold: id,
            lock: self.context.holds[&id].clone(),
            fence: hold.fence,
            expires: self.context.expiry(hold),
        })
    }

    /// When a hold ended, or `None` if it has not or that was too long ago.
    pub fn ended_at(&self, id: HoldId) -> Option<Moment> {
        self.context.ended.at(id)
    }

    fn hold(&self, id: HoldId) -> Result<&Hold, HoldError> {
        let context = &self.context;
        let name = context.holds.get(&id);
        let name = name.ok_or_else(|| context.ended.error(id))?;
        Ok(self.locks[name].hold.as_ref().expect("it is held"))
    }

    /// Called when a hold's timer fires. The deadline may have moved since the timer was set.
    pub(super) fn hold_due(&mut self, now: Moment, id: HoldId, out: &mut Effects) {
        let context = &mut self.context;
        let name = context.holds.get(&id).expect("timers end with holds");
        let lock = self.locks.get_mut(name).expect("held locks exist");
        let hold = lock.hold.as_mut().expect("it is held");
        let life = hold.life.as_mut().expect("it has a timer");
        if life.is_over(now) {
            self.end_due(now, id, self.context.expiry_reason(), out);
        } else {
            life.arm(&mut context.deadlines, Due::Hold(id));
        }
    }

    /// Ends a hold whose deadline has passed.
    pub(super) fn end_due(&mut self, now: Moment, hold: HoldId, end: EndReason, out: &mut Effects) {
        let ended = self.end(now, hold, end, out);
        ended.expect("deadlines end with holds");
    }
}

impl Context {
    /// When a hold expires unless it is renewed: with its session, if it has one.
    pub(super) fn expiry(&self, hold: &Hold) -> Option<Moment> {
        let session = hold.session.and_then(|(id, _)| self.sessions.get(id));
        let session = session.map(|session| session.life.deadline());
        let own = hold.life.as_ref().map(|life| life.deadline());
        [session, own].into_iter().flatten().min()
    }

    /// Why what was not renewed ends. A node that drains renews nothing.
    pub(super) fn expiry_reason(&self) -> EndReason {
        match self.draining {
            true => EndReason::NodeStopped,
            false => EndReason::Expired,
        }
    }
}
