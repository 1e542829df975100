//! What a keeper must not forget, in one file: the log, its vote, how far the log is committed, and a snapshot.
//!
//! - `file`: making and opening it. What is damaged, foreign or of another version is left alone.
//! - `tables`: what stands where in it. `worker`: the thread that has it.
//! - `log`, `machine`: the two halves as Raft wants them.
//!
//! Invariants: what is acknowledged is on disk. A change is there as a whole or not at all. After the first error
//! nothing more is written.

mod error;
mod file;
mod log;
mod machine;
mod tables;
mod worker;

use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use tokio::sync::watch;

pub use error::StoreError;
pub use log::LogStore;
pub use machine::{Machine, SnapshotBuilder};

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
        let machine = Machine::load(worker.clone())
            .await
            .map_err(|failure| StoreError::corrupt(name, failure))?;
        Ok(Store {
            log: LogStore::new(worker.clone()),
            machine,
            worker,
        })
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
