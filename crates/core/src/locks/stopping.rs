//! How a table comes to an end.

use super::deadlines::Due;
use super::{Denial, Effects, Table};
use soloist_api::{EndReason, Moment};

impl Table {
    /// Refuses new requests and denies all waiters. Holds continue.
    pub fn stop(&mut self, now: Moment, out: &mut Effects) {
        self.context.stopping = true;
        let tickets = self.context.tickets.sorted().into_iter();
        let tickets: Vec<_> = tickets.map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
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
            if hold.deadline.is_none_or(|key| key.moment() > until) {
                let deadlines = &mut self.context.deadlines;
                deadlines.remove(hold.deadline);
                hold.deadline = Some(deadlines.add(until, Due::Stop(*id)));
            }
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
