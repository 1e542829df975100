//! Effects of an event at the lock table.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::wire;
use crate::Incarnation;
use crate::hex;
use crate::sessions::{ConnectionId, Push, SessionId, SessionPush};
use soloist_api::Moment;
use soloist_api::{EndReason, Fence, LockName};

/// Identifies a waiter on this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub(super) u64);

/// Identifies a hold. Cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub(super) u128);

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Knowing a hold's id is enough to end the hold, so a log shows only its beginning.
        write!(f, "HoldId({:08x}..)", (self.0 >> 96) as u32)
    }
}

impl std::str::FromStr for HoldId {
    type Err = NotAHold;

    fn from_str(text: &str) -> Result<Self, NotAHold> {
        hex::parse(text).map(HoldId).ok_or(NotAHold)
    }
}

/// A text that is not a hold id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid hold id: use the 32 hexadecimal digits that `acquire` returned")]
pub struct NotAHold;

/// A lock was granted to a waiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The new hold.
    pub hold: HoldId,
    /// The lock.
    pub lock: LockName,
    /// Greater than that of every earlier hold of this lock.
    pub fence: Fence,
    /// When it ends unless it is renewed, or `None` if it does not expire.
    pub expires: Option<Moment>,
}

/// Why a waiter was denied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Denial {
    /// Not granted in time.
    NotGranted,
    /// The node is stopping.
    NodeStopped,
    /// The node has not been a member of the cluster for a while. Only waiters of sessions are told
    /// this, since their clients may use another node.
    NotMember,
}

/// An event for clients or watchers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockEvent {
    /// A waiter was enqueued.
    Waiting {
        /// The waiter.
        ticket: Ticket,
        /// The lock it waits for.
        lock: LockName,
        /// The name that the client gave.
        owner: Arc<str>,
    },
    /// The lock was granted to a waiter.
    Granted {
        /// The waiter.
        ticket: Ticket,
        /// The grant.
        grant: Grant,
        /// The name that the client gave.
        owner: Arc<str>,
        /// How long the waiter waited.
        waited: Duration,
        /// How long ago the last hold on this node ended, if the lock has stayed here since.
        handed_over: Option<Duration>,
    },
    /// A waiter was denied, and no longer waits.
    Denied {
        /// The waiter.
        ticket: Ticket,
        /// The lock that it waited for.
        lock: LockName,
        /// The name that the client gave.
        owner: Arc<str>,
        /// How long the waiter waited.
        waited: Duration,
        /// The reason.
        denial: Denial,
    },
    /// A waiter was cancelled by its client, and no longer waits.
    Cancelled {
        /// The waiter.
        ticket: Ticket,
        /// The lock that it waited for.
        lock: LockName,
        /// The name that the client gave.
        owner: Arc<str>,
        /// How long the waiter waited.
        waited: Duration,
    },
    /// A hold ended.
    Ended {
        /// The hold.
        hold: HoldId,
        /// Its lock.
        lock: LockName,
        /// The name that the client gave.
        owner: Arc<str>,
        /// Its fence.
        fence: Fence,
        /// The reason.
        end: EndReason,
        /// How long it was held.
        held: Duration,
    },
}

/// Effects of one event. The caller of the table should reuse one value, to reuse its memory.
#[derive(Debug, Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// The receiver of each message, and where the message ends in `bytes`.
    sends: Vec<(Incarnation, usize)>,
    /// The events, in the order in which they happened.
    pub events: Vec<LockEvent>,
    /// Messages for the clients of sessions, in order.
    pub pushes: Vec<SessionPush>,
    /// Sessions that have ended.
    pub ended_sessions: Vec<SessionId>,
}

impl Effects {
    /// No effects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Receivers and messages, in the order sent.
    pub fn sends(&self) -> impl Iterator<Item = (Incarnation, &[u8])> {
        let begins = std::iter::once(0).chain(self.sends.iter().map(|&(_, end)| end));
        let sends = self.sends.iter().zip(begins);
        sends.map(|(&(to, end), begin)| (to, &self.bytes[begin..end]))
    }

    /// The hold that this waiter was granted, if it was.
    pub fn granted(&self, waiter: Ticket) -> Option<HoldId> {
        self.events.iter().find_map(|event| match event {
            LockEvent::Granted { ticket, grant, .. } if *ticket == waiter => Some(grant.hold),
            _ => None,
        })
    }

    /// Removes all effects but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sends.clear();
        self.events.clear();
        self.pushes.clear();
        self.ended_sessions.clear();
    }

    pub(super) fn push(&mut self, session: SessionId, connection: ConnectionId, push: Push) {
        self.pushes.push(SessionPush {
            session,
            connection,
            push,
        });
    }

    pub(super) fn send(
        &mut self,
        to: Incarnation,
        kind: u8,
        epoch: u64,
        fence: Fence,
        name: &LockName,
        payload: &[u8],
    ) {
        wire::encode(kind, epoch, fence, name, payload, &mut self.bytes);
        self.sends.push((to, self.bytes.len()));
    }
}
