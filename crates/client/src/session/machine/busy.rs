//! Messages that the node refused as busy, because too many outcomes are unseen.
//!
//! If the client has read outcomes since it sent the message, another message reports them, and may
//! succeed at once. Otherwise the outcomes are those of other sessions. Nobody tells when these
//! report them, so the message is sent again after pauses that grow.

use std::collections::BTreeSet;
use std::time::Duration;

use soloist_api::Moment;
use soloist_api::session::Failure;

use super::{Denial, Machine, Out, RequestId, State, Unanswered, Wait};

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Messages that are sent again after a pause.
#[derive(Default, Debug)]
pub(super) struct Refused {
    /// Their numbers. They are still unanswered, unless nobody wants them any more.
    numbers: BTreeSet<u64>,
    /// What the node answered last.
    failure: Option<Failure>,
    pause: Duration,
    again_at: Moment,
    /// The last outcome that had been read when the pause began.
    seen: u64,
}

impl Refused {
    /// Begins another pause.
    fn pause(&mut self, now: Moment, seen: u64) {
        self.pause = match self.seen < seen {
            true => PAUSE_MIN,
            false => (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX),
        };
        self.seen = seen;
        self.again_at = now + self.pause;
    }
}

impl<E: Clone> Machine<E> {
    /// Handles the refusal of a message. Its request ends if it may not wait.
    pub(super) fn refused_as_busy(
        &mut self,
        now: Moment,
        failure: Failure,
        what: Unanswered,
        out: &mut Out,
    ) {
        let n = failure.n;
        let sent = self.sent.binary_search_by_key(&n, |sent| sent.n);
        if sent.is_ok_and(|index| self.sent[index].seen < self.seen) {
            self.unanswered.remove(&n);
            return self.send_again(now, n, what, out);
        }
        if let Unanswered::Acquire(id) = what
            && self.requests[&id].wish.wait == Wait::Try
        {
            self.unanswered.remove(&n);
            return self.deny(id, failure, out);
        }
        if self.refused.numbers.is_empty() {
            self.refused.pause(now, self.seen);
        }
        self.refused.numbers.insert(n);
        self.refused.failure = Some(failure);
        out.is_sooner = true;
    }

    /// Sends refused messages again if their pause is over, and ends requests whose time is up.
    /// Returns when to call it again.
    pub(super) fn retry_refused(&mut self, now: Moment, out: &mut Out) -> Option<Moment> {
        let mut next: Option<Moment> = None;
        for n in std::mem::take(&mut self.refused.numbers) {
            let Some(what) = self.unanswered.get(&n).copied() else {
                continue;
            };
            let deadline = self.deadline(what);
            if let (Unanswered::Acquire(id), Some(failure)) = (what, &self.refused.failure)
                && deadline.is_some_and(|deadline| deadline <= now)
            {
                let failure = Failure {
                    n,
                    ..failure.clone()
                };
                self.unanswered.remove(&n);
                self.deny(id, failure, out);
            } else if self.refused.again_at <= now {
                self.unanswered.remove(&n);
                self.send_again(now, n, what, out);
            } else {
                self.refused.numbers.insert(n);
                let at = [Some(self.refused.again_at), deadline, next];
                next = at.into_iter().flatten().min();
            }
        }
        next
    }

    /// Whether the node refused this message, and it will be sent again.
    pub(super) fn is_refused(&self, n: u64) -> bool {
        self.refused.numbers.contains(&n)
    }

    /// Forgets the messages whose pause lasts: a resume sends them again.
    pub(super) fn forget_refused(&mut self) {
        self.refused.numbers.clear();
    }

    fn deadline(&self, what: Unanswered) -> Option<Moment> {
        let Unanswered::Acquire(id) = what else {
            return None;
        };
        match self.requests[&id].wish.wait {
            Wait::Until(moment) => Some(moment),
            Wait::Forever | Wait::Try => None,
        }
    }

    /// Ends a request that waits, because the node refused it.
    pub(super) fn deny(&mut self, id: RequestId, failure: Failure, out: &mut Out) {
        self.by_number.remove(&failure.n);
        let request = self.requests.get_mut(&id).expect("its acquire waits");
        request.state = State::Denied(Denial::Refused(failure));
        out.changed.push(id);
    }
}
