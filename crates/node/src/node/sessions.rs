//! Connections of sessions: what the lock table tells their clients.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use soloist_api::session::{ClientMessage, NodeMessage};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::shared::Shared;
use super::state::NodeState;
use crate::mutant::Mutant;
use soloist_core::epochs::member::MemberState;
use soloist_core::locks::{Client, NoSuchSession, Remaining, RequestError};
use soloist_core::sessions::{ConnectionId, SessionId, SessionSecret, Teller};

/// Maximum number of messages that wait to be written to a client. A connection with more is
/// closed. Outcomes are kept by the session, so nothing is lost.
const WAITING_MAX: usize = 1 << 14;

/// Messages that wait to be written to a client's connection.
#[derive(Default)]
pub(crate) struct Outgoing {
    messages: Mutex<Queue>,
    ready: Notify,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<NodeMessage>,
    is_full: bool,
}

impl Outgoing {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.messages.lock().expect("no thread panicked in it")
    }

    fn push(&self, message: NodeMessage) {
        let mut queue = self.queue();
        if queue.messages.len() >= WAITING_MAX {
            queue.is_full = true;
        } else {
            queue.messages.push_back(message);
        }
        drop(queue);
        self.ready.notify_one();
    }

    /// Waits until there is something to take. Cancel safe.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Takes all messages that wait. Returns whether some were dropped because there were too many.
    pub(crate) fn take(&self, messages: &mut VecDeque<NodeMessage>) -> bool {
        let mut queue = self.queue();
        messages.append(&mut queue.messages);
        queue.is_full
    }
}

/// A client that wants to start a session.
pub(crate) struct Newcomer {
    pub client: Client,
    pub owner: Arc<str>,
    pub ttl: Duration,
}

/// A client that wants to resume a session.
pub(crate) struct Returning {
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
        newcomer: Newcomer,
        connection: ConnectionId,
        outgoing: &Arc<Outgoing>,
    ) -> Result<SessionId, RequestError> {
        self.connections.insert(connection, Arc::clone(outgoing));
        let Newcomer { client, owner, ttl } = newcomer;
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
        returning: &Returning,
        connection: ConnectionId,
        outgoing: &Arc<Outgoing>,
    ) -> Result<(), NoSuchSession> {
        self.connections.insert(connection, Arc::clone(outgoing));
        let Returning {
            client,
            session,
            secret,
            seen,
        } = returning;
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
                outgoing.push(self.part.table().session_message(&teller, push));
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
