//! What a keeper must not forget, in one file: the log, its vote, how far the log is committed, and a snapshot.
//!
//! - `file`: making, opening and migrating it. What is damaged, foreign or of a newer format is left alone.
//! - `identity`: which keeper of which cluster it makes of its node. No store is without.
//! - `tables`: what stands where in it. `worker`: the thread that has it.
//! - `log`, `machine`: the two halves as Raft wants them. `used`: whether there is anything in them.
//! - `recover`: going on with one keeper when the others are lost.
//!
//! Invariants: what is acknowledged is on disk. A change is there as a whole or not at all. After the first error
//! nothing more is written.

mod error;
mod file;
mod identity;
mod log;
mod machine;
mod recover;
mod tables;
mod used;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;
use tokio::sync::watch;

pub use error::StoreError;
pub use identity::StoreIdentity;
pub use log::LogStore;
pub use machine::{AppliedMembership, Machine, SnapshotBuilder};
pub use recover::{Known, Recovery};
pub use used::Used;

use super::types::KeeperNode;
use soloist_api::NodeName;
use soloist_core::epochs::roster::Roster;
use worker::Worker;

/// The name of the store's file in a node's data folder.
pub const FILE_NAME: &str = "keeper.redb";

/// A keeper's store, open. Nobody else can open it meanwhile.
#[derive(Debug)]
pub struct Store {
    log: LogStore,
    machine: Machine,
    worker: Worker,
    used: Used,
}

/// Closes a store whose halves are in use.
#[derive(Clone, Debug)]
pub struct Closer(Worker);

impl Closer {
    /// Closes the store, and returns when its file is free. Whatever is asked of it later fails.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

impl Store {
    /// Whether there is a store in a node's data folder. What cannot be looked at counts: opening it says what is
    /// wrong, and a keeper must not go on as if it had promised nothing.
    pub fn exists(folder: &Path) -> bool {
        folder.join(FILE_NAME).try_exists().unwrap_or(true)
    }

    /// Makes a store in a node's data folder. It is on disk when this returns. The folder is made if
    /// it is not there. Its owner is the only node that can open the store again.
    pub async fn create(
        folder: &Path,
        owner: &NodeName,
        identity: StoreIdentity,
    ) -> Result<Self, StoreError> {
        file::make_folder(folder)?;
        let (path, owner) = (folder.join(FILE_NAME), owner.clone());
        let name = path.display().to_string();
        let create = move || file::create(&path, &owner, &identity);
        let worker = Worker::start(name.clone(), create).await?;
        Self::load(&name, worker).await
    }

    /// As [`create`](Self::create), on something else than a file. `name` is how errors call it.
    pub async fn create_backend(
        name: &str,
        backend: impl StorageBackend,
        owner: &NodeName,
        identity: StoreIdentity,
    ) -> Result<Self, StoreError> {
        let (place, owner) = (name.to_owned(), owner.clone());
        let create = move || file::create_backend(&place, backend, &owner, &identity);
        let worker = Worker::start(name.to_owned(), create).await?;
        Self::load(name, worker).await
    }

    /// Opens the store in a node's data folder.
    pub async fn open_in(folder: &Path, owner: &NodeName) -> Result<Self, StoreError> {
        Self::open(&folder.join(FILE_NAME), owner).await
    }

    /// Opens the store in this file. One of an older format is migrated, and the old file is kept beside it.
    pub async fn open(path: &Path, owner: &NodeName) -> Result<Self, StoreError> {
        let (path, owner) = (path.to_owned(), owner.clone());
        let name = path.display().to_string();
        let worker = Worker::start(name.clone(), move || file::open(&path, &owner)).await?;
        Self::load(&name, worker).await
    }

    /// As [`open`](Self::open), on something else than a file. `name` is how errors call it.
    pub async fn open_backend(
        name: &str,
        backend: impl StorageBackend,
        owner: &NodeName,
    ) -> Result<Self, StoreError> {
        let (place, owner) = (name.to_owned(), owner.clone());
        let open = move || file::open_backend(&place, backend, &owner);
        let worker = Worker::start(name.to_owned(), open).await?;
        Self::load(name, worker).await
    }

    /// Renames the store in a node's data folder, so that the node has none, and returns the new
    /// name. Nothing is deleted or overwritten. The store must be closed. `why` goes to the log.
    pub fn set_aside(folder: &Path, why: &str) -> Result<PathBuf, StoreError> {
        let aside = file::set_aside(&folder.join(FILE_NAME))?;
        tracing::warn!(
            "the keeper's store was set aside as {}: {why}",
            aside.display()
        );
        Ok(aside)
    }

    /// What the store in a node's data folder knows of its cluster. Nothing is changed.
    pub async fn known(folder: &Path, owner: &NodeName) -> Result<Known, StoreError> {
        let (path, owner) = (folder.join(FILE_NAME), owner.clone());
        let name = path.display().to_string();
        let done = tokio::task::spawn_blocking(move || recover::known(&path, &owner)).await;
        done.unwrap_or_else(|_| Err(StoreError::corrupt(&name, file::NONSENSE)))
    }

    /// For keepers of which a majority is lost for good: with the store of one that is left and does
    /// not run, makes that one the only keeper of the cluster's next generation. Others can be
    /// promoted then, with new stores. Nodes refuse keepers of the generation before.
    ///
    /// What stands in its log counts as agreed on. What only the lost keepers knew is forgotten. Members that
    /// this store does not know, and that the lost keepers have granted leases to, are not waited
    /// for: let one lease pass between the last keeper's end and this keeper's start.
    ///
    /// The old file is kept beside the new one. In case of an error it is as it was.
    pub async fn recover(folder: &Path, me: KeeperNode) -> Result<Recovery, StoreError> {
        let path = folder.join(FILE_NAME);
        let name = path.display().to_string();
        let recovering = move || recover::recover(&path, &me);
        let done = tokio::task::spawn_blocking(recovering).await;
        done.unwrap_or_else(|_| Err(StoreError::corrupt(&name, file::NONSENSE)))
    }

    async fn load(name: &str, worker: Worker) -> Result<Self, StoreError> {
        let used = Used::default();
        let corrupt = |failure| StoreError::corrupt(name, failure);
        let machine = Machine::load(worker.clone(), used.clone()).await;
        let log = LogStore::load(worker.clone(), used.clone()).await;
        Ok(Store {
            log: log.map_err(corrupt)?,
            machine: machine.map_err(corrupt)?,
            worker,
            used,
        })
    }

    /// Whether anything was ever agreed on, as far as it knows; also later, when its halves are in use.
    pub fn used(&self) -> Used {
        self.used.clone()
    }

    /// Which keeper of which cluster it is of.
    pub fn identity(&self) -> StoreIdentity {
        *self.identities().borrow()
    }

    /// As [`identity`](Self::identity), and its change when the leader commits the cluster's.
    pub fn identities(&self) -> watch::Receiver<StoreIdentity> {
        self.machine.identity()
    }

    /// The keepers as far as the log is applied, and their changes.
    pub fn members(&self) -> watch::Receiver<AppliedMembership> {
        self.machine.members()
    }

    /// The roster as far as it is applied, and its changes.
    pub fn rosters(&self) -> watch::Receiver<Arc<Roster>> {
        self.machine.rosters()
    }

    /// Closes it, and returns when its file is free.
    pub async fn close(self) {
        self.worker.close().await;
    }

    /// What Raft works with, and what closes it.
    pub fn split(self) -> (LogStore, Machine, Closer) {
        (self.log, self.machine, Closer(self.worker))
    }
}
