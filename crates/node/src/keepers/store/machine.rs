//! The roster as Raft's state machine. It is kept in memory. A restart restores it from the last
//! snapshot and the log after it.

use std::io::Cursor;
use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use openraft::{
    AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta,
    StorageIOError,
};
use redb::Database;
use tokio::sync::watch;

use super::StoreIdentity;
use super::log::any;
use super::tables::{self, IDENTIFIED, SNAPSHOT};
use super::used::Used;
use super::worker::{Failure, Worker};
use crate::keepers::types::{Entry, KeeperNode, LogId, Membership, Proposal, StorageError, Types};
use soloist_core::Term;
use soloist_core::epochs::roster::{Applied, Roster};
use soloist_core::keepers::FormerKeepers;

/// The version of the snapshot format, which is also sent between keepers. 3: has the cluster's
/// identity and former keepers. 4: epochs have a key, and nothing that is held.
const SNAPSHOT_VERSION: u8 = 4;

/// The roster according to the applied log.
#[derive(Debug)]
pub struct Machine {
    worker: Worker,
    used: Used,
    state: State,
    rosters: watch::Sender<Arc<Roster>>,
    members: watch::Sender<AppliedMembership>,
    identity: watch::Sender<StoreIdentity>,
}

/// The keepers according to the applied log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedMembership {
    /// The membership, and the log entry that it comes from.
    pub membership: Membership,
    /// Ids that were in an earlier membership and no longer are.
    pub former: FormerKeepers,
}

/// The state that results from a snapshot and the entries after it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) roster: Arc<Roster>,
    pub(super) applied: Option<LogId>,
    pub(super) members: AppliedMembership,
}

impl State {
    /// The state before the first entry of a log.
    pub(super) fn new(identity: &StoreIdentity) -> Self {
        State {
            roster: Arc::new(Roster::new(identity.cluster)),
            ..State::default()
        }
    }

    pub(super) fn apply(&mut self, entry: Entry) -> Applied {
        self.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => Applied::Done,
            EntryPayload::Normal(Proposal { term, command }) => {
                // The command was decided on in another term. Its premises may no longer hold.
                if term != Term(entry.log_id.leader_id.term) {
                    return Applied::Refused;
                }
                Arc::make_mut(&mut self.roster).apply(command)
            }
            EntryPayload::Membership(membership) => {
                self.members.change(entry.log_id, membership);
                Applied::Done
            }
        }
    }
}

impl AppliedMembership {
    fn change(&mut self, at: LogId, next: openraft::Membership<u64, KeeperNode>) {
        let before = self.membership.membership().nodes().map(|(id, _)| *id);
        self.former
            .change(before, |id| next.get_node(&id).is_some());
        self.membership = Membership::new(Some(at), next);
    }
}

/// Makes a snapshot of the state machine as it was when this was created.
#[derive(Debug)]
pub struct SnapshotBuilder {
    worker: Worker,
    state: State,
}

pub(super) fn write_state(state: &State) -> Result<Vec<u8>, redb::Error> {
    write_snapshot(&state.roster, state.members.former.ids())
}

pub(super) fn write_snapshot(roster: &Roster, former: &[u64]) -> Result<Vec<u8>, redb::Error> {
    tables::encode(&(SNAPSHOT_VERSION, roster, former))
}

/// Decodes the roster and the former keepers.
fn read_state(bytes: &[u8]) -> Result<(Roster, Vec<u64>), redb::Error> {
    match bytes.split_first() {
        Some((&SNAPSHOT_VERSION, rest)) => tables::decode("the snapshot's roster", rest),
        Some((version, _)) => Err(redb::Error::Corrupted(format!(
            "a snapshot of version {version}, but this release reads version {SNAPSHOT_VERSION}; \
             run the same release on all keepers"
        ))),
        None => Err(redb::Error::Corrupted(
            "a snapshot without bytes".to_owned(),
        )),
    }
}

pub(super) fn state_of(snapshot: &tables::Snapshot) -> Result<State, redb::Error> {
    let (roster, former) = read_state(&snapshot.data)?;
    Ok(State {
        roster: Arc::new(roster),
        applied: snapshot.meta.last_log_id,
        members: AppliedMembership {
            membership: snapshot.meta.last_membership.clone(),
            former: former.into(),
        },
    })
}

/// Loads the state from the store's snapshot, and the store's current identity.
fn load(database: &Database) -> Result<(State, StoreIdentity), redb::Error> {
    let (made, cluster) = tables::identity(database)?;
    let state = match tables::get(database, SNAPSHOT)? {
        Some(snapshot) => state_of(&snapshot)?,
        None => State::new(&made),
    };
    let now = StoreIdentity { cluster, ..made };
    Ok((state, now))
}

