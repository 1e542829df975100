//! Migrates stores of older formats.
//!
//! Each entry of the log is converted alone, so that it is the same on all keepers, whatever else
//! their logs contain.

use openraft::EntryPayload;
use redb::{Database, ReadableTable};
use serde::Deserialize;

use super::StoreIdentity;
use super::machine::write_snapshot;
use super::tables::{self, FORMAT, FORMAT_VERSION, IDENTITY, LOG, SNAPSHOT, Snapshot};
use crate::keepers::types::{Entry, KeeperNode, LogId, Proposal, id_of};
use soloist_api::NodeName;
use soloist_core::Term;
use soloist_core::epochs::roster::Roster;
use soloist_core::epochs::roster::old::{OldCommand, Roster3, Roster4};

/// The version of the snapshots in stores of formats 3 and 4.
const SNAPSHOT_OF_3: u8 = 2;
const SNAPSHOT_OF_4: u8 = 3;

/// An entry of the log in formats 3 and 4.
#[derive(Deserialize)]
struct OldEntry {
    log_id: LogId,
    payload: OldPayload,
}

#[derive(Deserialize)]
enum OldPayload {
    Blank,
    Normal(OldProposal),
    Membership(openraft::Membership<u64, KeeperNode>),
}

#[derive(Deserialize)]
struct OldProposal {
    term: Term,
    command: OldCommand,
}

impl From<OldEntry> for Entry {
    fn from(old: OldEntry) -> Self {
        let payload = match old.payload {
            OldPayload::Blank => EntryPayload::Blank,
            OldPayload::Membership(membership) => EntryPayload::Membership(membership),
            OldPayload::Normal(OldProposal { term, command }) => match command.convert() {
                Some(command) => EntryPayload::Normal(Proposal { term, command }),
                None => EntryPayload::Blank,
            },
        };
        let log_id = old.log_id;
        Entry { log_id, payload }
    }
}

/// Migrates a store of format 3 or 4 to the current one, in one transaction.
pub(super) fn migrate(database: &Database, owner: &NodeName) -> Result<(), redb::Error> {
    let identity: Option<StoreIdentity> = tables::get(database, IDENTITY)?;
    // In format 3, stores had no identity.
    let identity = identity.unwrap_or_else(|| StoreIdentity {
        cluster: None,
        id: id_of(owner),
    });
    let snapshot: Option<Snapshot> = tables::get(database, SNAPSHOT)?;
    let snapshot = snapshot.map(convert).transpose()?;
    tables::write(database, |transaction| {
        let mut log = transaction.open_table(LOG)?;
        let mut entries = Vec::new();
        for item in log.iter()? {
            let (index, bytes) = item?;
            let index = index.value();
            let what = format!("entry {index} of the log");
            let old: OldEntry = tables::decode(&what, bytes.value())?;
            entries.push((index, tables::encode(&Entry::from(old))?));
        }
        for (index, bytes) in entries {
            log.insert(index, bytes.as_slice())?;
        }
        drop(log);
        if let Some(snapshot) = &snapshot {
            tables::put(transaction, SNAPSHOT, snapshot)?;
        }
        tables::put(transaction, IDENTITY, &identity)?;
        tables::put(transaction, FORMAT, &FORMAT_VERSION)
    })
}

fn convert(old: Snapshot) -> Result<Snapshot, redb::Error> {
    let what = "the snapshot's roster";
    let (roster, former): (Roster, Vec<u64>) = match old.data.split_first() {
        Some((&SNAPSHOT_OF_3, rest)) => {
            let old: Roster3 = tables::decode(what, rest)?;
            (old.into(), Vec::new())
        }
        Some((&SNAPSHOT_OF_4, rest)) => {
            let (old, former): (Roster4, _) = tables::decode(what, rest)?;
            (old.into(), former)
        }
        _ => {
            let problem = "a snapshot that does not match the format of the store";
            return Err(redb::Error::Corrupted(problem.to_owned()));
        }
    };
    let data = write_snapshot(&roster, &former)?;
    Ok(Snapshot { data, ..old })
}
