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

use soloist_api::session::UNSEEN_MAX;

use crate::hex;
use crate::locks::Client;
use crate::lookup_map::LookupMap;

/// Maximum number of sessions of a node. One client may have half of them.
pub const SESSIONS_MAX: usize = 1 << 16;

/// Maximum number of outcomes that one client's sessions together have not seen. Beyond that, they
/// may not acquire. What waits or is held by then has its outcomes on top.
pub const UNSEEN_CLIENT_MAX: usize = 1 << 16;

/// The same for all sessions of a node. An outcome takes up to about 700 bytes.
pub const UNSEEN_NODE_MAX: usize = 1 << 18;

/// A session with fewer unseen outcomes and waiting requests than this is not refused because of
/// other sessions.
const UNSEEN_FREE: usize = 4;

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
    /// What the sessions of each client use.
    clients: LookupMap<Client, Used>,
    /// Number of unseen outcomes.
    unseen: usize,
}

#[derive(Clone, Copy, Default, Hash)]
struct Used {
    sessions: usize,
    unseen: usize,
}

impl Sessions {
    /// The limit that one more session of this client would exceed, if any.
    pub(crate) fn full(&self, client: &Client) -> Option<usize> {
        if self.used(client).sessions >= SESSIONS_MAX / 2 {
            return Some(SESSIONS_MAX / 2);
        }
        (self.sessions.len() >= SESSIONS_MAX).then_some(SESSIONS_MAX)
    }

    pub(crate) fn insert(&mut self, id: SessionId, session: Session) {
        let used = self.clients.entry(session.client.clone()).or_default();
        used.sessions += 1;
        self.sessions.insert(id, session);
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.forget(&session.client, session.unseen().len());
        let used = self.clients.get_mut(&session.client);
        let used = used.expect("its session was counted");
        used.sessions -= 1;
        if used.sessions == 0 {
            self.clients.remove(&session.client);
        }
        self.sessions.shrink();
        Some(session)
    }

    /// Keeps an outcome of a session, which must exist, until the client has seen it. Returns its
    /// number.
    pub(crate) fn keep(&mut self, id: SessionId, asked: Asked, outcome: Outcome) -> u64 {
        let session = self.sessions.get_mut(&id).expect("it was there");
        let used = self.clients.get_mut(&session.client);
        used.expect("its session was counted").unseen += 1;
        self.unseen += 1;
        session.keep(asked, outcome)
    }

    /// Forgets the outcomes that a session's client has seen. Returns whether there were that many.
    pub(crate) fn see(&mut self, id: SessionId, seen: u64) -> bool {
        let session = self.sessions.get_mut(&id).expect("it was there");
        let before = session.unseen().len();
        let is_known = session.see(seen);
        let count = before - session.unseen().len();
        if count > 0 {
            let client = session.client.clone();
            self.forget(&client, count);
        }
        is_known
    }

    /// Why a message of this session must be refused: too many outcomes are unseen. Only the
    /// session's own limit refuses messages that do not acquire: they end what was acquired before.
    pub(crate) fn busy(&self, id: SessionId, acquires: bool) -> Option<String> {
        let session = &self.sessions[&id];
        let unseen = session.unseen().len();
        let advice = "report `seen`, then send this again with a new number";
        if unseen >= UNSEEN_MAX {
            return Some(format!("{unseen} outcomes are unseen: {advice}"));
        }
        // The limit of a client is lower than that of the node.
        if !acquires || self.unseen < UNSEEN_CLIENT_MAX {
            return None;
        }
        let its = self.used(&session.client).unseen;
        let (whose, all) = match its >= UNSEEN_CLIENT_MAX {
            true => ("this client", its),
            false if self.unseen >= UNSEEN_NODE_MAX => ("all clients", self.unseen),
            false => return None,
        };
        let is_modest = unseen + session.waiting().len() < UNSEEN_FREE;
        let sessions = || format!("{all} outcomes are unseen in the sessions of {whose}: {advice}");
        (!is_modest).then(sessions)
    }

    fn used(&self, client: &Client) -> Used {
        self.clients.get(client).copied().unwrap_or_default()
    }

    fn forget(&mut self, client: &Client, unseen: usize) {
        let used = self.clients.get_mut(client);
        used.expect("its session was counted").unseen -= unseen;
        self.unseen -= unseen;
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
