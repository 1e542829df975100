//! Messages to the node: their numbers, and when they were sent.

use std::time::Duration;

use soloist_api::Moment;
use soloist_api::session::{Acquire, Cancel, ClientMessage, Promise, Release};

use super::{Machine, Out, Unanswered, Violation, Wait, milliseconds};

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
        self.send(now, n, what, out);
    }

    /// Sends a message if there is a connection.
    pub(super) fn send(&mut self, now: Moment, n: u64, what: Unanswered, out: &mut Out) {
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
            Unanswered::Release(hold, _) => ClientMessage::Release(Release { n, hold, seen }),
        };
        self.emit(now, n, message, out);
    }

    pub(super) fn emit(&mut self, now: Moment, n: u64, message: ClientMessage, out: &mut Out) {
        self.sent.push_back((n, now));
        out.send.push(message);
    }

    /// Until when a promise lasts. Forgets when earlier messages were sent: later promises name
    /// later ones.
    pub(super) fn until(&mut self, promise: Promise) -> Result<Moment, Violation> {
        while self.sent.len() > 1 && self.sent[1].0 <= promise.after {
            self.sent.pop_front();
        }
        match self.sent.front() {
            Some((n, sent)) if *n == promise.after => {
                self.promised = (*sent, Duration::from_millis(promise.valid_for_ms));
                Ok(promise.until(*sent))
            }
            _ => Err(Violation(format!(
                "a promise counts from message {}, which was not sent or named too late",
                promise.after
            ))),
        }
    }
}
