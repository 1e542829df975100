//! Bootstrap: how the first keepers form a cluster.
//!
//! The first of them by name is the founder. It starts alone once all others have answered that
//! they have no store and never took part in a cluster, and then appoints them. It does so only
//! once: `soloist init` creates a permission file in its data folder, and the file is removed as
//! soon as the founder's store is in use. A node that remembers a cluster never founds another one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::wire::{FromKeeper, read};
use super::{Membership, MembershipError};
use crate::keepers::{Keeper, KeeperNode, Store, StoreIdentity};

/// The file in a node's data folder that permits it to found a cluster.
pub const FIRST_START: &str = "first-start";

/// How long another first keeper may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two rounds of asking the others.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Unsuccessful rounds between two lines in the log.
const TELL_EVERY: usize = 50;

impl Membership {
    /// Starts the keeper if there is a store. If nothing was agreed on yet, and this node is the
    /// founder and has permission, founds the cluster in the background.
    pub(crate) async fn begin(self: &Arc<Self>) -> Result<(), MembershipError> {
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
                "this node already belongs to cluster {} and does not create another one: {} is \
                 ignored",
                known.cluster,
                permission.display()
            ),
            (false, None) => tracing::warn!(
                "this node is the first keeper, but has no store: if the cluster was never \
                 started, create the file {}, as `soloist init` does, and restart; otherwise the \
                 store is lost, and another keeper must lead",
                permission.display()
            ),
            (false, Some(_)) => {}
        }
        Ok(())
    }

    /// Starts the keeper with the existing store, unless the cluster was recovered elsewhere since.
    async fn reopen(self: &Arc<Self>) -> Result<(), MembershipError> {
        let _changing = self.changing.lock().await;
        let store = Store::open_in(&self.data, &self.me.name).await?;
        let clusters = store.identity().cluster.zip(self.memory.get());
        // A store of a later generation is fine: the cluster was recovered on this node.
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

    /// Founds the cluster: waits for the other first keepers, then starts alone.
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
                        tracing::error!("cannot create the cluster: {error}");
                        pause = TIMEOUT;
                    }
                },
                Err(reason) if rounds % TELL_EVERY == 0 => {
                    tracing::info!(
                        reason,
                        "waiting for all keepers, which the first start needs"
                    );
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

    /// Checks that all other first keepers answer and have no past. The error lists those that
    /// fail.
    async fn look_around(&self) -> Result<(), String> {
        let mut reasons = Vec::new();
        for other in self.first_keepers() {
            if other.name == self.me.name {
                continue;
            }
            let name = &other.name;
            match timeout(TIMEOUT, self.has_past(&other)).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => reasons.push(format!("{name} already belongs to a cluster")),
                Ok(Err(reason)) => reasons.push(format!("{name}: {reason}")),
                Err(_) => reasons.push(format!("{name} does not answer")),
            }
        }
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons.join(", "))
        }
    }

    /// Creates the store and initialises Raft with this keeper alone. If this is interrupted before
    /// anything was agreed on, the permission is still there, and the next start continues with the
    /// same store.
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

    /// Remembers the cluster of a store that is in use, if this node remembers none.
    async fn remember_store(&self, keeper: &Keeper) -> Result<(), MembershipError> {
        if let (Some(cluster), None) = (keeper.identity().cluster, self.memory.get()) {
            self.memory.remember(cluster, 0).await?;
        }
        Ok(())
    }

    /// Makes sure that no cluster is founded with this data folder again.
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

    /// Returns whether another first keeper has a store or took part in a cluster, or why that is
    /// not known.
    async fn has_past(&self, other: &KeeperNode) -> Result<bool, String> {
        let dialled = self.dial(other, TIMEOUT).await;
        let mut dialled = dialled.map_err(|error| error.to_string())?;
        match read(&mut dialled.stream).await {
            Ok(Some(FromKeeper::Elsewhere { has_past, .. })) => Ok(has_past),
            Ok(Some(FromKeeper::Welcome { .. })) => Ok(true),
            Ok(Some(FromKeeper::Refused(reason))) => Err(reason),
            Ok(_) => Err("unexpected answer".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The first keepers that are not in `keepers` yet.
    pub(super) fn not_yet(&self, keepers: &[KeeperNode]) -> Vec<KeeperNode> {
        let mut first = self.first_keepers();
        first.retain(|first| keepers.iter().all(|keeper| keeper.name != first.name));
        first
    }
}
