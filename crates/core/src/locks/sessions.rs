//! The table's side of sessions: see [`sessions`](crate::sessions).

use std::sync::Arc;
use std::time::Duration;

use rand_chacha::rand_core::Rng;
use soloist_api::session::{Code, NodeMessage};
use soloist_api::{EndReason, Fence, LockName, Moment};

use super::deadlines::Due;
use super::session_messages::{NOT_MEMBER, SEEN_TOO_HIGH, failure, not_granted};
use super::table::Context;
use super::{Client, Denial, Effects, HoldId, RequestError, Table};
use crate::mutant::Mutant;
use crate::sessions::{
    Asked, ConnectionId, Outcome, Push, Request, RequestState, Session, SessionId, SessionPush,
    SessionRequest, SessionSecret, Teller,
};

/// There is no such session, or it has expired, or the credentials are not its.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this node has no such session of this client: it has expired or ended, or is another's")]
pub struct NoSuchSession;

impl Table {
    /// Starts a session. The effects have its `welcome`.
    pub fn open_session(
        &mut self,
        now: Moment,
        client: Client,
        owner: Arc<str>,
        ttl: Duration,
        connection: ConnectionId,
        out: &mut Effects,
    ) -> Result<SessionId, RequestError> {
        let context = &mut self.context;
        if context.stopping {
            return Err(RequestError::Stopping);
        }
        context.check_ttl(ttl)?;
        if let Some(max) = context.sessions.full(&client) {
            return Err(RequestError::SessionsFull(max));
        }
        let id = SessionId(context.random());
        let secret = SessionSecret(context.random());
        let mut session = Session::new(now, secret, client, owner, ttl, connection);
        session.life.arm(&mut context.deadlines, Due::Session(id));
        context.sessions.insert(id, session);
        out.push(id, connection, Push::Welcome);
        Ok(id)
    }

    /// Resumes a session over another connection. The effects have its `welcome` and the outcomes
    /// that the client has not seen, and close the connection before.
    #[expect(clippy::too_many_arguments, reason = "they are what a hello proves")]
    pub fn resume_session(
        &mut self,
        now: Moment,
        id: SessionId,
        secret: SessionSecret,
        client: &Client,
        seen: u64,
        connection: ConnectionId,
        out: &mut Effects,
    ) -> Result<(), NoSuchSession> {
        self.expire_if_due(now, id, out);
        let tuning = self.context.tuning;
        let extends = !self.context.draining;
        let session = self.context.sessions.get_mut(id).ok_or(NoSuchSession)?;
        let is_its = session.secret == secret && session.client == *client;
        if !is_its && !tuning.has(Mutant::AnySecret) {
            return Err(NoSuchSession);
        }
        if let Some(cut) = session.connection {
            let detail = "the session was resumed by another connection";
            out.push(id, cut, Push::closed(Code::Resumed, detail));
        }
        session.resume(now, connection, extends);
        out.push(id, connection, Push::Welcome);
        if !self.context.sessions.see(id, seen) {
            self.close(id, connection, Code::BadMessage, SEEN_TOO_HIGH, out);
            return Ok(());
        }
        let repeats = !tuning.has(Mutant::GrantUntold);
        for kept in self.session(id).unseen().filter(|_| repeats) {
            let push = Push::Outcome(kept.seq, kept.outcome.clone());
            out.push(id, connection, push);
        }
        if self.context.draining {
            out.push(id, connection, Push::Stopping);
        }
        Ok(())
    }

    /// Records that a connection ended. Nothing else changes: the client may resume its session.
    pub fn cut_session(&mut self, id: SessionId, connection: ConnectionId) {
        let session = self.context.sessions.get_mut(id);
        if let Some(session) = session.filter(|session| session.connection == Some(connection)) {
            session.connection = None;
        }
    }

    /// Denies a request that may not wait, because others were earlier.
    pub fn refuse_try(&mut self, now: Moment, id: SessionId, n: u64, out: &mut Effects) {
        let session = self.context.sessions.get_mut(id);
        let request = session.and_then(|session| session.requests.get_mut(&n));
        let state = request.map(|request| &mut request.state);
        if let Some(RequestState::Waits { ticket, is_try }) = state {
            *is_try = false;
            let ticket = *ticket;
            self.deny(now, ticket, Denial::NotGranted, out);
        }
    }

    /// Ends a session as its client wishes: its requests are given up and its holds released.
    pub fn end_session(&mut self, now: Moment, id: SessionId, out: &mut Effects) {
        self.end_session_for(now, id, EndReason::Released, out);
    }

