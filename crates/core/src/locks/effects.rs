//! What comes of an event at the lock table.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_algorithms::NodeId;

use super::wire;
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// Somebody's place among the waiters of this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub(super) u64);

/// The name of a hold. Nobody can guess it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub(super) u128);

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who knows a hold's name can end it: a log shows the beginning alone.
        write!(f, "HoldId({:08x}..)", (self.0 >> 96) as u32)
    }
}

impl std::str::FromStr for HoldId {
    type Err = NotAHold;

    fn from_str(text: &str) -> Result<Self, NotAHold> {
        let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok());
        number.flatten().map(HoldId).ok_or(NotAHold)
    }
}

/// A text that names no hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this names no hold: it takes the 32 hexadecimal digits that `acquire` gave")]
pub struct NotAHold;

/// A lock was given to a waiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The hold that begins.
    pub hold: HoldId,
    /// The lock.
    pub lock: LockName,
    /// Greater than that of every earlier hold of this lock.
    pub fence: Fence,
    /// When it ends unless it is renewed.
    pub expires: Option<Moment>,
}

/// Why a hold ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its holder gave it back.
    Released,
    /// Its time to live ran out: the holder did not renew it.
    Expired,
    /// Its node was cut off and may not speak for it any more.
    EpochLost,
    /// Its node was stopped.
    NodeStopped,
}

impl End {
    /// Its name in the API, in logs and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            End::Released => "released",
            End::Expired => "expired",
            End::EpochLost => "epoch-lost",
            End::NodeStopped => "node-stopped",
        }
    }

    /// Whether the holder lost it, rather than gave it back.
    pub fn is_loss(self) -> bool {
        self != End::Released
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a waiter got nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Denial {
    /// Not granted in time.
    Late,
    /// The node stops.
    NodeStopped,
}

/// Something that clients or watchers want to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockEvent {
    /// Somebody began to wait.
    Waiting {
        /// Who.
        ticket: Ticket,
        /// For what.
        lock: LockName,
        /// As they call themselves.
        owner: Arc<str>,
    },
    /// A waiter got the lock.
    Granted {
        /// Who.
        ticket: Ticket,
        /// What.
        grant: Grant,
        /// As they call themselves.
        owner: Arc<str>,
        /// How long they waited.
        waited: Duration,
        /// How long ago the last hold on this node ended, if the lock stayed here.
        handed_over: Option<Duration>,
    },
    /// A waiter got nothing, and waits no more.
    Denied {
        /// Who.
        ticket: Ticket,
        /// What they waited for.
        lock: LockName,
        /// Why.
        denial: Denial,
    },
    /// A hold ended.
    Ended {
        /// Which.
        hold: HoldId,
        /// Of what.
        lock: LockName,
        /// Whose, as they call themselves.
        owner: Arc<str>,
        /// Its fence.
        fence: Fence,
        /// Why.
        end: End,
        /// How long it was held.
        held: Duration,
    },
}

/// What comes of one event. Whoever drives the table keeps one and uses it again and again.
#[derive(Debug, Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// Receiver and where its message ends in the bytes.
    sends: Vec<(NodeId, usize)>,
    /// In the order in which it happened.
    pub events: Vec<LockEvent>,
}

impl Effects {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Receivers and messages, in the order sent.
    pub fn sends(&self) -> impl Iterator<Item = (NodeId, &[u8])> {
        let begins = std::iter::once(0).chain(self.sends.iter().map(|&(_, end)| end));
        let sends = self.sends.iter().zip(begins);
        sends.map(|(&(to, end), begin)| (to, &self.bytes[begin..end]))
    }

    /// Forgets them, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sends.clear();
        self.events.clear();
    }

    pub(super) fn send(
        &mut self,
        to: NodeId,
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
