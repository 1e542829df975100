//! Messages between members and the keepers' leader.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::roster::Change;
use crate::Incarnation;
use crate::locks::HeldLock;
use crate::name_hash::NameHash;
use crate::rows::Rows;
use soloist_api::NodeName;

/// Sent by a member, or by a node that wants to be one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ToKeepers {
    /// Sent by a node that is not a member, to become one. The leader answers with `Probe`, or with
    /// the reason why not.
    Join,
    /// A candidate's immediate answer to `Probe`.
    Probed {
        /// The number of that probe.
        number: u64,
    },
    /// Sent by a member to extend its lease, counted from when it sends this.
    Renew {
        /// Number of the renewal, repeated in the answer.
        number: u64,
        /// The epoch that the sender has installed last, or 0.
        installed: u64,
    },
    /// The sender has stopped taking part in earlier epochs, and its clients hold these locks. It
    /// sends the first piece when it receives `Begin`, and further pieces when the leader asks for
    /// them.
    Report {
        /// The epoch that is about to begin.
        epoch: u64,
        /// Number of pieces, at least one.
        pieces: u32,
        /// Index of this piece, from 0.
        number: u32,
        /// The hashes of the names of the locks in this piece, with the key of the epoch. Sorted,
        /// also from piece to piece.
        held: Rows<NameHash>,
    },
    /// Sent by a member that is installing an epoch, to ask for a piece of the held locks.
    SendHolds {
        /// The epoch.
        epoch: u64,
        /// Index of the piece.
        number: u32,
    },
    /// The sender no longer takes part, and the leader need not wait for its lease.
    Leave,
    /// A message to another member was lost in this epoch, so a new one has to begin.
    Suspect {
        /// The epoch.
        epoch: u64,
    },
    /// Messages to these incarnations of members have been pending for too long. Sent with each
    /// renewal while this is so, and once more when it no longer is.
    Unreached {
        /// All unreachable incarnations.
        incarnations: Vec<Incarnation>,
    },
    /// A lock has used up the fences of this epoch, and its waiters wait for the next one. Sent
    /// with each renewal until that begins.
    Exhausted {
        /// The epoch.
        epoch: u64,
    },
}

/// Sent by the keepers' leader.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ToMember {
    /// The lease is renewed.
    Granted {
        /// Number of the renewal.
        number: u64,
    },
    /// The receiver is not a member, or no longer one. It may join again as a new incarnation.
    NoMember,
    /// Tells a candidate to answer immediately. An epoch begins for it once it has answered twice
    /// in time.
    Probe {
        /// Number of the probe, repeated in the answer.
        number: u64,
    },
    /// A candidate's answer took too long. It is probed again when it next asks to join.
    TooSlow {
        /// The round-trip time.
        took: Duration,
        /// The maximum round-trip time.
        limit: Duration,
    },
    /// The receiver has disturbed the members lately, and has to ask again later.
    HeldOff {
        /// The remaining time to wait.
        left: Duration,
    },
    /// A node with the receiver's name is a member and alive.
    NameTaken,
    /// An epoch is about to begin. The receiver stops taking part in the one before, and reports.
    Begin(Change),
    /// Asks for a piece of the receiver's report.
    SendReport {
        /// The epoch that is about to begin.
        epoch: u64,
        /// Index of the piece.
        number: u32,
    },
    /// An epoch begins with the locks that its members hold. The receiver asks for all pieces but
    /// the first.
    Install {
        /// The epoch and its members.
        change: Change,
        /// Number of pieces of the held locks.
        pieces: u32,
        /// The first piece, if there is one. Pieces are sorted, also from piece to piece.
        first: Option<Rows<HeldLock>>,
    },
    /// A piece of the locks that members hold when an epoch begins.
    Holds {
        /// The epoch.
        epoch: u64,
        /// Index of the piece.
        number: u32,
        /// The piece.
        piece: Rows<HeldLock>,
    },
    /// The receiver and these members could not reach each other, so it may not join yet.
    Barred {
        /// The names of some of them.
        apart_from: Vec<NodeName>,
    },
}
