//! Rosters and commands as earlier releases wrote them, for stores that are migrated.
//!
//! They contain what members held when an epoch began, with names of locks. That is left out: only
//! a member of that epoch could ask for it, and no process of this release was one.

use std::time::Duration;

use serde::Deserialize;

use super::{Change, Command, HeldOff, Member, Roster};
use crate::cluster_identity::ClusterIdentity;
use crate::name_hash::HashKey;

/// The members of an epoch, without a key.
#[derive(Deserialize, Debug)]
pub struct OldChange {
    epoch: u64,
    members: Vec<Member>,
}

impl From<OldChange> for Change {
    fn from(old: OldChange) -> Self {
        Change {
            epoch: old.epoch,
            members: old.members,
            // Its members are gone, so none of them reports with this key.
            key: HashKey::default(),
        }
    }
}

/// A lock that was held when its epoch began: its name, and its holder.
type OldHeldLock = (String, u32);

/// Such locks, encoded.
type OldPiece = Vec<u8>;

/// The roster in a store of format 3, from before clusters had an identity.
#[derive(Deserialize, Debug)]
pub struct Roster3 {
    is_founded: bool,
    longest_lease: Duration,
    begun: Option<OldChange>,
    installed: Option<(OldChange, Vec<OldHeldLock>)>,
}

impl From<Roster3> for Roster {
    fn from(old: Roster3) -> Self {
        Roster {
            cluster: None,
            is_founded: old.is_founded,
            longest_lease: old.longest_lease,
            begun: old.begun.map(Change::from),
            installed: old.installed.map(|(change, _)| change.epoch),
            held_off: Vec::new(),
        }
    }
}

/// The roster in a store of format 4.
#[derive(Deserialize, Debug)]
pub struct Roster4 {
    cluster: Option<ClusterIdentity>,
    is_founded: bool,
    longest_lease: Duration,
    begun: Option<OldChange>,
    installed: Option<(OldChange, Vec<OldPiece>)>,
    _staged: Vec<OldPiece>,
    held_off: Vec<HeldOff>,
}

impl From<Roster4> for Roster {
    fn from(old: Roster4) -> Self {
        Roster {
            cluster: old.cluster,
            is_founded: old.is_founded,
            longest_lease: old.longest_lease,
            begun: old.begun.map(Change::from),
            installed: old.installed.map(|(change, _)| change.epoch),
            held_off: old.held_off,
        }
    }
}

/// A command in the log of a store of format 3 or 4. Format 3 had only the first four.
#[derive(Deserialize, Debug)]
pub enum OldCommand {
    /// See [`Command::Lead`].
    Lead {
        /// How long the leader waits for the leases that it grants.
        lease: Duration,
    },
    /// See [`Command::Settle`].
    Settle {
        /// How long the leader waits for the leases that it grants.
        lease: Duration,
    },
    /// See [`Command::Begin`].
    Begin(OldChange),
    /// See [`Command::Install`].
    Install {
        /// The epoch's number.
        epoch: u64,
        /// What its members hold.
        holds: Vec<OldHeldLock>,
    },
    /// See [`Command::Identify`].
    Identify {
        /// The identity.
        cluster: ClusterIdentity,
    },
    /// See [`Command::HoldOff`].
    HoldOff(Vec<HeldOff>),
    /// Some of what the members of an epoch hold. It has no effect before `InstallStaged`.
    Stage {
        /// The epoch's number.
        epoch: u64,
        /// Number of pieces before these.
        first: u32,
        /// The pieces.
        pieces: Vec<OldPiece>,
    },
    /// Installs an epoch with what was staged.
    InstallStaged {
        /// The epoch's number.
        epoch: u64,
        /// Number of pieces.
        pieces: u32,
    },
}

impl OldCommand {
    /// The same command today, or `None` if it has no effect. A roster is the same, whether it is
    /// converted before the command is applied or after.
    pub fn convert(self) -> Option<Command> {
        Some(match self {
            OldCommand::Lead { lease } => Command::Lead { lease },
            OldCommand::Settle { lease } => Command::Settle { lease },
            OldCommand::Begin(change) => Command::Begin(change.into()),
            OldCommand::Install { epoch, .. } | OldCommand::InstallStaged { epoch, .. } => {
                Command::Install { epoch }
            }
            OldCommand::Identify { cluster } => Command::Identify { cluster },
            OldCommand::HoldOff(held_off) => Command::HoldOff(held_off),
            OldCommand::Stage { .. } => return None,
        })
    }
}
