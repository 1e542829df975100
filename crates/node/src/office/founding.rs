//! How the first keepers come together, and who may become one later.
//!
//! The first of them by name begins alone, when all others say that they have agreed on nothing yet, and takes them in
//! one by one. It does so once: `soloist init` lays a permission beside its store to be, which is taken away as soon as the store is
//! there. A keeper that counts must never come back with an empty store: it would have forgotten what it promised.
//! So a node without a store becomes a keeper only if the leader says that it is none yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::wire::{FromKeeper, read};
use super::{Office, OfficeError};
use crate::cluster_identity::ClusterIdentity;
use crate::keepers::{KeeperNode, Store, StoreIdentity};

/// The file in a node's data folder that lets it begin a cluster.
pub const FIRST_START: &str = "first-start";

/// How long another first keeper may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the others are asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// After so many rounds without success it is told for whom this node waits.
const TELL_EVERY: usize = 50;

impl Office {
    /// Begins as what this node was before, or as one of the first keepers.
    pub async fn begin(self: &Arc<Self>) -> Result<(), OfficeError> {
        let name = &self.me.name;
        if Store::exists(&self.data) {
            self.open(None).await?;
        }
        let first = self.first.iter().next().map(|(_, name, _)| name);
        if first == Some(name) && !self.has_store() {
            let permission = self.data.join(FIRST_START);
            match permission.exists() || self.keeper().is_some() {
                true => {
                    tokio::spawn(Arc::clone(self).found());
                }
                false => tracing::warn!(
                    "this is the first of the keepers, and it has no store: if the cluster was never started, make the file {}, as \
                     `soloist init` does, and start again; if it was, the store is lost, and another keeper must lead",
                    permission.display()
                ),
            }
        }
        Ok(())
    }

    /// This node is the first of the first keepers, and has agreed on nothing yet.
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
                    Err(OfficeError::Stopping) => return,
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

    /// Whether all other first keepers are there, and have agreed on nothing; else why not.
    async fn look_around(&self) -> Result<(), String> {
        let mut reasons = Vec::new();
        for other in self.first_keepers() {
            if other.name == self.me.name {
                continue;
            }
            let name = &other.name;
            match timeout(PATIENCE, self.has_agreed(&other)).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => reasons.push(format!("{name} has a store of an earlier time")),
                Ok(Err(reason)) => reasons.push(format!("{name}: {reason}")),
                Err(_) => reasons.push(format!("{name} does not answer")),
            }
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons.join(", ")),
        }
    }

    async fn found_alone(self: &Arc<Self>) -> Result<(), OfficeError> {
        let identity = StoreIdentity::fresh(ClusterIdentity::new());
        let keeper = self.open(Some(identity)).await?;
        keeper.initialize().await?;
        let _ = std::fs::remove_file(self.data.join(FIRST_START));
        Ok(())
    }

    /// Whether another keeper has ever agreed on anything; or why it does not say.
    async fn has_agreed(&self, other: &KeeperNode) -> Result<bool, String> {
        let dialled = self.dial(other, PATIENCE).await;
        let mut dialled = dialled.map_err(|error| error.to_string())?;
        match read(&mut dialled.stream).await {
            Ok(Some(FromKeeper::Elsewhere { has_store, .. })) => Ok(has_store),
            Ok(Some(FromKeeper::Welcome { .. })) => Ok(true),
            Ok(Some(FromKeeper::Refused(reason))) => Err(reason),
            Ok(_) => Err("an answer that makes no sense".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The leader makes this node a keeper.
    pub(super) async fn appointed(self: &Arc<Self>, identity: StoreIdentity) {
        match self.open(Some(identity)).await {
            Ok(keeper) if keeper.identity().id != identity.id => tracing::error!(
                "this node cannot become keeper {:016x}: its store in {} is that of keeper {:016x}",
                identity.id,
                self.data.display(),
                keeper.identity().id
            ),
            Ok(_) | Err(OfficeError::Stopping) => {}
            Err(error) => tracing::error!("this node cannot become a keeper: {error}"),
        }
    }

    /// The first keepers that are none yet.
    pub(super) fn not_yet(&self, keepers: &[KeeperNode]) -> Vec<KeeperNode> {
        let mut first = self.first_keepers();
        first.retain(|first| keepers.iter().all(|keeper| keeper.name != first.name));
        first
    }
}
