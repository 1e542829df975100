//! Connections of sessions: what the lock table tells their clients.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use soloist_api::session::{ClientMessage, Code, NodeMessage};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::shared::Shared;
use super::state::NodeState;
use crate::mutant::Mutant;
use soloist_core::epochs::member::MemberState;
use soloist_core::locks::{Client, NoSuchSession, Remaining, RequestError};
use soloist_core::sessions::{ConnectionId, SessionId, SessionSecret, Teller};

/// Maximum number of messages that a connection takes at a time. The others can still be dropped.
const PORTION: usize = 1 << 10;

/// Maximum number of messages that wait because no caller waits for them.
const HELD_BACK_MAX: usize = 64;

/// Messages that wait to be written to a client's connection.
///
/// Their number needs no limit of its own. A connection handles no further messages of its client
/// while it cannot write, so what is added then is about requests and holds that the session had
/// before. They have quotas, and each has few outcomes.
#[derive(Default)]
pub(crate) struct Outgoing {
    messages: Mutex<Queue>,
    ready: Notify,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<NodeMessage>,
    /// Whether the messages are to be written now.
    is_due: bool,
}

impl Outgoing {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.messages.lock().expect("no thread panicked in it")
    }

    /// Adds a message. One that `may_wait` is written together with the next that may not.
    fn push(&self, message: NodeMessage, may_wait: bool) {
        let mut queue = self.queue();
        if let NodeMessage::Closed(closed) = &message
            && closed.code == Code::Resumed
        {
            // The session's next connection repeats the outcomes. Clients that resume again and
            // again and never read must not fill the memory.
            queue.messages.clear();
        }
        queue.messages.push_back(message);
        queue.is_due |= !may_wait || queue.messages.len() >= HELD_BACK_MAX;
        let is_due = queue.is_due;
        drop(queue);
        if is_due {
            self.ready.notify_one();
        }
    }

    /// Drops all messages.
    pub(crate) fn clear(&self) {
        self.queue().messages.clear();
    }

    /// Makes messages that may wait due.
    pub(crate) fn flush(&self) {
        self.queue().is_due = true;
    }

    /// Waits until there is something to write. Cancel safe.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Takes messages if they are to be written now, or if others are anyway. Returns whether there
    /// are more.
    pub(crate) fn take(&self, messages: &mut VecDeque<NodeMessage>, writes_anyway: bool) -> bool {
        let mut queue = self.queue();
        if !queue.is_due && !writes_anyway {
            return false;
        }
        if queue.messages.len() > PORTION {
            messages.extend(queue.messages.drain(..PORTION));
            queue.is_due = true;
            return true;
        }
        messages.append(&mut queue.messages);
        queue.messages.shrink_to(PORTION);
        queue.is_due = false;
        false
    }
}

/// A client that wants to start a session.
pub(crate) struct NewSession {
    pub client: Client,
    pub owner: Arc<str>,
    pub ttl: Duration,
}

/// A client that wants to resume a session.
pub(crate) struct ResumedSession {
    pub client: Client,
    pub session: SessionId,
    pub secret: SessionSecret,
    pub seen: u64,
}