    /// Ends what a client has left behind on this node when it moved to another one: its requests,
    /// the grants after `seen`, and the holds that it has released. Returns whether the session and
    /// its secret are right.
    ///
    /// Unlike a resume, this takes no more than the secret. The principal cannot be compared: a
    /// client may be a Unix user on one node, and have a token or a certificate on the next. With a
    /// stolen secret, a client that the other node admits can end what the session has, but cannot
    /// use it.
    pub fn leave_session(
        &mut self,
        now: Moment,
        id: SessionId,
        secret: SessionSecret,
        seen: u64,
        released: &[u64],
        out: &mut Effects,
    ) -> bool {
        let tuning = self.context.tuning;
        let session = self.context.sessions.get_mut(id);
        let Some(session) = session.filter(|session| session.secret == secret) else {
            return false;
        };
        if let Some(connection) = session.connection.take() {
            let detail = "the client has moved to another node";
            out.push(id, connection, Push::closed(Code::Resumed, detail));
        }
        let mut over: Vec<u64> = session.waiting().into_iter().map(|(n, _)| n).collect();
        if !tuning.has(Mutant::GrantLeft) {
            let ends_all = tuning.has(Mutant::KeptHoldEnded);
            let from = if ends_all { 0 } else { seen };
            over.extend(session.unseen_holds(from).into_iter().map(|(n, _)| n));
        }
        if !tuning.has(Mutant::ReleaseLeft) {
            over.extend(released);
        }
        self.context.sessions.see(id, seen);
        for n in over {
            self.give_up(now, (id, n), out);
        }
        true
    }

    /// Whether there is such a session.
    pub fn has_session(&self, id: SessionId) -> bool {
        self.context.sessions.get(id).is_some()
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.context.sessions.len()
    }

    /// The message for a push of this table's effects, or `None` if the same event made it void.
    pub fn session_message(&self, teller: &Teller<'_>, push: SessionPush) -> Option<NodeMessage> {
        teller.message(self.context.sessions.get(push.session), push)
    }

    pub(super) fn session(&self, id: SessionId) -> &Session {
        self.context.sessions.get(id).expect("it was there")
    }

    /// Gives up a request of a session, or releases its hold. Returns whether it was not over yet.
    /// Other requests of the session may be granted by this.
    pub(super) fn give_up(
        &mut self,
        now: Moment,
        (id, n): SessionRequest,
        out: &mut Effects,
    ) -> bool {
        let session = self.context.sessions.get_mut(id).expect("it was there");
        let Some(request) = session.requests.remove(&n) else {
            return false;
        };
        match request.state {
            RequestState::Waits { ticket, .. } => {
                self.cancel(now, ticket, out);
            }
            RequestState::Holds { hold, .. } => {
                let released = self.release(now, hold, out);
                released.expect("a session's hold is in the table");
            }
        }
        true
    }

    /// Expires a session if its time is up. Called before every use, since the timer may be late.
    pub(super) fn expire_if_due(&mut self, now: Moment, id: SessionId, out: &mut Effects) {
        let session = self.context.sessions.get(id);
        if session.is_some_and(|session| session.life.is_over(now)) {
            self.end_session_for(now, id, self.context.expiry_reason(), out);
        }
    }

    /// Called when a session's timer fires. The deadline may have moved since the timer was set.
    pub(super) fn session_due(&mut self, now: Moment, id: SessionId, out: &mut Effects) {
        self.expire_if_due(now, id, out);
        let context = &mut self.context;
        if let Some(session) = context.sessions.get_mut(id) {
            session.life.arm(&mut context.deadlines, Due::Session(id));
        }
    }

    fn end_session_for(
        &mut self,
        now: Moment,
        id: SessionId,
        reason: EndReason,
        out: &mut Effects,
    ) {
        let Some(session) = self.context.sessions.get_mut(id) else {
            return;
        };
        // Nothing is told to a client whose session has ended.
        let connection = session.connection.take();
        // One that leaves may let another one of the session enter. So the session ends after them.
        for (n, _) in session.waiting() {
            self.give_up(now, (id, n), out);
        }
        let session = self.context.sessions.remove(id);
        let mut session = session.expect("giving up a request ends no session");
        session.life.disarm(&mut self.context.deadlines);
        out.ended_sessions.push(id);
        for (_, hold) in session.unseen_holds(0) {
            self.end_due(now, hold, reason, out);
        }
        if let Some(connection) = connection {
            let (code, detail) = match reason {
                EndReason::Released => (Code::Ended, "the session has ended"),
                _ => (Code::Expired, "the session has expired, with all its holds"),
            };
            out.push(id, connection, Push::closed(code, detail));
        }
    }

    /// Closes the connection of a client that broke the protocol. The session stays.
    pub(super) fn close(
        &mut self,
        id: SessionId,
        connection: ConnectionId,
        code: Code,
        detail: &str,
        out: &mut Effects,
    ) {
        out.push(id, connection, Push::closed(code, detail));
        self.cut_session(id, connection);
    }

