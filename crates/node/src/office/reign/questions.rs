//! What nodes ask the leader on behalf of people: how the cluster is, and other keepers.

use std::sync::Arc;

use super::{Connection, Done, Reign, reply_to};
use crate::Moment;
use crate::config::NodeName;
use crate::epochs::leader::Leader;
use crate::keepers::KeeperNode;
use crate::office::wire::{ClusterView, FromKeeper, Question, Reply};

/// What is to become of the keepers.
pub(super) enum KeeperChange {
    Promote(KeeperNode),
    Demote(NodeName),
    /// What an earlier change has left undone.
    Finish,
}

impl Reign<'_> {
    pub(super) fn answer(&mut self, connection: Connection, number: u64, question: Question) {
        let change = match question {
            Question::Cluster => Err(Reply::Cluster(self.cluster())),
            Question::Promote(_) | Question::Demote(_) if self.is_changing_keepers => Err(
                Reply::Refused("the keepers are being changed already; try again".to_owned()),
            ),
            Question::Promote(node) => match self.find(&node) {
                Some(found) => Ok(KeeperChange::Promote(found)),
                None => Err(Reply::Refused(format!(
                    "node {node} is no member: start it first"
                ))),
            },
            Question::Demote(node) => Ok(KeeperChange::Demote(node)),
        };
        match change {
            Ok(change) => self.change_keepers(Some((connection, number)), change),
            Err(reply) => reply_to(&connection, number, reply),
        }
    }

    fn cluster(&self) -> ClusterView {
        let roster = self.keeper.roster();
        let now = Moment::now();
        let leases = self.leader.iter().flat_map(Leader::leases);
        let members = leases.map(|(member, until, _)| {
            let left = until.since(now).as_millis();
            (member.clone(), u64::try_from(left).unwrap_or(u64::MAX))
        });
        ClusterView {
            leader: self.office.me.name.clone(),
            keepers: self.told.clone(),
            epoch: roster.begun().map_or(0, |change| change.epoch),
            is_changing: roster.is_changing(),
            members: members.collect(),
        }
    }

    /// A member, as a keeper would be known.
    fn find(&self, name: &NodeName) -> Option<KeeperNode> {
        let mut members = self.leader.iter().flat_map(Leader::leases);
        let found = members.find(|(member, ..)| member.name == *name);
        found.map(|(member, ..)| KeeperNode {
            name: member.name.clone(),
            address: member.address.clone(),
        })
    }

    pub(super) fn change_keepers(
        &mut self,
        asked: Option<(Connection, u64)>,
        change: KeeperChange,
    ) {
        self.is_changing_keepers = true;
        let keeper = Arc::clone(self.keeper);
        let id = match &change {
            KeeperChange::Promote(node) => self.appoint(node),
            _ => 0,
        };
        self.work.spawn(async move {
            let changed = match change {
                KeeperChange::Promote(node) => keeper.promote(id, node).await,
                KeeperChange::Demote(name) => keeper.demote(&name).await,
                KeeperChange::Finish => keeper.finish_change().await,
            };
            Done::Changed(asked, changed)
        });
    }

    /// Tells a node which keeper it is to be.
    fn appoint(&mut self, node: &KeeperNode) -> u64 {
        let members = self.keeper.applied_membership();
        let mut there = members.membership.membership().nodes();
        if let Some((id, _)) = there.find(|(_, there)| there.name == node.name) {
            return *id;
        }
        let id = rand::random();
        if let Some(cluster) = self.keeper.identity().cluster {
            self.send(&node.name, FromKeeper::Appointed { cluster, id });
        }
        id
    }
}
