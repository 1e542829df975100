//! A new connection: starts the session, or resumes it.

use std::collections::BTreeSet;
use std::time::Duration;

use soloist_api::session::Welcome;
use soloist_api::{EndReason, Loss, Moment};

use super::answers::length;
use super::{Known, Machine, Out, RequestId, State};

/// A resume whose repeated outcomes have not all been read.
#[derive(Debug)]
pub(super) struct Resumption {
    /// The last outcome that is repeated.
    last_seq: u64,
    /// Messages that were handled, and whose answer may be repeated. Otherwise they were refused.
    handled: Vec<u64>,
    /// Holds that the node does not have. Their loss may be repeated.
    missing: Vec<RequestId>,
}

impl<E: Clone> Machine<E> {
    /// Handles the first message of a connection. `sent` is when its hello was sent.
    pub(crate) fn welcome(&mut self, now: Moment, sent: Moment, welcome: Welcome, out: &mut Out) {
        self.is_connected = true;
        self.sent.clear();
        self.note_sent(0, sent);
        self.pong_by = None;
        self.ping_every = Duration::from_millis(welcome.ping_every_ms.max(1));
        // The promise of `welcome` counts from the hello, also if the node says otherwise.
        let (until, length) = (welcome.promise.until(sent), length(welcome.promise));
        self.promised = (sent, length);
        self.expires_in = Duration::from_millis(welcome.expires_in_ms);
        self.known = Some(Known {
            session: welcome.session,
            secret: welcome.secret,
            node: welcome.node,
        });
        let held: BTreeSet<u64> = welcome.holds.iter().map(|held| held.hold).collect();
        let missing = self.by_number.iter().filter(|(n, id)| {
            matches!(self.requests[id].state, State::Held(_)) && !held.contains(n)
        });
        let missing = missing.map(|(_, id)| *id).collect();
        let waiting: BTreeSet<u64> = welcome.waiting.into_iter().collect();
        let (handled, unhandled): (Vec<_>, Vec<_>) = self
            .unanswered
            .iter()
            .map(|(n, unanswered)| (*n, *unanswered))
            .partition(|(n, _)| *n <= welcome.handled);
        // Before anything that gets a new number: the node handles numbers in their order.
        for (n, unanswered) in unhandled {
            self.send(now, n, unanswered, false, out);
        }
        for n in &held {
            if let Some(id) = self.by_number.get(n).copied() {
                self.extend_one(now, id, until, length, out);
            }
        }
        for n in held.iter().chain(&waiting) {
            if !self.by_number.contains_key(n) {
                self.refuse_grant(now, *n, out);
            }
        }
        let handled = handled.into_iter().map(|(n, _)| n);
        self.resumption = Some(Resumption {
            last_seq: welcome.last_seq,
            handled: handled.filter(|n| !waiting.contains(n)).collect(),
            missing,
        });
        self.reconcile_if_due(now, out);
    }

    /// Once all repeated outcomes are read: sends messages again that were refused, and takes holds
    /// for lost that the node does not have.
    pub(super) fn reconcile_if_due(&mut self, now: Moment, out: &mut Out) {
        let is_due = |resumption: &mut Resumption| resumption.last_seq <= self.seen;
        let Some(resumption) = self.resumption.take_if(is_due) else {
            return;
        };
        for n in resumption.handled {
            if let Some(unanswered) = self.unanswered.remove(&n) {
                self.send_again(now, n, unanswered, out);
            }
        }
        for id in resumption.missing {
            let Some(request) = self.requests.get_mut(&id) else {
                continue;
            };
            if let State::Held(hold) = &mut request.state
                && hold.loss.is_none()
            {
                let since = hold.until.min(now);
                let reason = EndReason::Forgotten;
                hold.loss = Some(Loss { reason, since });
                out.changed.push(id);
            }
        }
    }
}
