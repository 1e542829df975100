//! Messages of a session's client, as the table handles them.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::{Acquire, Cancel, ClientMessage, Code, Failure, NUMBER_MAX, Release};
use soloist_api::{LockName, Moment, check_owner};

use super::{Effects, HoldError, LockRequest, Table};
use crate::mutant::Mutant;
use crate::sessions::{Asked, ConnectionId, Outcome, Push, Request, RequestState, SessionId};

/// Maximum time that a request may wait.
pub const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Timeout for acquiring a lock that nobody holds, for a request that may not wait.
pub const TRY_MAX: Duration = Duration::from_secs(1);

/// What the caller still has to do with a session's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remaining {
    /// Nothing.
    Nothing,
    /// Answer this query, or start or end the events of `watch`.
    Answer(ClientMessage),
    /// Find out whether another request holds this lock or was earlier, and if so, call
    /// [`refuse_try`](Table::refuse_try) with this number.
    Try(u64, LockName),
}

impl Table {
    /// Handles a message of a session's client. If it breaks the protocol, or comes over a
    /// connection that is no longer the session's, the effects close the connection.
    pub fn receive_from_session(
        &mut self,
        now: Moment,
        id: SessionId,
        connection: ConnectionId,
        message: ClientMessage,
        out: &mut Effects,
    ) -> Remaining {
        self.expire_if_due(now, id, out);
        let Some(session) = self.context.sessions.get(id) else {
            // If it has just expired, this connection was told.
            return Remaining::Nothing;
        };
        if session.connection != Some(connection) {
            return Remaining::Nothing;
        }
        let sessions = &mut self.context.sessions;
        let fault = match (message.n(), message.seen()) {
            (None, _) => Some((Code::Hello, "a connection has one hello, its first message")),
            (Some(n), _) if n == 0 || n > NUMBER_MAX => Some((Code::BadMessage, NUMBER_RANGE)),
            (_, Some(seen)) if !sessions.see(id, seen) => Some((Code::BadMessage, SEEN_TOO_HIGH)),
            _ => None,
        };
        if let Some((code, detail)) = fault {
            self.close(id, connection, code, detail, out);
            return Remaining::Nothing;
        }
        let n = message.n().unwrap_or_default();
        let extends = !self.context.draining;
        let session = self.context.sessions.get_mut(id).expect("it was there");
        if n > session.handled() {
            session.handle(n, now, extends);
        } else if !self.context.tuning.has(Mutant::RequestTwice) {
            return self.repeat(id, connection, message, out);
        }
        self.handle(now, id, connection, message, out)
    }

    fn handle(
        &mut self,
        now: Moment,
        id: SessionId,
        connection: ConnectionId,
        message: ClientMessage,
        out: &mut Effects,
    ) -> Remaining {
        let acquires = matches!(message, ClientMessage::Acquire(_));
        let ends = matches!(
            message,
            ClientMessage::Cancel(_) | ClientMessage::Release(_)
        );
        if (acquires || ends)
            && let Some(detail) = self.context.sessions.busy(id, acquires)
        {
            let n = message.n().unwrap_or_default();
            out.push(id, connection, refused(n, Code::Busy, detail));
            return Remaining::Nothing;
        }
        match message {
            ClientMessage::Acquire(acquire) => {
                return self.acquire_in_session(now, id, connection, acquire, out);
            }
            ClientMessage::Cancel(cancel) => {
                self.cancel_in_session(now, id, connection, &cancel, out);
            }
            ClientMessage::Release(release) => {
                self.release_in_session(now, id, connection, release, out);
            }
            ClientMessage::Ping(ping) => out.push(id, connection, Push::Pong(ping.n)),
            ClientMessage::End(end) => {
                out.push(id, connection, Push::Done(end.n));
                self.end_session(now, id, out);
            }
            query => return Remaining::Answer(query),
        }
        Remaining::Nothing
    }

    /// Handles a message whose number was handled before. It has no second effect.
    fn repeat(
        &mut self,
        id: SessionId,
        connection: ConnectionId,
        message: ClientMessage,
        out: &mut Effects,
    ) -> Remaining {
        let n = message.n().unwrap_or_default();
        let asked = match message {
            ClientMessage::Acquire(acquire) => {
                LockName::new(&acquire.lock).ok().map(Asked::Acquire)
            }
            ClientMessage::Cancel(cancel) => Some(Asked::Cancel(cancel.request)),
            ClientMessage::Release(release) => Some(Asked::Release(release.hold)),
            ClientMessage::Ping(_) => {
                out.push(id, connection, Push::Pong(n));
                return Remaining::Nothing;
            }
            query => return Remaining::Answer(query),
        };
        match self.session(id).known(n) {
            Some((before, _)) if asked.as_ref() != Some(&before) => {
                let detail = format!("number {n} was used for something else");
                self.close(id, connection, Code::NumberUsed, &detail, out);
            }
            Some((_, Some(kept))) => {
                let push = Push::Outcome(kept.seq, kept.outcome.clone());
                out.push(id, connection, push);
            }
            Some((_, None)) => {}
            None => {
                let detail = "this number was used before, and its outcome is no longer known";
                out.push(id, connection, refused(n, Code::NumberUsed, detail));
            }
        }
        Remaining::Nothing
    }

