//! The log storage that Raft requires.

use std::fmt::Debug;
use std::ops::RangeBounds;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, LogState, OptionalSend, RaftLogReader, StorageIOError};

use super::tables::{self, COMMITTED, Range, VOTE};
use super::used::Used;
use super::worker::{Failure, Worker};
use crate::keepers::types::{Entry, LogId, StorageError, Types, Vote};

/// The log, the vote, and how far the log is committed.
#[derive(Clone, Debug)]
pub struct LogStore {
    worker: Worker,
    used: Used,
}

impl LogStore {
    pub(super) async fn load(worker: Worker, used: Used) -> Result<Self, Failure> {
        let (_, last) = worker.run(tables::ends).await?;
        if last.is_some() {
            used.set();
        }
        Ok(LogStore { worker, used })
    }

    /// The id of the last entry, even if that was purged.
    pub(in crate::keepers) async fn last(&self) -> Result<Option<LogId>, StorageError> {
        let ends = self.worker.run(tables::ends).await;
        let (_, last) = ends.map_err(|failure| StorageIOError::read_logs(any(&failure)))?;
        Ok(last)
    }

    async fn entries(&self, range: Range, limited: bool) -> Result<Vec<Entry>, StorageError> {
        self.worker
            .run(move |database| tables::entries(database, range, limited))
            .await
            .map_err(|failure| StorageIOError::read_logs(any(&failure)).into())
    }
}

pub(super) fn any(failure: &Failure) -> AnyError {
    AnyError::error(failure)
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.entries(range, false).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        use std::ops::Bound::{Excluded, Included};
        self.entries((Included(start), Excluded(end)), true).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let ends = self.worker.run(tables::ends).await;
        let (last_purged_log_id, last_log_id) =
            ends.map_err(|failure| StorageIOError::read_logs(any(&failure)))?;
        Ok(LogState {
            last_purged_log_id,
            last_log_id,
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = *vote;
        self.worker
            .run(move |database| {
                tables::write(database, |transaction| {
                    tables::put(transaction, VOTE, &vote)
                })
            })
            .await
            .map_err(|failure| StorageIOError::write_vote(any(&failure)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        self.worker
            .run(|database| tables::get(database, VOTE))
            .await
            .map_err(|failure| StorageIOError::read_vote(any(&failure)).into())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.worker
            .run(move |database| {
                tables::write(database, |transaction| {
                    tables::put(transaction, COMMITTED, &committed)
                })
            })
            .await
            .map_err(|failure| StorageIOError::write(any(&failure)).into())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        let committed = self
            .worker
            .run(|database| tables::get::<Option<LogId>>(database, COMMITTED))
            .await
            .map_err(|failure| StorageIOError::read(any(&failure)))?;
        Ok(committed.flatten())
    }

    async fn append<I>(
        &mut self,
        entries: I,
        flushed: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let encoded: Result<Vec<_>, redb::Error> = entries
            .into_iter()
            .map(|entry| Ok((entry.log_id.index, tables::encode(&entry)?)))
            .collect();
        self.used.set();
        let appended = self
            .worker
            .run(move |database| tables::append(database, &encoded?))
            .await;
        // The append above has waited for the disk, so the entries are flushed already.
        appended.map_err(|failure| StorageIOError::write_logs(any(&failure)))?;
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.worker
            .run(move |database| tables::truncate(database, log_id.index))
            .await
            .map_err(|failure| StorageIOError::write_logs(any(&failure)).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.worker
            .run(move |database| tables::purge(database, log_id))
            .await
            .map_err(|failure| StorageIOError::write_logs(any(&failure)).into())
    }
}
