//! Who may keep a store: pure rules that the leader and the nodes follow.
//!
//! A Raft majority intersects only if no voter forgets. So a node makes a store only when a leader
//! appoints it, under an id that no store had before, and gives one up only when a leader that a
//! quorum has confirmed says that the store does not count any more.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::types::LogId;
use soloist_core::cluster_identity::ClusterIdentity;

/// What a node says of the store of its keeper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoreClaim {
    /// The cluster, or `None` for a store from before clusters had an identity.
    pub cluster: Option<ClusterIdentity>,
    /// The keeper's id in Raft.
    pub id: u64,
    /// Which entry of the log made the membership that the store has applied.
    pub membership: Option<LogId>,
}

/// What a leader says of a node's store, after a quorum confirmed that it leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaderWord {
    /// The leader's cluster.
    pub cluster: ClusterIdentity,
    /// The keeper's id.
    pub id: u64,
    /// Which entry of the log made the membership that the leader has applied.
    pub membership: Option<LogId>,
}

/// What a node does that a leader appoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Appointment {
    /// It has no store: it makes one.
    Create,
    /// It has this very store.
    Keep,
    /// It sets its store aside, and makes a new one.
    Replace,
    /// Its own store may still count.
    Refuse,
}

impl LeaderWord {
    /// What a node with this store does when this word appoints it.
    pub fn appoints(&self, mine: Option<&StoreClaim>) -> Appointment {
        match mine {
            None => Appointment::Create,
            Some(mine) if mine.id == self.id && mine.cluster == Some(self.cluster) => {
                Appointment::Keep
            }
            Some(mine) if self.outdates(mine) => Appointment::Replace,
            Some(_) => Appointment::Refuse,
        }
    }

    /// Whether a node with this store sets it aside when this word says so.
    pub fn retires(&self, mine: &StoreClaim) -> bool {
        mine.id == self.id && self.outdates(mine)
    }

    /// The leader is of a later generation, or has applied a membership that this store has not. A
    /// membership that was only appended says nothing: it may never be committed.
    fn outdates(&self, mine: &StoreClaim) -> bool {
        match &mine.cluster {
            Some(cluster) if *cluster != self.cluster => self.cluster.succeeds(cluster),
            _ => mine.membership < self.membership,
        }
    }
}

/// The keepers as a confirmed leader knows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKeepers {
    /// The leader's cluster.
    pub cluster: ClusterIdentity,
    /// Voters and learners of the applied membership, and of one that is not committed yet.
    pub ids: BTreeSet<u64>,
    /// Which entry of the log made the applied membership.
    pub membership: Option<LogId>,
}

impl KnownKeepers {
    /// What the leader tells a node with this store: that it does not count any more, or nothing.
    pub fn judge(&self, claim: &StoreClaim) -> Option<LeaderWord> {
        let word = LeaderWord {
            cluster: self.cluster,
            id: claim.id,
            membership: self.membership,
        };
        let counts =
            self.ids.contains(&claim.id) && claim.cluster.is_none_or(|it| it == self.cluster);
        (!counts && word.retires(claim)).then_some(word)
    }
}