    /// Tells all sessions that the node extends no promise, and that their holds will end. They
    /// expire by `until`, since later promises are made from their deadlines.
    pub(super) fn drain_sessions(&mut self, now: Moment, until: Moment, out: &mut Effects) {
        for id in self.context.sessions.ids() {
            let context = &mut self.context;
            let session = context.sessions.get_mut(id).expect("it was listed");
            if !context.tuning.has(Mutant::DrainBeyondHolds) {
                session.life.end_by(until);
            }
            session.life.arm(&mut context.deadlines, Due::Session(id));
            let ending = session.unseen_holds(0);
            if let Some(connection) = session.connection {
                out.push(id, connection, Push::Stopping);
            }
            for (n, hold) in ending {
                self.context
                    .lose_in_session((id, n), EndReason::NodeStopped, false, out);
                if self.context.tuning.has(Mutant::EndWhenWritten) {
                    self.end_due(now, hold, EndReason::NodeStopped, out);
                }
            }
        }
    }
}

impl Context {
    /// A random number that cannot be guessed.
    pub(super) fn random(&mut self) -> u128 {
        u128::from(self.ids.next_u64()) << 64 | u128::from(self.ids.next_u64())
    }

    /// Keeps an outcome, and sends it if the session has a connection.
    pub(super) fn conclude(
        &mut self,
        id: SessionId,
        asked: Asked,
        outcome: Outcome,
        out: &mut Effects,
    ) -> u64 {
        self.conclude_as(Push::Outcome, id, asked, outcome, out)
    }

    /// Like [`conclude`](Context::conclude), with a push of the caller's choice.
    pub(super) fn conclude_as(
        &mut self,
        push: impl FnOnce(u64, Outcome) -> Push,
        id: SessionId,
        asked: Asked,
        outcome: Outcome,
        out: &mut Effects,
    ) -> u64 {
        let seq = self.sessions.keep(id, asked, outcome.clone());
        let session = self.sessions.get(id).expect("it was there");
        if let Some(connection) = session.connection {
            out.push(id, connection, push(seq, outcome));
        }
        seq
    }

    /// Records that a session's request was granted.
    pub(super) fn grant_in_session(
        &mut self,
        (id, n): SessionRequest,
        lock: &LockName,
        hold: HoldId,
        fence: Fence,
        out: &mut Effects,
    ) {
        let asked = Asked::Acquire(lock.clone());
        let seq = self.conclude(id, asked, Outcome::Granted { n, fence }, out);
        let session = self.sessions.get_mut(id).expect("it was there");
        let state = RequestState::Holds {
            hold,
            fence,
            seq,
            is_ending: false,
        };
        let lock = lock.clone();
        session.requests.insert(n, Request { lock, state });
    }

    /// Records that a session's request was denied.
    pub(super) fn deny_in_session(
        &mut self,
        (id, n): SessionRequest,
        lock: &LockName,
        denial: Denial,
        out: &mut Effects,
    ) {
        let session = self.sessions.get_mut(id).expect("its waiters end first");
        let removed = session.requests.remove(&n);
        let is_try = removed.is_some_and(|request| {
            matches!(request.state, RequestState::Waits { is_try: true, .. })
        });
        let (code, detail) = match denial {
            Denial::NodeStopped => (Code::Stopping, RequestError::Stopping.to_string()),
            Denial::NotMember => (Code::Unavailable, NOT_MEMBER.to_owned()),
            Denial::NotGranted if is_try => (
                Code::Unavailable,
                format!("lock {lock:?} was not granted, although no holder was seen"),
            ),
            Denial::NotGranted => (Code::NotGranted, not_granted(lock)),
        };
        let failure = failure(n, code, detail);
        let asked = Asked::Acquire(lock.clone());
        self.conclude(id, asked, Outcome::Failed(Box::new(failure)), out);
    }

    /// Tells a session that a hold has ended, or will end, unless the client released it or was
    /// told before.
    pub(super) fn lose_in_session(
        &mut self,
        (id, n): SessionRequest,
        reason: EndReason,
        is_over: bool,
        out: &mut Effects,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(request) = session.requests.get_mut(&n) else {
            return;
        };
        let lock = request.lock.clone();
        let was_told = match &mut request.state {
            RequestState::Holds { is_ending, .. } => std::mem::replace(is_ending, true),
            RequestState::Waits { .. } => return,
        };
        if is_over {
            session.requests.remove(&n);
        }
        if reason.is_loss() && !was_told {
            let lost = Outcome::Lost { hold: n, reason };
            self.conclude(id, Asked::Acquire(lock), lost, out);
        }
    }
}
