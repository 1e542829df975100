//! The roster as Raft's state machine. It lives in memory; what survives a restart is its last snapshot, and the
//! log from there on.

use std::io::Cursor;
use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use openraft::{
    AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta,
    StorageIOError,
};
use tokio::sync::watch;

use super::log::any;
use super::tables::{self, SNAPSHOT};
use super::used::Used;
use super::worker::{Failure, Worker};
use crate::epochs::roster::{Applied, Roster};
use crate::keepers::types::{Entry, KeeperNode, LogId, Membership, Proposal, StorageError, Types};

/// The version of a snapshot's bytes, which also travel between keepers.
const SNAPSHOT_VERSION: u8 = 2;

/// The roster, as far as the log is applied.
#[derive(Debug)]
pub struct Machine {
    worker: Worker,
    used: Used,
    state: State,
    rosters: watch::Sender<Arc<Roster>>,
}

/// What follows from a snapshot and the entries after it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) roster: Arc<Roster>,
    pub(super) applied: Option<LogId>,
    pub(super) membership: Membership,
}

impl State {
    pub(super) fn apply(&mut self, entry: Entry) -> Applied {
        self.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => Applied::Done,
            EntryPayload::Normal(Proposal { term, command }) => {
                // Decided on in another reign: what it rests on may be gone.
                if term != entry.log_id.leader_id.term {
                    return Applied::Refused;
                }
                Arc::make_mut(&mut self.roster).apply(command)
            }
            EntryPayload::Membership(membership) => {
                self.membership = Membership::new(Some(entry.log_id), membership);
                Applied::Done
            }
        }
    }
}

/// Makes a snapshot of the state machine as it was.
#[derive(Debug)]
pub struct SnapshotBuilder {
    worker: Worker,
    state: State,
}

pub(super) fn write_roster(roster: &Roster) -> Result<Vec<u8>, redb::Error> {
    tables::encode(&(SNAPSHOT_VERSION, roster))
}

pub(super) fn read_roster(bytes: &[u8]) -> Result<Roster, redb::Error> {
    match bytes.split_first() {
        Some((&SNAPSHOT_VERSION, rest)) => tables::decode("the snapshot's roster", rest),
        Some((version, _)) => Err(redb::Error::Corrupted(format!(
            "a snapshot of version {version}, and this release reads version {SNAPSHOT_VERSION}; \
             run the same release on all keepers"
        ))),
        None => Err(redb::Error::Corrupted(
            "a snapshot without bytes".to_owned(),
        )),
    }
}

pub(super) fn state_of(snapshot: &tables::Snapshot) -> Result<State, redb::Error> {
    Ok(State {
        roster: Arc::new(read_roster(&snapshot.data)?),
        applied: snapshot.meta.last_log_id,
        membership: snapshot.meta.last_membership.clone(),
    })
}

impl Machine {
    pub(super) async fn load(worker: Worker, used: Used) -> Result<Self, Failure> {
        let state = worker
            .run(|database| match tables::get(database, SNAPSHOT)? {
                Some(snapshot) => state_of(&snapshot),
                None => Ok(State::default()),
            })
            .await?;
        if state.applied.is_some() {
            used.set();
        }
        let rosters = watch::Sender::new(state.roster.clone());
        Ok(Machine {
            worker,
            used,
            state,
            rosters,
        })
    }

    pub(super) fn rosters(&self) -> watch::Receiver<Arc<Roster>> {
        self.rosters.subscribe()
    }

    fn tell(&self) {
        self.rosters.send_if_modified(|told| {
            let news = **told != *self.state.roster;
            if news {
                *told = self.state.roster.clone();
            }
            news
        });
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.state.applied, self.state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries = entries.into_iter();
        let applied = entries.map(|entry| self.state.apply(entry)).collect();
        self.tell();
        Ok(applied)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {
            worker: self.worker.clone(),
            state: self.state.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, KeeperNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let snapshot = tables::Snapshot {
            meta: meta.clone(),
            data: snapshot.into_inner(),
        };
        let signature = || Some(meta.signature());
        let state = state_of(&snapshot).map_err(|error| {
            let problem = format!("the leader's snapshot cannot be used: {error}");
            StorageIOError::read_snapshot(signature(), AnyError::error(problem))
        })?;
        self.used.set();
        self.worker
            .run(move |database| tables::keep_snapshot(database, &snapshot))
            .await
            .map_err(|failure| StorageIOError::write_snapshot(signature(), any(&failure)))?;
        self.state = state;
        self.tell();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let snapshot = self
            .worker
            .run(|database| tables::get::<tables::Snapshot>(database, SNAPSHOT))
            .await
            .map_err(|failure| StorageIOError::read_snapshot(None, any(&failure)))?;
        Ok(snapshot.map(given))
    }
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let state = self.state.clone();
        // The same entries always make the same bytes, so the last of them is enough for a name.
        let name = state.applied.map(|last| last.to_string());
        let meta = SnapshotMeta {
            last_log_id: state.applied,
            last_membership: state.membership,
            snapshot_id: name.unwrap_or_default(),
        };
        let signature = meta.signature();
        let roster = state.roster;
        let built = self.worker.run(move |database| {
            let data = write_roster(&roster)?;
            let snapshot = tables::Snapshot { meta, data };
            tables::keep_snapshot(database, &snapshot)?;
            Ok(snapshot)
        });
        let failed = |failure| StorageIOError::write_snapshot(Some(signature), any(&failure));
        Ok(given(built.await.map_err(failed)?))
    }
}

fn given(snapshot: tables::Snapshot) -> Snapshot<Types> {
    Snapshot {
        meta: snapshot.meta,
        snapshot: Box::new(Cursor::new(snapshot.data)),
    }
}
