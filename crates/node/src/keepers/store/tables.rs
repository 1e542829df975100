//! The layout of the database, and the encoding of its values.
//!
//! Every write is one transaction, and is on disk when it returns. It uses a two-phase commit, with
//! which the database never falls back to the previous transaction, which may lack a vote that was
//! given.

use std::ops::Bound;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreIdentity;
use crate::keepers::types::{Entry, KeeperNode, LogId, Vote};
use soloist_core::cluster_identity::ClusterIdentity;

pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
pub(super) const STATE: TableDefinition<'static, &str, &[u8]> =
    TableDefinition::new("soloist keeper");

pub(super) const FORMAT: &str = "format";
pub(super) const OWNER: &str = "owner";
/// The [`StoreIdentity`] that the store was created with. It never changes.
pub(super) const IDENTITY: &str = "identity";
/// The cluster's identity, if its leader committed it after the store was created.
pub(super) const IDENTIFIED: &str = "identified";
pub(super) const VOTE: &str = "vote";
pub(super) const COMMITTED: &str = "committed";
pub(super) const PURGED: &str = "purged";
pub(super) const SNAPSHOT: &str = "snapshot";

/// The current format. 2: entries have the term in which they were proposed. 3: leaders commit the
/// length of their leases. 4: the store has an identity, snapshots have former keepers, and epochs
/// have 32 bits. 5: epochs have a key, and what is held when they begin is no longer stored.
pub(super) const FORMAT_VERSION: u32 = 5;
/// The oldest format that is migrated.
pub(super) const FORMAT_OLDEST: u32 = 3;

/// Maximum total size of entries that are read at once for a peer. The first entry may exceed it.
const BATCH_BYTES: usize = 1 << 20;

/// The bounds of a range of entries.
pub(super) type Range = (Bound<u64>, Bound<u64>);

/// A snapshot: its metadata, and the bytes of the state machine.
#[derive(serde::Serialize, serde::Deserialize, Clone)]
pub(super) struct Snapshot {
    pub(super) meta: openraft::SnapshotMeta<u64, KeeperNode>,
    pub(super) data: Vec<u8>,
}

pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    postcard::to_allocvec(value).map_err(|error| corrupted(&format!("cannot be written: {error}")))
}

pub(super) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, redb::Error> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => {
            let rest = rest.len();
            Err(corrupted(&format!("{what} has {rest} extra bytes")))
        }
        Err(error) => Err(corrupted(&format!("{what} cannot be decoded: {error}"))),
    }
}

fn corrupted(problem: &str) -> redb::Error {
    redb::Error::Corrupted(problem.to_owned())
}