impl Machine {
    pub(super) async fn load(worker: Worker, used: Used) -> Result<Self, Failure> {
        let (state, identity) = worker.run(load).await?;
        if state.applied.is_some() {
            used.set();
        }
        let mut machine = Machine {
            worker,
            used,
            rosters: watch::Sender::new(state.roster.clone()),
            members: watch::Sender::new(state.members.clone()),
            identity: watch::Sender::new(identity),
            state,
        };
        // A crash may have happened after the snapshot and before the identity was written.
        machine.note_identity().await?;
        Ok(machine)
    }

    pub(super) fn rosters(&self) -> watch::Receiver<Arc<Roster>> {
        self.rosters.subscribe()
    }

    pub(super) fn members(&self) -> watch::Receiver<AppliedMembership> {
        self.members.subscribe()
    }

    pub(super) fn identity(&self) -> watch::Receiver<StoreIdentity> {
        self.identity.subscribe()
    }

    /// Writes the cluster's identity to the store once the leader has committed it.
    async fn note_identity(&mut self) -> Result<(), Failure> {
        let identity = *self.identity.borrow();
        let (None, Some(cluster)) = (identity.cluster, self.state.roster.cluster()) else {
            return Ok(());
        };
        let note = move |database: &Database| {
            tables::write(database, |transaction| {
                tables::put(transaction, IDENTIFIED, &cluster)
            })
        };
        self.worker.run(note).await?;
        self.identity.send_replace(StoreIdentity {
            cluster: Some(cluster),
            ..identity
        });
        Ok(())
    }

    /// Fails if the state is of another cluster: it must not replace this cluster's state.
    fn check_cluster(&self, state: &State) -> Result<(), String> {
        match (self.identity.borrow().cluster, state.roster.cluster()) {
            (Some(mine), Some(theirs)) if mine != theirs => Err(format!(
                "the leader's snapshot is of cluster {theirs}, but this store is of cluster {mine}"
            )),
            _ => Ok(()),
        }
    }

    async fn tell(&mut self) -> Result<(), StorageError> {
        // The identity must be on disk before it is published.
        let noted = self.note_identity().await;
        noted.map_err(|failure| StorageIOError::write(any(&failure)))?;
        self.members.send_if_modified(|told| {
            let news = *told != self.state.members;
            if news {
                *told = self.state.members.clone();
            }
            news
        });
        self.rosters.send_if_modified(|told| {
            let news = **told != *self.state.roster;
            if news {
                *told = self.state.roster.clone();
            }
            news
        });
        Ok(())
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.state.applied, self.state.members.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries = entries.into_iter();
        let applied = entries.map(|entry| self.state.apply(entry)).collect();
        self.tell().await?;
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
            let problem = format!("cannot use the leader's snapshot: {error}");
            StorageIOError::read_snapshot(signature(), AnyError::error(problem))
        })?;
        self.check_cluster(&state).map_err(|problem| {
            StorageIOError::read_snapshot(signature(), AnyError::error(problem))
        })?;
        self.used.set();
        self.worker
            .run(move |database| tables::keep_snapshot(database, &snapshot))
            .await
            .map_err(|failure| StorageIOError::write_snapshot(signature(), any(&failure)))?;
        self.state = state;
        self.tell().await
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
        // The same entries always give the same bytes, so the last log id is sufficient as a name.
        let name = state.applied.map(|last| last.to_string());
        let meta = SnapshotMeta {
            last_log_id: state.applied,
            last_membership: state.members.membership.clone(),
            snapshot_id: name.unwrap_or_default(),
        };
        let signature = meta.signature();
        let built = self.worker.run(move |database| {
            let data = write_state(&state)?;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Applies a membership with these voters at entry `index`.
    fn change(applied: &mut AppliedMembership, index: u64, ids: &[u64]) {
        let nodes: BTreeMap<u64, KeeperNode> =
            ids.iter().map(|id| (*id, KeeperNode::default())).collect();
        let voters = ids.iter().copied().collect();
        let at = LogId::new(openraft::CommittedLeaderId::new(1, 0), index);
        applied.change(at, openraft::Membership::new(vec![voters], nodes));
    }

    #[test]
    fn the_oldest_former_keepers_are_forgotten() {
        let mut applied = AppliedMembership::default();
        let promotions = FormerKeepers::MAX as u64 + 10;
        for id in 0..=promotions {
            // Real ids are random, so their order must not matter. Here a later one is smaller.
            change(&mut applied, id, &[u64::MAX - id]);
        }
        let former = &applied.former;
        assert_eq!(former.ids().len(), FormerKeepers::MAX);
        assert!(former.contains(u64::MAX - (promotions - 1)));
        assert!(!former.contains(u64::MAX - promotions), "it is a keeper");
        assert!(former.contains(u64::MAX - 10));
        assert!(!former.contains(u64::MAX - 9), "the oldest go first");
        let state = State {
            members: applied.clone(),
            ..State::default()
        };
        let bytes = write_state(&state).unwrap();
        assert!(bytes.len() < 64 << 10, "{} bytes", bytes.len());
        assert_eq!(read_state(&bytes).unwrap().1, former.ids());
    }
}
