//! What a keeper must not forget, in one file: the log, its vote, how far the log is committed, and a snapshot.
//!
//! - `file`: making and opening it. What is damaged, foreign or of another version is left alone.
//! - `tables`: what stands where in it. `worker`: the thread that has it.
//! - `log`, `machine`: the two halves as Raft wants them. `used`: whether there is anything in them.
//! - `recover`: going on with one keeper when the others are lost.
//!
//! Invariants: what is acknowledged is on disk. A change is there as a whole or not at all. After the first error
//! nothing more is written.

mod error;
mod file;
mod log;
mod machine;
mod recover;
mod tables;
mod used;
mod worker;

use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use tokio::sync::watch;

pub use error::StoreError;
pub use log::LogStore;
pub use machine::{Machine, SnapshotBuilder};
pub use recover::Recovery;
pub use used::Used;

use super::types::KeeperNode;
use crate::config::NodeName;
use crate::epochs::roster::Roster;
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

    /// As [`open`](Self::open), in a node's data folder. The folder is made if it is not there.
    pub async fn open_in(folder: &Path, owner: &NodeName) -> Result<Self, StoreError> {
        file::make_folder(folder)?;
        Self::open(&folder.join(FILE_NAME), owner).await
    }

    /// For keepers of which a majority is lost for good: with the store of one that is left, and does not run,
    /// makes this one the only keeper. Others can be promoted then, with new stores; those that are cut off must never
    /// run again with their old ones.
    ///
    /// What stands in its log counts as agreed on. What only the lost ones knew is forgotten: they may have begun
    /// more epochs. So the roster's epoch is moved on by `epochs`: choose more than they can have begun, for fences
    /// must rise. Members that this store does not know, and that the lost keepers have given leases to, are
    /// not waited for: let one lease pass between the last keeper's end and this keeper's start.
    ///
    /// The old file is kept beside the new one. In case of an error it is as it was.
    pub async fn recover(
        folder: &Path,
        me: KeeperNode,
        epochs: u64,
    ) -> Result<Recovery, StoreError> {
        let path = folder.join(FILE_NAME);
        let name = path.display().to_string();
        let recovering = move || recover::recover(&path, &me, epochs);
        let done = tokio::task::spawn_blocking(recovering).await;
        done.unwrap_or_else(|_| Err(StoreError::corrupt(&name, file::NONSENSE)))
    }

    /// Opens the store in this file, or makes it. Its owner is the only node that can open it again.
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

    /// The roster as far as it is applied, and its changes.
    pub fn rosters(&self) -> watch::Receiver<Arc<Roster>> {
        self.machine.rosters()
    }

    /// What Raft works with, and what closes it.
    pub fn split(self) -> (LogStore, Machine, Closer) {
        (self.log, self.machine, Closer(self.worker))
    }
}