    fn acquire_in_session(
        &mut self,
        now: Moment,
        id: SessionId,
        connection: ConnectionId,
        acquire: Acquire,
        out: &mut Effects,
    ) -> Remaining {
        let n = acquire.n;
        let session = self.session(id);
        let asked = check(&acquire).map(|(name, wait)| {
            let owner = acquire.owner.as_deref();
            let owner = owner.map_or_else(|| Arc::clone(&session.owner), Arc::from);
            let client = session.client.clone();
            (name, wait, owner, client)
        });
        let (name, wait, owner, client) = match asked {
            Ok(asked) => asked,
            Err(detail) => {
                out.push(id, connection, refused(n, Code::BadRequest, detail));
                return Remaining::Nothing;
            }
        };
        if self.context.is_away {
            out.push(id, connection, refused(n, Code::Unavailable, NOT_MEMBER));
            return Remaining::Nothing;
        }
        let is_try = wait.is_some_and(|wait| wait.is_zero());
        if is_try && self.lock(&name).is_some_and(|lock| lock.is_wanted()) {
            out.push(
                id,
                connection,
                refused(n, Code::NotGranted, not_granted(&name)),
            );
            return Remaining::Nothing;
        }
        let ask = LockRequest {
            owner,
            ttl: None,
            until: wait.map(|wait| now + if is_try { TRY_MAX } else { wait }),
            client,
            request: None,
        };
        match self.enqueue(now, &name, ask, Some((id, n)), out) {
            Ok(ticket) => {
                let state = RequestState::Waits { ticket, is_try };
                let lock = name.clone();
                let session = self.context.sessions.get_mut(id);
                let session = session.expect("it was there");
                let is_granted = session.requests.contains_key(&n);
                session.requests.entry(n).or_insert(Request { lock, state });
                if is_try && !is_granted {
                    return Remaining::Try(n, name);
                }
            }
            Err(error) => {
                let code = error.session_code();
                out.push(id, connection, refused(n, code, error.to_string()));
            }
        }
        Remaining::Nothing
    }

    fn cancel_in_session(
        &mut self,
        now: Moment,
        id: SessionId,
        connection: ConnectionId,
        cancel: &Cancel,
        out: &mut Effects,
    ) {
        let (n, request) = (cancel.n, cancel.request);
        if !self.give_up(now, (id, request), out) {
            // A message without effect needs no memory: it may be sent again.
            return out.push(id, connection, Push::Done(n));
        }
        let outcome = Outcome::Done { n };
        self.context
            .conclude(id, Asked::Cancel(request), outcome, out);
    }

    fn release_in_session(
        &mut self,
        now: Moment,
        id: SessionId,
        connection: ConnectionId,
        release: Release,
        out: &mut Effects,
    ) {
        let session = self.context.sessions.get_mut(id).expect("it was there");
        if let Some(hold) = session.hold(release.hold) {
            session.requests.remove(&release.hold);
            let released = self.release(now, hold, out);
            released.expect("a session's hold is in the table");
            let outcome = Outcome::Done { n: release.n };
            let push = match release.later {
                true => Push::LaterOutcome,
                false => Push::Outcome,
            };
            let asked = Asked::Release(release.hold);
            self.context.conclude_as(push, id, asked, outcome, out);
            return;
        }
        let push = match session.loss(release.hold) {
            Some(reason) => {
                let mut failure =
                    failure(release.n, Code::Ended, HoldError::Ended(reason).to_string());
                failure.reason = Some(reason);
                Push::Refused(Box::new(failure))
            }
            None => refused(
                release.n,
                Code::NoSuchRequest,
                "the session has no such hold: it has ended, or was not granted yet",
            ),
        };
        out.push(id, connection, push);
    }
}

const NUMBER_RANGE: &str = "a message's number is from 1 to 2^53";
pub(super) const NOT_MEMBER: &str =
    "this node is not a member of the cluster: use another one, or try again later";
pub(super) const SEEN_TOO_HIGH: &str = "`seen` is higher than the number of any outcome";

pub(super) fn not_granted(lock: &LockName) -> String {
    format!("lock {lock:?} was not granted in time")
}

pub(super) fn failure(n: u64, code: Code, detail: impl Into<String>) -> Failure {
    Failure {
        n,
        seq: None,
        code,
        detail: detail.into(),
        reason: None,
    }
}

fn refused(n: u64, code: Code, detail: impl Into<String>) -> Push {
    Push::Refused(Box::new(failure(n, code, detail)))
}

/// Checks a request's lock, owner and time to wait.
fn check(acquire: &Acquire) -> Result<(LockName, Option<Duration>), String> {
    let name = LockName::new(&acquire.lock).map_err(|error| error.to_string())?;
    let owner = acquire.owner.as_deref().map(check_owner).transpose();
    owner.map_err(|error| error.to_string())?;
    let wait = acquire.wait_ms.map(Duration::from_millis);
    if wait.is_some_and(|wait| wait > WAIT_MAX) {
        let max = WAIT_MAX.as_millis();
        return Err(format!(
            "wait_ms is too long: at most {max}, a day, is allowed"
        ));
    }
    Ok((name, wait))
}
