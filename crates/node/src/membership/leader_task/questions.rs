//! Requests of operators to the leader: the state of the cluster, and changes of the keepers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::stores::Appointment;
use super::{Done, LeaderTask, MemberConnection, reply_to};
use crate::Moment;
use crate::keepers::KeeperNode;
use crate::membership::wire::{ClusterView, LeaderQuestion, LeaderView, Reply};
use soloist_api::NodeName;
use soloist_core::epochs::leader::Leader;

/// A change of the keepers.
pub(super) enum KeeperChange {
    /// This node becomes a voter once it has a store and has caught up.
    Promote(Appointment, KeeperNode),
    /// This voter gets a new address.
    Move(u64, KeeperNode),
    Demote(NodeName),
    /// Completes a change that was left half-way.
    Finish,
    /// This first keeper becomes a learner once it has a store.
    Appoint(Appointment, KeeperNode),
    /// This first keeper has a store, and catches up as a learner.
    Teach(u64, KeeperNode),
    /// This first keeper was appointed and has lost its store.
    Forget(NodeName),
    /// All first keepers have caught up and become voters.
    Voters(BTreeSet<u64>),
}

impl LeaderTask<'_> {
    pub(super) fn answer(
        &mut self,
        connection: MemberConnection,
        number: u64,
        question: LeaderQuestion,
    ) {
        let change = match question {
            LeaderQuestion::Cluster => Err(Reply::Cluster(self.cluster())),
            LeaderQuestion::Overview => Err(Reply::Overview(self.overview())),
            LeaderQuestion::Promote(_) | LeaderQuestion::Demote(_) if self.is_changing_keepers => {
                Err(Reply::Refused(
                    "another change of the keepers is in progress; try again".to_owned(),
                ))
            }
            LeaderQuestion::Promote(node) => self.promotion(&node).map_err(Reply::Refused),
            LeaderQuestion::Demote(node) => Ok(KeeperChange::Demote(node)),
        };
        match change {
            Ok(change) => self.change_keepers(Some((connection, number)), change),
            Err(reply) => reply_to(&connection, number, reply),
        }
    }

    /// Returns how to make a node a keeper, or why that is not possible.
    fn promotion(&mut self, name: &NodeName) -> Result<KeeperChange, String> {
        let Some(node) = self.find(name) else {
            return Err(format!("node {name} is not a member: start it first"));
        };
        let claim = self.stores.of(name).and_then(|known| known.claim.as_ref());
        let has = claim.map(|claim| claim.id);
        match self.keeper.voter_named(name) {
            Some(id) if has == Some(id) => return Ok(KeeperChange::Move(id, node)),
            Some(_) => {
                return Err(format!(
                    "keeper {name} has lost its store: run `soloist cluster demote {name}` first"
                ));
            }
            None => {}
        }
        let appointment = self.appointment(&node);
        let change = appointment.map(|appointment| KeeperChange::Promote(appointment, node));
        change.ok_or_else(|| format!("node {name} is not connected to the leader; try again"))
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
            leader: self.membership.me.name.clone(),
            keepers: self.told.clone(),
            epoch: roster.begun().map_or(0, |change| change.epoch),
            is_changing: roster.is_changing(),
            members: members.collect(),
        }
    }

    fn overview(&self) -> LeaderView {
        let joining = self.leader.iter().flat_map(Leader::candidates);
        LeaderView {
            cluster: self.cluster(),
            followers: self.keeper.followers(),
            joining: joining.map(|member| member.name.clone()).collect(),
            clocks: self.clocks.apart(),
        }
    }

    /// Finds a member by name, and describes it as a keeper.
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
        asked: Option<(MemberConnection, u64)>,
        change: KeeperChange,
    ) {
        self.is_changing_keepers = true;
        let (keeper, term) = (Arc::clone(self.keeper), self.term);
        self.work.spawn(async move {
            let changed = match change {
                KeeperChange::Appoint(appointment, node) => {
                    let learned = async {
                        let id = appointment.carry_out(&keeper, term).await?;
                        keeper.appoint_learner(id, node).await?;
                        Ok(id)
                    };
                    return Done::Learned(learned.await);
                }
                KeeperChange::Teach(id, node) => {
                    let taught = keeper.appoint_learner(id, node).await;
                    return Done::Learned(taught.map(|()| id));
                }
                KeeperChange::Promote(appointment, node) => {
                    match appointment.carry_out(&keeper, term).await {
                        Ok(id) => keeper.promote(id, node).await,
                        Err(error) => Err(error),
                    }
                }
                KeeperChange::Move(id, node) => keeper.promote(id, node).await,
                KeeperChange::Demote(name) => keeper.demote(&name).await,
                KeeperChange::Finish => keeper.finish_change().await,
                KeeperChange::Forget(name) => keeper.remove_learner(&name).await,
                KeeperChange::Voters(ids) => keeper.make_voters(ids).await,
            };
            Done::Changed(asked, changed)
        });
    }
}
