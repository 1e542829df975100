//! How the first keepers come together.
//!
//! The first of them by name begins alone, once all others say that they have no store and took part
//! in no cluster, and appoints them. It does so once: `soloist init` puts a permission beside its
//! store to be, which is removed as soon as the store is in use. A node that remembers a cluster
//! never begins another one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::wire::{FromKeeper, read};
use super::{Membership, MembershipError};
use crate::keepers::{Keeper, KeeperNode, Store, StoreIdentity};

/// The file in a node's data folder that lets it begin a cluster.
pub const FIRST_START: &str = "first-start";

/// How long another first keeper may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the others are asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Rounds without success between two lines in the log.
const TELL_EVERY: usize = 50;

impl Membership {
    /// Starts the keeper of the store that is there, or begins a cluster as the first of the first keepers.
    pub async fn begin(self: &Arc<Self>) -> Result<(), MembershipError> {
        if Store::exists(&self.data) {
            self.reopen().await?;
        }
        if let Some(keeper) = self.keeper().filter(|keeper| !keeper.is_new()) {
            self.remember_store(&keeper).await?;
            self.remove_permission();
            return Ok(());
        }
        let first = self.first.iter().next().map(|(_, name, _)| name);
        if first != Some(&self.me.name) {
            return Ok(());
        }
        let permission = self.data.join(FIRST_START);
        match (permission.exists(), self.memory.get()) {
            (true, None) => {
                tokio::spawn(Arc::clone(self).found());
            }
            (true, Some(known)) => tracing::warn!(
                "this node belongs to cluster {} and begins no other one: {} is ignored",
                known.cluster,
                permission.display()
            ),
            (false, None) => tracing::warn!(
                "this is the first of the keepers, and it has no store: if the cluster was never started, make the file {}, as \
                 `soloist init` does, and start again; if it was, the store is lost, and another keeper must lead",
                permission.display()
            ),
            (false, Some(_)) => {}
        }
        Ok(())
    }

    /// Starts the keeper with the store that is there, unless the cluster was recovered elsewhere
    /// since.
    async fn reopen(self: &Arc<Self>) -> Result<(), MembershipError> {
        let _changing = self.changing.lock().await;
        let store = Store::open_in(&self.data, &self.me.name).await?;
        let clusters = store.identity().cluster.zip(self.memory.get());
        // A store of a later generation was recovered on this node.
        if let Some((of_store, known)) = clusters
            && of_store != known.cluster
            && !of_store.succeeds(&known.cluster)
        {
            store.close().await;
            if known.cluster.succeeds(&of_store) {
                return self.give_up_store("the cluster was recovered since").await;
            }
            return Err(MembershipError::MixedUp {
                data: self.data.clone(),
                store: of_store,
                node: known.cluster,
            });
        }
        self.start_keeper(store).await?;
        Ok(())
    }

    /// This node is the first of the first keepers, and nothing was agreed on yet.
    async fn found(self: Arc<Self>) {
        let mut rounds = 0;
        let mut pause = ASK_EVERY;
        while !self.has_store() {
            let looked = tokio::select! {
                () = self.stop.cancelled() => return,
                looked = self.look_around() => looked,
            };
            match looked {
                Ok(()) => match self.found_alone().await {
                    Ok(()) => {}
                    Err(MembershipError::Stopping) => return,
                    Err(error) => {
                        tracing::error!("the keepers cannot begin: {error}");
                        pause = PATIENCE;
                    }
                },
                Err(reason) if rounds % TELL_EVERY == 0 => {
                    tracing::info!(reason, "the first start needs all keepers: waiting");
                }
                Err(_) => {}
            }
            rounds += 1;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Whether all other first keepers are there and have no past, or why not.
    async fn look_around(&self) -> Result<(), String> {
        let mut reasons = Vec::new();
        for other in self.first_keepers() {
            if other.name == self.me.name {
                continue;
            }
            let name = &other.name;
            match timeout(PATIENCE, self.has_past(&other)).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => reasons.push(format!("{name} took part in a cluster before")),
                Ok(Err(reason)) => reasons.push(format!("{name}: {reason}")),
                Err(_) => reasons.push(format!("{name} does not answer")),
            }
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons.join(", ")),
        }
    }

    /// Makes the store and begins alone. If this is cut off before anything was agreed on, the
    /// permission is still there, and the next start goes on with the same store.
    async fn found_alone(self: &Arc<Self>) -> Result<(), MembershipError> {
        let keeper = self.founders_keeper().await?;
        keeper.initialize().await?;
        self.remember_store(&keeper).await?;
        self.remove_permission();
        Ok(())
    }

    async fn founders_keeper(self: &Arc<Self>) -> Result<Arc<Keeper>, MembershipError> {
        let _changing = self.changing.lock().await;
        if self.stop.is_cancelled() {
            return Err(MembershipError::Stopping);
        }
        if let Some(keeper) = self.keeper() {
            return Ok(keeper);
        }
        let identity = StoreIdentity::fresh(crate::cluster_memory::fresh_identity());
        let store = Store::create(&self.data, &self.me.name, identity).await?;
        self.start_keeper(store).await
    }

    /// A node whose store is in use belongs to the store's cluster.
    async fn remember_store(&self, keeper: &Keeper) -> Result<(), MembershipError> {
        if let (Some(cluster), None) = (keeper.identity().cluster, self.memory.get()) {
            self.memory.remember(cluster, 0).await?;
        }
        Ok(())
    }

    /// Nobody may begin a cluster with this folder any more.
    fn remove_permission(&self) {
        let permission = self.data.join(FIRST_START);
        let removed = std::fs::remove_file(&permission)
            .and_then(|()| std::fs::File::open(&self.data)?.sync_all());
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}: {error}", permission.display());
            }
            _ => {}
        }
    }

    /// Whether another first keeper has a store or took part in a cluster, or why it does not say.
    async fn has_past(&self, other: &KeeperNode) -> Result<bool, String> {
        let dialled = self.dial(other, PATIENCE).await;
        let mut dialled = dialled.map_err(|error| error.to_string())?;
        match read(&mut dialled.stream).await {
            Ok(Some(FromKeeper::Elsewhere { has_past, .. })) => Ok(has_past),
            Ok(Some(FromKeeper::Welcome { .. })) => Ok(true),
            Ok(Some(FromKeeper::Refused(reason))) => Err(reason),
            Ok(_) => Err("an answer that makes no sense".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The first keepers that are none yet.
    pub(super) fn not_yet(&self, keepers: &[KeeperNode]) -> Vec<KeeperNode> {
        let mut first = self.first_keepers();
        first.retain(|first| keepers.iter().all(|keeper| keeper.name != first.name));
        first
    }
}
