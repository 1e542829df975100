//! How a node becomes a keeper, and how its store is set aside when it no longer is one.
//!
//! The rules are in [`soloist_core::keepers`]; this module carries them out on this node's disk. A
//! store that no longer counts is renamed, never deleted.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Membership, MembershipError};
use crate::keepers::{Keeper, Store, StoreIdentity};
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::keepers::{Appointment, LeaderDecision, StoreClaim};

/// News of this node's store for the leader.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreNews {
    /// The id that this node was appointed under, and why it did not become that keeper.
    pub declined: Option<(u64, String)>,
}

impl Membership {
    /// The store of this node's keeper, if it has one.
    pub(super) fn claim(&self) -> Option<StoreClaim> {
        Some(self.keeper()?.claim())
    }

    /// Sends the leader this node's store again, or why the node declined an appointment.
    pub(super) fn tell_store(&self, declined: Option<(u64, String)>) {
        self.stores.send_replace(StoreNews { declined });
    }

    /// Called when the leader of this node's cluster makes it a keeper.
    pub(super) async fn appointed(self: Arc<Self>, decision: LeaderDecision) {
        if let Err(error) = self.become_keeper(&decision).await {
            tracing::error!("this node cannot become a keeper: {error}");
            self.tell_store(Some((decision.id, error.to_string())));
        }
    }

    async fn become_keeper(
        self: &Arc<Self>,
        decision: &LeaderDecision,
    ) -> Result<(), MembershipError> {
        let _changing = self.changing.lock().await;
        if self.stop.is_cancelled() {
            return Err(MembershipError::Stopping);
        }
        match decision.appoints(self.claim().as_ref()) {
            Appointment::Keep => {
                self.tell_store(None);
                return Ok(());
            }
            Appointment::Refuse => return Err(MembershipError::StillCounts(self.data.clone())),
            Appointment::Replace => {
                self.give_up_store("this node is a keeper under another id")
                    .await?
            }
            Appointment::Create => {}
        }
        // The cluster is remembered before the store is created: a node with a store knows its
        // cluster.
        let epoch = self
            .memory
            .get()
            .filter(|known| known.cluster == decision.cluster);
        let epoch = epoch.map_or(0, |known| known.epoch);
        self.memory.remember(decision.cluster, epoch).await?;
        let identity = StoreIdentity {
            cluster: Some(decision.cluster),
            id: decision.id,
        };
        let store = Store::create(&self.data, &self.me.name, identity).await?;
        self.start_keeper(store).await?;
        tracing::info!(id = format!("{:x}", decision.id), "this node is a keeper");
        Ok(())
    }

    /// Called when the leader declares that this node's store no longer counts.
    pub(super) async fn dismissed(self: Arc<Self>, decision: LeaderDecision) {
        let _changing = self.changing.lock().await;
        let retires = |mine: &StoreClaim| decision.retires(mine);
        if self.stop.is_cancelled() || !self.claim().as_ref().is_some_and(retires) {
            return;
        }
        if let Err(error) = self.give_up_store("this node is no longer a keeper").await {
            tracing::error!("the store of a former keeper cannot be set aside: {error}");
        }
    }

    /// Sets the store aside when a keeper shows a later generation of the cluster.
    pub(super) async fn heed_successors(self: Arc<Self>, keeper: Arc<Keeper>) {
        let successor: ClusterIdentity = tokio::select! {
            () = self.stop.cancelled() => return,
            successor = keeper.succeeded_by() => match successor {
                Some(successor) => successor,
                None => return,
            },
        };
        let _changing = self.changing.lock().await;
        let is_current = |current: Arc<Keeper>| Arc::ptr_eq(&current, &keeper);
        if self.stop.is_cancelled() || !self.keeper().is_some_and(is_current) {
            return;
        }
        let why = format!(
            "the cluster was recovered: a keeper shows generation {}",
            successor.generation
        );
        if let Err(error) = self.give_up_store(&why).await {
            tracing::error!("the store of an earlier generation cannot be set aside: {error}");
        }
    }

    /// Publishes the cluster of the keeper's store when it becomes known. A store that was created
    /// before clusters had an identity learns it from the leader.
    pub(super) async fn show_cluster(
        self: Arc<Self>,
        mut identity: watch::Receiver<StoreIdentity>,
    ) {
        while identity.changed().await.is_ok() {
            let StoreIdentity { cluster, id } = *identity.borrow_and_update();
            if self.claim().is_some_and(|claim| claim.id == id) {
                self.memory.show_store(cluster);
            }
        }
    }

    /// Stops the keeper and renames its store. The caller holds `changing`.
    pub(super) async fn give_up_store(&self, why: &str) -> Result<(), MembershipError> {
        if let Some(keeper) = self.keeper() {
            keeper.shutdown().await;
        }
        let (data, why) = (self.data.clone(), why.to_owned());
        let renaming = tokio::task::spawn_blocking(move || Store::set_aside(&data, &why));
        renaming.await.expect("renaming a file does not panic")?;
        self.set_keeper(None);
        self.memory.show_store(None);
        self.tell_store(None);
        Ok(())
    }
}