/// Applies all of `change` or nothing, and returns when it is on disk.
pub(super) fn write<T>(
    database: &Database,
    change: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
) -> Result<T, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    let value = change(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

pub(super) fn put(
    transaction: &WriteTransaction,
    key: &str,
    value: &impl Serialize,
) -> Result<(), redb::Error> {
    let bytes = encode(value)?;
    transaction
        .open_table(STATE)?
        .insert(key, bytes.as_slice())?;
    Ok(())
}

pub(super) fn get<T: DeserializeOwned>(
    database: &Database,
    key: &str,
) -> Result<Option<T>, redb::Error> {
    let table = database.begin_read()?.open_table(STATE)?;
    let value = table.get(key)?;
    value.map(|bytes| decode(key, bytes.value())).transpose()
}

/// The identity that the store was created with, and the cluster that it belongs to now.
pub(super) fn identity(
    database: &Database,
) -> Result<(StoreIdentity, Option<ClusterIdentity>), redb::Error> {
    let made: Option<StoreIdentity> = get(database, IDENTITY)?;
    let made = made.ok_or_else(|| corrupted("it has no keeper's id"))?;
    Ok((made, made.cluster.or(get(database, IDENTIFIED)?)))
}

pub(super) fn append(database: &Database, entries: &[(u64, Vec<u8>)]) -> Result<(), redb::Error> {
    write(database, |transaction| {
        let mut log = transaction.open_table(LOG)?;
        for (index, bytes) in entries {
            log.insert(index, bytes.as_slice())?;
        }
        Ok(())
    })
}

/// Removes this entry and all after it.
pub(super) fn truncate(database: &Database, from: u64) -> Result<(), redb::Error> {
    write(database, |transaction| {
        transaction
            .open_table(LOG)?
            .retain_in(from.., |_, _| false)?;
        Ok(())
    })
}

/// Removes this entry and all before it.
pub(super) fn purge(database: &Database, up_to: LogId) -> Result<(), redb::Error> {
    write(database, |transaction| {
        transaction
            .open_table(LOG)?
            .retain_in(..=up_to.index, |_, _| false)?;
        put(transaction, PURGED, &up_to)
    })
}

/// The last purged entry, and the last entry of all.
pub(super) fn ends(database: &Database) -> Result<(Option<LogId>, Option<LogId>), redb::Error> {
    let purged = get(database, PURGED)?;
    let log = database.begin_read()?.open_table(LOG)?;
    let last = match log.last()? {
        Some((index, bytes)) => Some(log_id(index.value(), bytes.value())?),
        None => purged,
    };
    Ok((purged, last))
}

/// The entries of a range. With `limited`, at most [`BATCH_BYTES`], but at least one entry.
pub(super) fn entries(
    database: &Database,
    range: Range,
    limited: bool,
) -> Result<Vec<Entry>, redb::Error> {
    let log = database.begin_read()?.open_table(LOG)?;
    let (mut found, mut total) = (Vec::new(), 0);
    if is_empty(range) {
        return Ok(found);
    }
    for item in log.range::<u64>(range)? {
        let (index, bytes) = item?;
        total += bytes.value().len();
        if limited && total > BATCH_BYTES && !found.is_empty() {
            break;
        }
        found.push(entry(index.value(), bytes.value())?);
    }
    Ok(found)
}

/// Returns whether a range is empty. The database panics if its end is before its start.
fn is_empty((start, end): Range) -> bool {
    let first = match start {
        Bound::Included(index) => index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    match end {
        Bound::Included(index) => index < first,
        Bound::Excluded(index) => index <= first,
        Bound::Unbounded => false,
    }
}

/// Decodes only the id of an entry, which comes first. The rest may be long, and this is called
/// often.
fn log_id(index: u64, bytes: &[u8]) -> Result<LogId, redb::Error> {
    let read = postcard::take_from_bytes::<LogId>(bytes);
    match read {
        Ok((id, _)) if id.index == index => Ok(id),
        _ => Err(corrupted(&format!(
            "entry {index} of the log does not start with its id"
        ))),
    }
}

fn entry(index: u64, bytes: &[u8]) -> Result<Entry, redb::Error> {
    let entry: Entry = decode(&format!("entry {index} of the log"), bytes)?;
    if entry.log_id.index != index {
        let found = entry.log_id.index;
        return Err(corrupted(&format!(
            "entry {index} of the log has the index {found}"
        )));
    }
    Ok(entry)
}

/// Stores a snapshot, unless there is a later one: a snapshot that took long to build may be older
/// than one that a leader has sent.
pub(super) fn keep_snapshot(database: &Database, snapshot: &Snapshot) -> Result<(), redb::Error> {
    let there: Option<Snapshot> = get(database, SNAPSHOT)?;
    if there.is_some_and(|there| there.meta.last_log_id > snapshot.meta.last_log_id) {
        return Ok(());
    }
    write(database, |transaction| put(transaction, SNAPSHOT, snapshot))
}

/// Reads everything, and checks that it is consistent.
pub(super) fn examine(database: &Database) -> Result<(), redb::Error> {
    let _: Option<Vote> = get(database, VOTE)?;
    let _: Option<Option<LogId>> = get(database, COMMITTED)?;
    let snapshot: Option<Snapshot> = get(database, SNAPSHOT)?;
    if let Some(snapshot) = snapshot {
        super::machine::state_of(&snapshot)?;
    }
    let (purged, _) = ends(database)?;
    let first = purged.map_or(0, |purged| purged.index.saturating_add(1));
    let log = database.begin_read()?.open_table(LOG)?;
    for (next, item) in (first..).zip(log.iter()?) {
        let (index, bytes) = item?;
        let index = entry(index.value(), bytes.value())?.log_id.index;
        if index != next {
            return Err(corrupted(&format!(
                "the log has entry {index} instead of entry {next}"
            )));
        }
    }
    Ok(())
}
