//! What members and the keepers' leader say to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pieces::Piece;
use super::roster::Change;
use soloist_api::LockName;
use soloist_api::NodeName;

/// From a member, or a node that wants to be one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ToKeepers {
    /// I am no member: let me be one. The leader answers with `Probe`, or says why not.
    Join,
    /// From a candidate, at once: the answer to `Probe`.
    Probed {
        /// Which one.
        number: u64,
    },
    /// I am a member: let me rely on it for a lease from when I sent this.
    Renew {
        /// Which renewal, so that the answer can be matched.
        number: u64,
        /// How far I have come: the epoch that I have installed, 0 for none.
        installed: u64,
    },
    /// I take no part in earlier epochs any more; this is what my clients hold. The first piece is sent when the epoch
    /// is to begin, others when the leader asks for them.
    Report {
        /// The epoch that is to begin.
        epoch: u64,
        /// The number of pieces, at least one.
        pieces: u32,
        /// Which one this is, from 0.
        number: u32,
        /// The locks in it, by name.
        held: Vec<LockName>,
    },
    /// From a member that installs an epoch: send me this piece of what is held.
    SendHolds {
        /// The epoch.
        epoch: u64,
        /// Which piece.
        number: u32,
    },
    /// I take no part any more: do not wait for my lease.
    Leave,
    /// A message to another member was lost in this epoch: begin a new one.
    Suspect {
        /// The epoch.
        epoch: u64,
    },
    /// Messages to these lives of members have waited for long. Said with each renewal, for as long as it is so, and once
    /// when it is not so any more.
    Unreached {
        /// All of them.
        lives: Vec<u64>,
    },
    /// A lock has used up the fences of this epoch, and its waiters wait for the next one. Said with
    /// each renewal until that begins.
    Exhausted {
        /// The epoch.
        epoch: u64,
    },
}

/// From the keepers' leader.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ToMember {
    /// The lease is renewed.
    Granted {
        /// Which renewal.
        number: u64,
    },
    /// You are no member (any more): come back as another.
    NoMember,
    /// To a candidate: answer at once. An epoch begins for it when it has answered twice in time.
    Probe {
        /// Which one, so that the answer can be matched.
        number: u64,
    },
    /// To a candidate whose answer took too long: it is probed again when it asks again.
    TooSlow {
        /// How long the round trip took.
        took: Duration,
        /// How long it may take.
        limit: Duration,
    },
    /// Your node has disturbed the others lately: ask again later.
    HeldOff {
        /// When, from now.
        left: Duration,
    },
    /// A node of your name is a member and alive.
    NameTaken,
    /// An epoch is to begin: stop the one before, and report.
    Begin(Change),
    /// Send me this piece of your report.
    SendReport {
        /// The epoch that is to begin.
        epoch: u64,
        /// Which piece.
        number: u32,
    },
    /// An epoch begins, from what its members hold. The member asks for all pieces but the first.
    Install {
        /// The epoch and its members.
        change: Change,
        /// The number of pieces of what they hold.
        pieces: u32,
        /// The first one, if there is any.
        first: Option<Piece>,
    },
    /// A piece of what members hold when an epoch begins.
    Holds {
        /// The epoch.
        epoch: u64,
        /// Which piece.
        number: u32,
        /// The piece.
        piece: Piece,
    },
    /// You would not reach these members, nor they you: you are not let in yet.
    Barred {
        /// The names of some.
        apart_from: Vec<NodeName>,
    },
}
