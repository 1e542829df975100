//! A node outside the cluster: before it is a member, and after it has lost its lease.
//!
//! Waiters keep their places for as long as it takes to come back. After that, the waiters of
//! sessions are turned away, because their clients may know a node that serves them. Other waiters
//! stay: a request over HTTP, or of the program that the node runs in, has no other node.

use soloist_api::Moment;

use super::deadlines::Due;
use super::table::Context;
use super::{Denial, Effects, Table};

impl Table {
    /// The node is not a member from now on, until the next epoch is installed.
    pub(crate) fn go_outside(&mut self, now: Moment) {
        let context = &mut self.context;
        if context.is_away || context.turns_away.is_some() {
            return;
        }
        if let Some(after) = context.settings.turns_away_after {
            context.turns_away = Some(context.deadlines.add(now + after, Due::TurnAway));
        }
    }

    /// Tells the waiters of sessions that another node may serve them.
    pub(super) fn turn_away(&mut self, now: Moment, out: &mut Effects) {
        let context = &mut self.context;
        context.turns_away = None;
        context.is_away = true;
        let sessions = &context.sessions;
        let ids = sessions.ids().into_iter();
        let waiting = ids.filter_map(|id| Some(sessions.get(id)?.waiting()));
        let mut tickets: Vec<_> = waiting.flatten().map(|(_, ticket)| ticket).collect();
        tickets.sort_unstable();
        for ticket in tickets {
            self.deny(now, ticket, Denial::NotMember, out);
        }
    }
}

impl Context {
    /// The node is a member again.
    pub(super) fn come_back(&mut self) {
        self.deadlines.remove(self.turns_away.take());
        self.is_away = false;
    }
}
