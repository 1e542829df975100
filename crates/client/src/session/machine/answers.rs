//! What the node sends.

use std::time::Duration;

use soloist_api::session::{Code, Done, Failure, Granted, Lost, NodeMessage, Promise};
use soloist_api::{EndReason, Loss, Moment};

use super::{Denial, Hold, Machine, Out, RequestId, State, Unanswered, Violation, expired};

impl<E: Clone> Machine<E> {
    /// Handles a message of the node, other than `welcome` and `closed`.
    pub(crate) fn receive(
        &mut self,
        now: Moment,
        message: NodeMessage,
        out: &mut Out,
    ) -> Result<(), Violation> {
        match message {
            NodeMessage::Granted(granted) => self.granted(now, &granted, out)?,
            NodeMessage::Lost(lost) => self.lost(now, &lost, out)?,
            NodeMessage::Done(done) => self.done(&done, out),
            NodeMessage::Error(failure) => self.failed(now, failure, out),
            NodeMessage::Pong(pong) => {
                self.pong_by = self.pong_by.filter(|_| self.is_ending);
                let until = self.until(pong.promise)?;
                self.extend(now, until, length(pong.promise), out);
            }
            NodeMessage::Stopping(stopping) => {
                let until = self.until(stopping.promise)?;
                self.extend(now, until, length(stopping.promise), out);
            }
            NodeMessage::Welcome(_) => {
                return Err(Violation("a second welcome".to_owned()));
            }
            // Not asked for.
            _ => {}
        }
        self.reconcile_if_due(now, out);
        Ok(())
    }

    /// Records that an outcome was read. Returns whether it is new.
    fn read(&mut self, seq: u64) -> bool {
        let is_new = seq > self.seen;
        self.seen = self.seen.max(seq);
        is_new
    }

    fn granted(&mut self, now: Moment, granted: &Granted, out: &mut Out) -> Result<(), Violation> {
        let until = self.until(granted.promise)?;
        if !self.read(granted.seq) {
            return Ok(());
        }
        let n = granted.n;
        let Some(Unanswered::Acquire(id)) = self.unanswered.get(&n).copied() else {
            self.refuse_grant(now, n, out);
            return Ok(());
        };
        self.unanswered.remove(&n);
        let request = self.requests.get_mut(&id).expect("its acquire waits");
        let hold = Hold {
            fence: granted.fence,
            until,
            length: length(granted.promise),
            loss: None,
        };
        if until <= now {
            // It waited too long on its way: another client may hold the lock by now.
            request.state = State::Denied(Denial::Lost(expired(&hold)));
            self.by_number.remove(&n);
            self.send_new(now, Unanswered::Release(n, None), out);
        } else {
            request.state = State::Held(hold);
        }
        out.changed.push(id);
        Ok(())
    }

    /// Releases a grant that nobody waits for, unless that is under way.
    pub(super) fn refuse_grant(&mut self, now: Moment, n: u64, out: &mut Out) {
        let ends = |unanswered: &Unanswered| match unanswered {
            Unanswered::Cancel(request) => *request == n,
            Unanswered::Release(hold, _) => *hold == n,
            Unanswered::Acquire(_) => false,
        };
        if !self.unanswered.values().any(ends) {
            self.send_new(now, Unanswered::Cancel(n), out);
        }
    }

    fn lost(&mut self, now: Moment, lost: &Lost, out: &mut Out) -> Result<(), Violation> {
        let until = self.until(lost.promise)?;
        self.read(lost.seq);
        self.may_be_outside |= lost.reason == EndReason::EpochLost;
        let Some(id) = self.by_number.get(&lost.hold).copied() else {
            return Ok(());
        };
        let request = self.requests.get_mut(&id).expect("it is listed");
        if let State::Held(hold) = &mut request.state
            && hold.loss.is_none()
        {
            // With time left, the hold ends later, and the node waits for its release.
            let since = if lost.promise.valid_for_ms > 0 {
                hold.until = hold.until.max(until);
                hold.until
            } else {
                hold.until.min(now)
            };
            let reason = lost.reason;
            hold.loss = Some(Loss { reason, since });
            out.changed.push(id);
        }
        Ok(())
    }

    fn done(&mut self, done: &Done, out: &mut Out) {
        if let Some(seq) = done.seq {
            self.read(seq);
        }
        if let Some(Unanswered::Release(_, Some(id))) = self.unanswered.remove(&done.n) {
            self.finish(id, Ok(()), out);
        }
    }

    fn failed(&mut self, now: Moment, failure: Failure, out: &mut Out) {
        if let Some(seq) = failure.seq {
            self.read(seq);
        }
        let Some(unanswered) = self.unanswered.get(&failure.n).copied() else {
            return;
        };
        if failure.code == Code::Busy {
            return self.refused_as_busy(now, failure, unanswered, out);
        }
        self.unanswered.remove(&failure.n);
        match unanswered {
            Unanswered::Acquire(id) => self.deny(id, failure, out),
            Unanswered::Release(_, Some(id)) => {
                let reason = failure.reason.unwrap_or(EndReason::Forgotten);
                self.finish(id, Err((reason, now)), out);
            }
            Unanswered::Release(_, None) | Unanswered::Cancel(_) => {}
        }
    }

    /// Sends a message that was refused without effect again, with a new number.
    pub(super) fn send_again(
        &mut self,
        now: Moment,
        n: u64,
        unanswered: Unanswered,
        out: &mut Out,
    ) {
        self.by_number.remove(&n);
        self.send_new(now, unanswered, out);
    }

    /// Ends a release with its answer: the hold was released, or had ended before.
    fn finish(&mut self, id: RequestId, answer: Result<(), (EndReason, Moment)>, out: &mut Out) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let State::Releasing(hold) = &request.state else {
            return;
        };
        let result = answer.map_err(|(reason, now)| {
            let since = hold.until.min(now);
            Denial::Lost(hold.loss.unwrap_or(Loss { reason, since }))
        });
        request.state = State::Released(result);
        out.changed.push(id);
    }

    /// Extends all holds that are not lost. One whose time is up is lost, whatever the node says
    /// now: its holder may have been told so.
    fn extend(&mut self, now: Moment, until: Moment, length: Duration, out: &mut Out) {
        let ids: Vec<RequestId> = self.by_number.values().copied().collect();
        for id in ids {
            self.extend_one(now, id, until, length, out);
        }
    }

    pub(super) fn extend_one(
        &mut self,
        now: Moment,
        id: RequestId,
        until: Moment,
        length: Duration,
        out: &mut Out,
    ) {
        self.expire(now, id, out);
        if let Some(request) = self.requests.get_mut(&id)
            && let State::Held(hold) = &mut request.state
            && hold.loss.is_none()
            && hold.until < until
        {
            hold.until = until;
            hold.length = length;
            out.changed.push(id);
        }
    }
}

pub(super) fn length(promise: Promise) -> Duration {
    Duration::from_millis(promise.valid_for_ms)
}
