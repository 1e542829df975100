//! A keeper's persistent state, in one file: the log, its vote, how far the log is committed, and a
//! snapshot.
//!
//! - `file`: creates, opens and migrates it. A file that is damaged, foreign or of a newer format
//!   is left untouched.
//! - `identity`: the keeper and cluster that the store belongs to. Every store has one.
//! - `migration`: stores of older formats.
//! - `tables`: the layout of the database. `worker`: the thread that owns it.
//! - `log`, `machine`: the two halves that Raft requires. `used`: whether anything is in them.
//! - `recover`: continuing with one keeper when the others are lost.
//!
//! Invariants: what is acknowledged is on disk. A change is applied as a whole or not at all. After
//! the first error nothing more is written.

mod error;
mod file;
mod identity;
mod log;
mod machine;
mod migration;
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

/// An open store. It cannot be opened a second time meanwhile.
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
    /// Closes the store, and returns when its file is released. Later operations fail.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

impl Store {
    /// Returns whether there is a store in a node's data folder. If that cannot be determined, the
    /// answer is yes: opening the store reports the problem, and a keeper must not continue as if
    /// it had promised nothing.
    pub fn exists(folder: &Path) -> bool {
        folder.join(FILE_NAME).try_exists().unwrap_or(true)
    }

    /// Creates a store in a node's data folder, and the folder if it does not exist. The store is
    /// on disk when this returns. Only its owner can open it again.
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

    /// As [`create`](Self::create), on a backend other than a file. `name` is used in errors.
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

    /// Opens the store in this file. A store of an older format is migrated, and the old file is
    /// kept beside it.
    pub async fn open(path: &Path, owner: &NodeName) -> Result<Self, StoreError> {
        let (path, owner) = (path.to_owned(), owner.clone());
        let name = path.display().to_string();
        let worker = Worker::start(name.clone(), move || file::open(&path, &owner)).await?;
        Self::load(&name, worker).await
    }

    /// As [`open`](Self::open), on a backend other than a file. `name` is used in errors.
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
    /// name. Nothing is deleted or overwritten. The store must be closed. `why` is logged.
    pub fn set_aside(folder: &Path, why: &str) -> Result<PathBuf, StoreError> {
        let aside = file::set_aside(&folder.join(FILE_NAME))?;
        tracing::warn!(
            "the keeper's store was set aside as {}: {why}",
            aside.display()
        );
        Ok(aside)
    }

    /// Reads what the store in a node's data folder knows of its cluster. Nothing is changed.
    pub async fn known(folder: &Path, owner: &NodeName) -> Result<Known, StoreError> {
        let (path, owner) = (folder.join(FILE_NAME), owner.clone());
        let name = path.display().to_string();
        let done = tokio::task::spawn_blocking(move || recover::known(&path, &owner)).await;
        done.unwrap_or_else(|_| Err(StoreError::corrupt(&name, file::NONSENSE)))
    }

    /// Recovers from the permanent loss of a majority of the keepers. The keeper of this store,
    /// which must not be running, becomes the only keeper of the cluster's next generation. Others
    /// can then be promoted, with new stores. Nodes refuse keepers of the previous generation.
    ///
    /// All entries of the log count as committed. What only the lost keepers knew is forgotten.
    /// Members that this store does not know, but that the lost keepers have granted leases to, are
    /// not waited for: let one lease pass between the last keeper's end and this keeper's start.
    ///
    /// The old file is kept beside the new one. If this fails, it is unchanged.
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

    /// Whether the store shows that anything was ever agreed on. This stays up to date when its
    /// halves are in use.
    pub fn used(&self) -> Used {
        self.used.clone()
    }

    /// The keeper and cluster that the store belongs to.
    pub fn identity(&self) -> StoreIdentity {
        *self.identities().borrow()
    }

    /// Watches [`identity`](Self::identity), which changes when the leader commits the cluster's
    /// identity.
    pub fn identities(&self) -> watch::Receiver<StoreIdentity> {
        self.machine.identity()
    }

    /// Watches the keepers according to the applied log.
    pub fn members(&self) -> watch::Receiver<AppliedMembership> {
        self.machine.members()
    }

    /// Watches the roster according to the applied log.
    pub fn rosters(&self) -> watch::Receiver<Arc<Roster>> {
        self.machine.rosters()
    }

    /// Closes the store, and returns when its file is released.
    pub async fn close(self) {
        self.worker.close().await;
    }

    /// Splits the store into the halves that Raft works with, and a handle for closing it.
    pub fn split(self) -> (LogStore, Machine, Closer) {
        (self.log, self.machine, Closer(self.worker))
    }
}
