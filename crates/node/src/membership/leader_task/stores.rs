//! What the leader knows of nodes' stores. It appoints keepers, and tells former ones to set their
//! stores aside.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::decisions::Done;
use super::questions::KeeperChange;
use super::{LeaderTask, MemberConnection};
use crate::keepers::{Keeper, KeeperError, KeeperNode};
use crate::membership::wire::FromKeeper;
use soloist_api::NodeName;
use soloist_core::Term;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::keepers::{LeaderDecision, StoreClaim};

/// How long a node may take to create a store.
const APPOINTMENT_TIME: Duration = Duration::from_secs(5);

/// Stores that connected nodes claim to have.
#[derive(Default)]
pub(super) struct Stores {
    claims: HashMap<NodeName, Claimed>,
    /// Appointed nodes that have not answered yet, by the keeper's id.
    appointed: HashMap<u64, oneshot::Sender<Result<(), String>>>,
    /// Ids of the first keepers that have caught up.
    current: BTreeSet<u64>,
    /// Whether claims have arrived or the keepers have changed since claims were last judged.
    is_unjudged: bool,
    is_judging: bool,
}

/// A claim, and the connection that it came on: two nodes may have the same name by mistake.
#[derive(Clone)]
pub(super) struct Claimed {
    pub connection: MemberConnection,
    pub claim: Option<StoreClaim>,
}

impl Stores {
    pub(super) fn claimed(
        &mut self,
        name: NodeName,
        connection: MemberConnection,
        claim: Option<StoreClaim>,
    ) {
        let answered = claim.as_ref().map(|claim| claim.id);
        if let Some(sender) = answered.and_then(|id| self.appointed.remove(&id)) {
            let _ = sender.send(Ok(()));
        }
        self.is_unjudged = true;
        self.claims.insert(name, Claimed { connection, claim });
    }

    pub(super) fn declined(&mut self, id: u64, reason: String) {
        if let Some(sender) = self.appointed.remove(&id) {
            let _ = sender.send(Err(reason));
        }
    }

    /// Called when a node's last connection has closed.
    pub(super) fn forget(&mut self, name: &NodeName) {
        self.claims.remove(name);
    }

    pub(super) fn judge_again(&mut self) {
        self.is_unjudged = true;
    }

    pub(super) fn of(&self, name: &NodeName) -> Option<&Claimed> {
        self.claims.get(name)
    }
}

/// A node that is to become a keeper.
pub(super) struct Appointment {
    id: u64,
    node: KeeperNode,
    cluster: ClusterIdentity,
    connection: MemberConnection,
    answer: oneshot::Receiver<Result<(), String>>,
}

impl Appointment {
    /// Tells the node to create a store, and returns the keeper's id when it has done so.
    pub(super) async fn carry_out(self, keeper: &Keeper, term: Term) -> Result<u64, KeeperError> {
        keeper.confirm_leadership(term).await?;
        let decision = LeaderDecision {
            cluster: self.cluster,
            id: self.id,
            membership: keeper.known_keepers(self.cluster).membership,
        };
        if let Some(connection) = self.connection.upgrade() {
            let _ = connection.try_send(FromKeeper::Appoint(decision));
        }
        let (node, waited) = (self.node, APPOINTMENT_TIME);
        match timeout(waited, self.answer).await {
            Ok(Ok(Ok(()))) => Ok(self.id),
            Ok(Ok(Err(reason))) => Err(KeeperError::Declined { node, reason }),
            _ => Err(KeeperError::Behind { node, waited }),
        }
    }
}

impl LeaderTask<'_> {
    /// Prepares the appointment of this node, or returns `None` if it is not connected.
    pub(super) fn appointment(&mut self, node: &KeeperNode) -> Option<Appointment> {
        let connection = self.stores.of(&node.name)?.connection.clone();
        let id = rand::random();
        let (sender, answer) = oneshot::channel();
        self.stores
            .appointed
            .retain(|_, sender| !sender.is_closed());
        self.stores.appointed.insert(id, sender);
        Some(Appointment {
            id,
            node: node.clone(),
            cluster: self.cluster,
            connection,
            answer,
        })
    }

    /// Appoints the first keepers as learners, one after the other. When all of them have caught
    /// up, makes them voters in one change.
    pub(super) fn bring_together(&mut self) {
        let missing = self.membership.not_yet(&self.told);
        let learners = self.keeper.learners();
        let mut voters = BTreeSet::new();
        for node in &missing {
            let Some(claimed) = self.stores.of(&node.name) else {
                continue;
            };
            let has = claimed.claim.as_ref().map(|claim| claim.id);
            let mut same_name = learners.iter().filter(|(_, known)| known.name == node.name);
            match same_name.next().map(|(id, _)| *id) {
                Some(id) if has != Some(id) => {
                    // It has lost its store since. Nothing depends on that store yet.
                    return self.change_keepers(None, KeeperChange::Forget(node.name.clone()));
                }
                Some(id) if self.stores.current.contains(&id) => {
                    voters.insert(id);
                }
                Some(id) => {
                    return self.change_keepers(None, KeeperChange::Teach(id, node.clone()));
                }
                None => {
                    if let Some(appointment) = self.appointment(node) {
                        let change = KeeperChange::Appoint(appointment, node.clone());
                        return self.change_keepers(None, change);
                    }
                }
            }
        }
        if voters.len() == missing.len() {
            self.change_keepers(None, KeeperChange::Voters(voters));
        }
    }

    /// Called when a first keeper has caught up.
    pub(super) fn learned(&mut self, id: u64) {
        self.stores.current.insert(id);
    }

    /// Tells nodes whose stores no longer count to set them aside, once a quorum has confirmed that
    /// this keeper leads. Only claims that were made before the confirmation are judged: a store
    /// that is claimed later may be one that a later leader appointed.
    pub(super) fn judge_stores(&mut self) {
        if !self.stores.is_unjudged || self.stores.is_judging || self.is_changing_keepers {
            return;
        }
        self.stores.is_unjudged = false;
        let known = self.keeper.known_keepers(self.cluster);
        let all = self.stores.claims.values().filter_map(|claimed| {
            let claim = claimed.claim.clone()?;
            Some((claimed.connection.clone(), claim))
        });
        let outdated = all.filter(|(_, claim)| known.judge(claim).is_some());
        let outdated: Vec<_> = outdated.collect();
        if outdated.is_empty() {
            return;
        }
        self.stores.is_judging = true;
        let (keeper, term, cluster) = (Arc::clone(self.keeper), self.term, self.cluster);
        self.work.spawn(async move {
            let confirmed = keeper.confirm_leadership(term).await;
            Done::Judged(confirmed.map(|()| {
                let known = keeper.known_keepers(cluster);
                let decisions = outdated.into_iter();
                decisions
                    .filter_map(|(connection, claim)| Some((connection, known.judge(&claim)?)))
                    .collect()
            }))
        });
    }

    pub(super) fn judged(
        &mut self,
        decisions: Result<Vec<(MemberConnection, LeaderDecision)>, KeeperError>,
    ) {
        self.stores.is_judging = false;
        match decisions {
            Ok(decisions) => {
                for (connection, decision) in decisions {
                    if let Some(connection) = connection.upgrade() {
                        let _ = connection.try_send(FromKeeper::SetAside(decision));
                    }
                }
            }
            Err(_) => self.stores.is_unjudged = true,
        }
    }
}
