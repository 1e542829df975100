//! How a table comes to an end.

use super::deadlines::Due;
use super::lifetime::Lifetime;
use super::{Denial, Effects, Table};
use soloist_api::{EndReason, Moment};

impl Table {
    /// Refuses new requests and denies all waiters. Holds continue.
    pub fn stop(&mut self, now: Moment, out: &mut Effects) {
        self.context.stopping = true;
        let tickets: Vec<_> = self.context.tickets.keys().copied().collect();
        for ticket in tickets {
            // A waiter that leaves may begin the lock, which the next one enters.
            if !self.context.tickets.contains_key(&ticket) {
                continue;
            }
            self.deny(now, ticket, Denial::NodeStopped, out);
        }
    }

    /// Extends no hold from now on: each ends when it would have ended, and at `until` at the
    /// latest. Sessions are told.
    pub fn drain(&mut self, now: Moment, until: Moment, out: &mut Effects) {
        self.context.draining = true;
        for (id, name) in self.context.holds.sorted() {
            let lock = self.locks.get_mut(name).expect("held locks exist");
            let hold = lock.hold.as_mut().expect("it is held");
            let whole = Lifetime::new(now, until.since(now));
            let life = hold.life.get_or_insert(whole);
            life.end_by(until);
            life.arm(&mut self.context.deadlines, Due::Hold(*id));
        }
        self.drain_sessions(now, until, out);
    }

    /// Ends all holds.
    pub fn end_all(&mut self, now: Moment, end: EndReason, out: &mut Effects) {
        let holds = self.context.holds.sorted().into_iter();
        let holds: Vec<_> = holds.map(|(hold, _)| *hold).collect();
        for hold in holds {
            let ended = self.end(now, hold, end, out);
            ended.expect("the hold exists");
        }
    }
}