impl NodeState {
    /// Starts a session on a new connection. Its `welcome` is in the connection's queue.
    pub(crate) fn open_session(
        &mut self,
        shared: &Shared,
        new: NewSession,
        connection: ConnectionId,
        outgoing: &Arc<Outgoing>,
    ) -> Result<SessionId, RequestError> {
        self.connections.insert(connection, Arc::clone(outgoing));
        let NewSession { client, owner, ttl } = new;
        let opened = self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            table.open_session(now, client, owner, ttl, connection, &mut out.locks)
        });
        if opened.is_err() {
            self.connections.remove(&connection);
        }
        opened
    }

    /// Resumes a session on a new connection. Its `welcome` is in the connection's queue.
    pub(crate) fn resume_session(
        &mut self,
        shared: &Shared,
        resumption: &ResumedSession,
        connection: ConnectionId,
        outgoing: &Arc<Outgoing>,
    ) -> Result<(), NoSuchSession> {
        self.connections.insert(connection, Arc::clone(outgoing));
        let ResumedSession {
            client,
            session,
            secret,
            seen,
        } = resumption;
        let resumed = self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            let out = &mut out.locks;
            table.resume_session(now, *session, *secret, client, *seen, connection, out)
        });
        if resumed.is_err() {
            self.connections.remove(&connection);
        }
        resumed
    }

    /// Handles a message of a session's client.
    pub(crate) fn receive_from_session(
        &mut self,
        shared: &Shared,
        session: SessionId,
        connection: ConnectionId,
        message: ClientMessage,
    ) -> Remaining {
        if let ClientMessage::Acquire(_) = message {
            (shared.keeping.membership.planted).panic_if(Mutant::PanicInState);
        }
        self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            table.receive_from_session(now, session, connection, message, &mut out.locks)
        })
    }

    /// Called when a connection has ended.
    pub(crate) fn cut_session(
        &mut self,
        shared: &Shared,
        session: SessionId,
        connection: ConnectionId,
    ) {
        self.connections.remove(&connection);
        self.drive(shared, |part, now, out| {
            part.table_mut(now, out).cut_session(session, connection);
        });
    }

    /// Denies a request that may not wait, because others were earlier.
    pub(crate) fn refuse_try(&mut self, shared: &Shared, session: SessionId, n: u64) {
        self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            table.refuse_try(now, session, n, &mut out.locks);
        });
    }

    /// Ends a session with the process that opened its last connection, or with none. Replaces
    /// what an earlier connection wished.
    pub(crate) fn watch_process(
        &mut self,
        session: SessionId,
        connection: ConnectionId,
        process: Option<AbortOnDropHandle<()>>,
    ) {
        let is_there = self.table().has_session(session);
        match process.filter(|_| is_there) {
            Some(process) => drop(self.processes.insert(session, (connection, process))),
            None => drop(self.processes.remove(&session)),
        }
    }

    /// Ends a session, unless it was resumed by a later connection: gives up its requests and
    /// releases its holds.
    pub(crate) fn end_session_with_process(
        &mut self,
        shared: &Shared,
        session: SessionId,
        connection: ConnectionId,
    ) {
        let watched = self.processes.get(&session);
        if watched.is_none_or(|(by, _)| *by != connection) {
            return;
        }
        self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            table.end_session(now, session, &mut out.locks);
        });
    }

    /// Ends what a client left behind on this node when it moved to another one.
    pub(crate) fn leave_session(&mut self, shared: &Shared, left: &LeftSession) -> bool {
        let (Ok(session), Ok(secret)) = (left.session.parse(), left.secret.parse()) else {
            return false;
        };
        self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            let out = &mut out.locks;
            table.leave_session(now, session, secret, left.seen, &left.release, out)
        })
    }

    /// Passes the pushes of the last event to the connections.
    pub(super) fn push(&mut self, shared: &Shared) {
        if self.effects.locks.pushes.is_empty() {
            return;
        }
        let teller = Teller {
            node: shared.name(),
            epoch: match self.part.member_state() {
                MemberState::Member(epoch) => epoch,
                MemberState::Changing(_) | MemberState::Outside => 0,
            },
            valid_until: self.part.valid_until(),
            lease: shared.lease(),
        };
        for push in self.effects.locks.pushes.drain(..) {
            if let Some(outgoing) = self.connections.get(&push.connection) {
                let may_wait = push.push.may_wait();
                if let Some(message) = self.part.table().session_message(&teller, push) {
                    outgoing.push(message, may_wait);
                }
            }
        }
    }
}

/// A session that its client has left, as nodes tell each other.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct LeftSession {
    pub session: String,
    pub secret: String,
    pub seen: u64,
    pub release: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use soloist_api::session::{Closed, Done};

    use super::*;

    fn done(n: u64) -> NodeMessage {
        NodeMessage::Done(Done { n, seq: Some(n) })
    }

    fn taken(outgoing: &Outgoing, writes_anyway: bool) -> Vec<NodeMessage> {
        let mut messages = VecDeque::new();
        assert!(!outgoing.take(&mut messages, writes_anyway));
        messages.into()
    }

    #[test]
    fn messages_that_may_wait_wake_nobody_and_keep_their_order() {
        let outgoing = Outgoing::default();
        outgoing.push(done(1), true);
        assert_eq!(outgoing.ready().now_or_never(), None);
        assert_eq!(taken(&outgoing, false), []);
        outgoing.push(done(2), false);
        outgoing.push(done(3), true);
        assert_eq!(outgoing.ready().now_or_never(), Some(()));
        assert_eq!(taken(&outgoing, false), [done(1), done(2), done(3)]);
        outgoing.push(done(4), true);
        assert_eq!(taken(&outgoing, false), []);
        assert_eq!(taken(&outgoing, true), [done(4)]);
    }

    #[test]
    fn very_many_messages_are_taken_in_portions() {
        let outgoing = Outgoing::default();
        let count = 20 * PORTION as u64 + 1;
        for n in 1..=count {
            outgoing.push(done(n), false);
        }
        let (mut all, mut takes) = (Vec::new(), 0);
        let mut messages = VecDeque::new();
        loop {
            let are_more = outgoing.take(&mut messages, false);
            assert!(messages.len() <= PORTION);
            all.extend(messages.drain(..));
            takes += 1;
            if !are_more {
                break;
            }
        }
        assert_eq!(takes, 21);
        assert!(all.into_iter().eq((1..=count).map(done)));
        assert_eq!(taken(&outgoing, false), []);
    }

    #[test]
    fn a_connection_that_is_cut_by_a_resume_keeps_nothing_but_its_end() {
        let outgoing = Outgoing::default();
        outgoing.push(done(1), false);
        let resumed = NodeMessage::Closed(Closed {
            code: Code::Resumed,
            detail: String::new(),
        });
        outgoing.push(resumed.clone(), false);
        assert_eq!(taken(&outgoing, false), [resumed]);
    }

    #[test]
    fn many_messages_that_may_wait_are_written() {
        let outgoing = Outgoing::default();
        for n in 1..=HELD_BACK_MAX as u64 {
            assert_eq!(taken(&outgoing, false), []);
            outgoing.push(done(n), true);
        }
        assert_eq!(outgoing.ready().now_or_never(), Some(()));
        assert_eq!(taken(&outgoing, false).len(), HELD_BACK_MAX);
    }
}
