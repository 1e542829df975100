//! What a keeper knows of the other keepers and of its own store.

use std::collections::BTreeMap;

use super::keeper::Keeper;
use super::types::{KeeperNode, Membership};
use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::keepers::{EntryId, KnownKeepers, StoreClaim};

impl Keeper {
    /// The description of this keeper's store that its node sends to the leader.
    pub fn claim(&self) -> StoreClaim {
        let identity = self.identity();
        StoreClaim {
            cluster: identity.cluster,
            id: identity.id,
            membership: entry_id(&self.applied_membership().membership),
        }
    }

    /// The keepers of this cluster. A leader judges other stores by them.
    pub fn known_keepers(&self, cluster: ClusterIdentity) -> KnownKeepers {
        let (applied, effective) = (self.applied_membership().membership, self.membership());
        let both = [applied.membership(), effective.membership()];
        let ids = both.into_iter().flat_map(|membership| membership.nodes());
        KnownKeepers {
            cluster,
            ids: ids.map(|(id, _)| *id).collect(),
            membership: entry_id(&applied),
        }
    }

    /// Keepers that receive the log but do not vote.
    pub fn learners(&self) -> BTreeMap<u64, KeeperNode> {
        let membership = self.membership();
        let membership = membership.membership();
        let node = |id| Some((id, membership.get_node(&id)?.clone()));
        membership.learner_ids().filter_map(node).collect()
    }

    /// The id of the keeper on this node, if it is a voter.
    pub fn voter_named(&self, name: &NodeName) -> Option<u64> {
        let membership = self.membership();
        let membership = membership.membership();
        let is_named = |id: &u64| {
            membership
                .get_node(id)
                .is_some_and(|node| node.name == *name)
        };
        membership.voter_ids().find(is_named)
    }
}

/// The log entry that a membership comes from.
fn entry_id(membership: &Membership) -> Option<EntryId> {
    let id = membership.log_id().as_ref()?;
    Some(EntryId {
        term: id.leader_id.term,
        leader: id.leader_id.node_id,
        index: id.index,
    })
}
