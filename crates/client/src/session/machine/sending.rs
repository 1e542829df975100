//! Messages to the node: their numbers, and when they were sent.

use std::time::Duration;

use soloist_api::session::{Acquire, Cancel, ClientMessage, Numbered, Promise, Release};
use soloist_api::{Moment, ttl};

use super::{Machine, Out, Sent, Unanswered, Violation, Wait, milliseconds};

impl<E: Clone> Machine<E> {
    pub(super) fn seen(&self) -> Option<u64> {
        (self.seen > 0).then_some(self.seen)
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_n += 1;
        self.last_n
    }

    /// Sends a message with a new number, now or when the session is resumed.
    pub(super) fn send_new(&mut self, now: Moment, what: Unanswered, out: &mut Out) {
        let n = self.next_number();
        if let Unanswered::Acquire(id) = what
            && let Some(request) = self.requests.get_mut(&id)
        {
            request.n = n;
            self.by_number.insert(n, id);
        }
        self.unanswered.insert(n, what);
        self.send(now, n, what, true, out);
    }

    /// Sends a message if there is a connection. If `may_wait` is set, the node may hold back an
    /// answer that no caller waits for.
    pub(super) fn send(
        &mut self,
        now: Moment,
        n: u64,
        what: Unanswered,
        may_wait: bool,
        out: &mut Out,
    ) {
        if !self.is_connected {
            return;
        }
        let seen = self.seen();
        let message = match what {
            Unanswered::Acquire(id) => {
                let wish = &self.requests[&id].wish;
                ClientMessage::Acquire(Acquire {
                    n,
                    lock: wish.lock.to_string(),
                    wait_ms: match wish.wait {
                        Wait::Forever => None,
                        Wait::Try => Some(0),
                        // At least 1: with 0 it would not wait at all.
                        Wait::Until(moment) => Some(milliseconds(moment.since(now)).max(1)),
                    },
                    owner: wish.owner.as_deref().map(str::to_owned),
                    seen,
                })
            }
            Unanswered::Cancel(request) => ClientMessage::Cancel(Cancel { n, request, seen }),
            Unanswered::Release(hold, caller) => ClientMessage::Release(Release {
                n,
                hold,
                later: may_wait && caller.is_none(),
                seen,
            }),
        };
        self.emit(now, n, message, out);
    }

    /// Asks for the answers that the node holds back, unless that is under way.
    pub(crate) fn hurry(&mut self, now: Moment, out: &mut Out) {
        if !self.is_connected || self.pong_by.is_some() {
            return;
        }
        let is_held_back = |(n, unanswered): (&u64, &Unanswered)| {
            matches!(unanswered, Unanswered::Release(_, None)) && !self.is_refused(*n)
        };
        if self.unanswered.iter().any(is_held_back) {
            self.ping(now, out);
        }
    }

    /// Sends a ping. Returns when its answer is late.
    pub(super) fn ping(&mut self, now: Moment, out: &mut Out) -> Moment {
        let (since, length) = self.promised;
        let left = (since + length).since(now);
        let late = now + ttl::renewal_timeout(left);
        self.pong_by = Some(late);
        let n = self.next_number();
        let seen = self.seen();
        self.emit(now, n, ClientMessage::Ping(Numbered { n, seen }), out);
        late
    }

    pub(super) fn emit(&mut self, now: Moment, n: u64, message: ClientMessage, out: &mut Out) {
        self.note_sent(n, now);
        out.send.push(message);
    }

    /// Records that a message is sent over this connection, with all that was read.
    pub(super) fn note_sent(&mut self, n: u64, at: Moment) {
        let seen = self.seen;
        self.sent.push_back(Sent { n, at, seen });
    }

    /// Until when a promise lasts. Forgets when earlier messages were sent: later promises name
    /// later ones.
    pub(super) fn until(&mut self, promise: Promise) -> Result<Moment, Violation> {
        while self.sent.len() > 1 && self.sent[1].n <= promise.after {
            self.sent.pop_front();
        }
        match self.sent.front() {
            Some(sent) if sent.n == promise.after => {
                self.promised = (sent.at, Duration::from_millis(promise.valid_for_ms));
                Ok(promise.until(sent.at))
            }
            _ => Err(Violation(format!(
                "a promise counts from message {}, which was not sent or named too late",
                promise.after
            ))),
        }
    }
}
