//! Going on with one keeper when a majority is lost for good.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use openraft::{CommittedLeaderId, SnapshotMeta};
use redb::Database;

use super::StoreError;
use super::file::Existing;
use super::machine::{State, state_of, write_roster};
use super::tables::{self, COMMITTED, PURGED, SNAPSHOT, Snapshot, VOTE};
use crate::epochs::roster::{Applied, Member, Roster};
use crate::keepers::types::{KeeperNode, LogId, Membership, Vote};

/// What was found in the store of a keeper that goes on alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The epoch that was begun last, as far as it knew; 0 if there was none.
    pub epoch_before: u64,
    /// Its number now.
    pub epoch_after: u64,
    /// Its members. They are waited for until their leases have run out.
    pub members: Vec<Member>,
    /// The keepers that are none any more, in the order of their names. They must not run again with their old stores.
    pub cut_off: Vec<KeeperNode>,
    /// Where the old store is.
    pub kept: PathBuf,
}

/// Replaces a store by one whose owner is the only keeper.
pub(super) fn recover(path: &Path, me: &KeeperNode, epochs: u64) -> Result<Recovery, StoreError> {
    let name = path.display().to_string();
    let unrecoverable = |problem: String| {
        let file = name.clone();
        Err(StoreError::Unrecoverable { file, problem })
    };
    let existing = Existing::open(path, &me.name)?;
    let found =
        Found::read(&existing.copy()?).map_err(|error| StoreError::corrupt(&name, error))?;
    let Some(last) = found.state.applied else {
        return unrecoverable(
            "nothing was ever agreed on in it; move it away, and start the node".to_owned(),
        );
    };
    let (keepers, to_be) = (found.keepers(), found.to_be());
    if !to_be.contains(&me.id()) {
        let nodes = to_be.iter().filter_map(|id| keepers.get(id));
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        let (me, names) = (&me.name, names.join(", "));
        return unrecoverable(format!(
            "by what it knows, {me} was not a keeper, or not to be one any more, but {names}: use the store of one of them"
        ));
    }
    let mut roster = Roster::clone(&found.state.roster);
    let epoch_before = roster.next_epoch() - 1;
    if roster.skip(epochs) == Applied::Refused {
        return unrecoverable(format!(
            "its epoch {epoch_before} cannot be moved on by {epochs}; use a number that is greater than 0 and leaves room"
        ));
    }
    let kept = existing.replace(|transaction| {
        let (snapshot, vote) = found.alone(me, last, &roster)?;
        tables::put(transaction, VOTE, &vote)?;
        tables::put(transaction, COMMITTED, &snapshot.meta.last_log_id)?;
        if let Some(last) = &snapshot.meta.last_log_id {
            tables::put(transaction, PURGED, last)?;
        }
        tables::put(transaction, SNAPSHOT, &snapshot)
    })?;
    let others = keepers.into_values();
    let mut cut_off: Vec<_> = others.filter(|node| node.name != me.name).collect();
    cut_off.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Recovery {
        epoch_before,
        epoch_after: roster.next_epoch() - 1,
        members: (roster.begun()).map_or_else(Vec::new, |change| change.members.clone()),
        cut_off,
        kept,
    })
}

/// What a store knows.
struct Found {
    vote: Option<Vote>,
    /// With all entries of the log carried out, whether or not a majority was known to have them.
    state: State,
}

impl Found {
    fn read(database: &Database) -> Result<Self, redb::Error> {
        let snapshot: Option<Snapshot> = tables::get(database, SNAPSHOT)?;
        let mut state = match &snapshot {
            Some(snapshot) => state_of(snapshot)?,
            None => State::default(),
        };
        // A leader's snapshot may be later than the log, which is then of no use any more.
        let next = state.applied.map_or(0, |applied| applied.index + 1);
        let rest = (Bound::Included(next), Bound::Unbounded);
        for entry in tables::entries(database, rest, false)? {
            let expected = state.applied.map_or(0, |applied| applied.index + 1);
            let found = entry.log_id.index;
            if found != expected {
                return Err(redb::Error::Corrupted(format!(
                    "entry {found} follows where entry {expected} should"
                )));
            }
            state.apply(entry);
        }
        Ok(Found {
            vote: tables::get(database, VOTE)?,
            state,
        })
    }

    /// The keepers by their numbers.
    fn keepers(&self) -> BTreeMap<u64, KeeperNode> {
        let membership = self.state.membership.membership();
        let node = |id| Some((id, membership.get_node(&id)?.clone()));
        membership.voter_ids().filter_map(node).collect()
    }

    /// The numbers of those who are the keepers when the change under way is through. Who is demoted may never hear
    /// more than that it was to be.
    fn to_be(&self) -> BTreeSet<u64> {
        let configs = self.state.membership.membership().get_joint_config();
        configs.last().cloned().unwrap_or_default()
    }

    /// As if this one had been elected by itself, and had made an entry that says all that there is. No other keeper
    /// has an entry of that id, and no promise is broken: its term is later than all that this one knew.
    fn alone(
        &self,
        me: &KeeperNode,
        last: LogId,
        roster: &Roster,
    ) -> Result<(Snapshot, Vote), redb::Error> {
        let voted = self.vote.map_or(0, |vote| vote.leader_id.term);
        let term = 1 + voted.max(last.leader_id.term);
        let here = LogId::new(CommittedLeaderId::new(term, me.id()), last.index + 1);
        let only = BTreeSet::from([me.id()]);
        let nodes = BTreeMap::from([(me.id(), me.clone())]);
        let membership = openraft::Membership::new(vec![only], nodes);
        let meta = SnapshotMeta {
            last_log_id: Some(here),
            last_membership: Membership::new(Some(here), membership),
            snapshot_id: here.to_string(),
        };
        let data = write_roster(roster)?;
        Ok((Snapshot { meta, data }, Vote::new(term, me.id())))
    }
}
