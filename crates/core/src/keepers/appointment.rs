//! Which nodes may have a store.
//!
//! Raft majorities intersect only if no voter forgets. So a node creates a store only when a leader
//! appoints it, under an id that no store had before. It gives a store up only when a leader that a
//! quorum has confirmed declares that the store no longer counts: its id is no longer a keeper's,
//! or the cluster was recovered since.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::EntryId;
use crate::cluster_identity::ClusterIdentity;

/// A node's description of its keeper's store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoreClaim {
    /// The cluster, or `None` for a store from before clusters had an identity.
    pub cluster: Option<ClusterIdentity>,
    /// The keeper's id in Raft.
    pub id: u64,
    /// The log entry of the membership that the store has applied.
    pub membership: Option<EntryId>,
}

/// A leader's decision about a node's store. A quorum has confirmed that the sender leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaderDecision {
    /// The leader's cluster.
    pub cluster: ClusterIdentity,
    /// The keeper's id.
    pub id: u64,
    /// The log entry of the membership that the leader has applied.
    pub membership: Option<EntryId>,
}

/// How a node reacts when a leader appoints it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Appointment {
    /// It has no store, and creates one.
    Create,
    /// It has this very store already.
    Keep,
    /// It sets its store aside and creates a new one.
    Replace,
    /// It declines: its own store may still count.
    Refuse,
}

impl LeaderDecision {
    /// How a node with this store reacts when this message appoints it.
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

    /// Returns whether a node with this store sets it aside when it receives this message.
    pub fn retires(&self, mine: &StoreClaim) -> bool {
        mine.id == self.id && self.outdates(mine)
    }

    /// Returns whether the leader is of a later generation, or has applied a membership that this
    /// store has not. Only applied memberships are compared: an appended one may never be
    /// committed.
    fn outdates(&self, mine: &StoreClaim) -> bool {
        match &mine.cluster {
            Some(cluster) if *cluster != self.cluster => self.cluster.succeeds(cluster),
            _ => mine.membership < self.membership,
        }
    }
}

/// The keepers, as a confirmed leader knows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKeepers {
    /// The leader's cluster.
    pub cluster: ClusterIdentity,
    /// Voters and learners of the applied membership, and of one that is not committed yet.
    pub ids: BTreeSet<u64>,
    /// The log entry of the applied membership.
    pub membership: Option<EntryId>,
}

impl KnownKeepers {
    /// Returns the message that this store no longer counts, or `None` if it may still count.
    pub fn judge(&self, claim: &StoreClaim) -> Option<LeaderDecision> {
        let decision = LeaderDecision {
            cluster: self.cluster,
            id: claim.id,
            membership: self.membership,
        };
        let counts =
            self.ids.contains(&claim.id) && claim.cluster.is_none_or(|it| it == self.cluster);
        (!counts && decision.retires(claim)).then_some(decision)
    }
}
