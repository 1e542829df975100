//! Sessions: how clients hold locks over one connection that may break.
//!
//! `soloist_api::session` describes the messages. A session has the client's requests and
//! holds, the outcomes that the client has not seen, and one deadline for all of them. It outlives
//! its connection. The lock table contains the sessions, because they expire, grant and end
//! together with its waiters and holds: the calls are methods of [`Table`](crate::locks::Table), in
//! `locks/sessions.rs`. Messages to clients come out as [`Push`]es in the table's effects.
//!
//! # Why no grant is lost, and no hold ends too early
//!
//! - A grant is an outcome, kept until the client has seen it. If it was written to a connection
//!   that broke, the resumed connection gets it again. If the client never resumes, the hold
//!   expires with the session. If the client moves to another node, it names the last outcome that
//!   it has seen, and the grants after that are released (`left`).
//! - A hold ends because the client released it by name or ended its session, because the session's
//!   deadline has passed, or with the node's lease. A promise never reaches beyond the deadline and
//!   the lease at the time when it was made, and the deadline never moves back. Writing a message
//!   and losing a connection change nothing.
//! - A promise is counted by the client from when it sent the message that the promise names, and
//!   by the node from when it handled that message, which is later.
//! - Messages are handled in the order of their numbers, each number once, and only from the
//!   session's current connection.

mod outcome;
mod session;

use std::fmt;
use std::str::FromStr;

pub(crate) use outcome::Asked;
pub use outcome::{Outcome, Push, SessionPush, Teller};
pub(crate) use session::{Request, RequestState, Session};

use crate::hex;
use crate::locks::Client;
use crate::lookup_map::LookupMap;

/// Maximum number of sessions of a node. One client may have half of them.
pub const SESSIONS_MAX: usize = 1 << 16;

/// Identifies a session on its node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub(crate) u128);

/// The secret that proves that a session belongs to a client. Cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionSecret(pub(crate) u128);

/// Identifies a connection of a node's clients. The caller of the table chooses it, and never twice
/// the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// A request of a session: the session, and the number that the client chose.
pub(crate) type SessionRequest = (SessionId, u64);

/// A text that is not a session's id or secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a session and its secret have 32 hexadecimal digits each, as `welcome` told them")]
pub struct NotASession;

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for SessionId {
    type Err = NotASession;

    fn from_str(text: &str) -> Result<Self, NotASession> {
        hex::parse(text).map(SessionId).ok_or(NotASession)
    }
}

impl fmt::Display for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret(..)")
    }
}

impl FromStr for SessionSecret {
    type Err = NotASession;

    fn from_str(text: &str) -> Result<Self, NotASession> {
        hex::parse(text).map(SessionSecret).ok_or(NotASession)
    }
}

/// All sessions of a node.
#[derive(Clone, Default, Hash)]
pub(crate) struct Sessions {
    sessions: LookupMap<SessionId, Session>,
    /// Number of sessions by client.
    clients: LookupMap<Client, usize>,
}

impl Sessions {
    /// The limit that one more session of this client would exceed, if any.
    pub(crate) fn full(&self, client: &Client) -> Option<usize> {
        let its = self.clients.get(client).copied().unwrap_or_default();
        if its >= SESSIONS_MAX / 2 {
            return Some(SESSIONS_MAX / 2);
        }
        (self.sessions.len() >= SESSIONS_MAX).then_some(SESSIONS_MAX)
    }

    pub(crate) fn insert(&mut self, id: SessionId, session: Session) {
        *self.clients.entry(session.client.clone()).or_default() += 1;
        self.sessions.insert(id, session);
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        let its = self.clients.get_mut(&session.client);
        let its = its.expect("its session was counted");
        *its -= 1;
        if *its == 0 {
            self.clients.remove(&session.client);
        }
        self.sessions.shrink();
        Some(session)
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// All ids, sorted.
    pub(crate) fn ids(&self) -> Vec<SessionId> {
        let sorted = self.sessions.sorted().into_iter();
        sorted.map(|(id, _)| *id).collect()
    }
}
