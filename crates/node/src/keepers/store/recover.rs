//! Continues with a single keeper after a majority was lost for good.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::{CommittedLeaderId, SnapshotMeta};
use redb::Database;

use super::file::Existing;
use super::machine::{State, state_of, write_state};
use super::tables::{self, COMMITTED, PURGED, SNAPSHOT, Snapshot, VOTE};
use super::{StoreError, StoreIdentity};
use crate::keepers::types::{KeeperNode, LogId, Membership, Vote};
use soloist_api::NodeName;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity};
use soloist_core::epochs::roster::{Member, Roster};

/// What was found in the store of a keeper that continues alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The cluster, in its new generation.
    pub cluster: ClusterIdentity,
    /// The epoch that was begun last, according to this keeper; 0 if there was none.
    pub epoch_before: u64,
    /// The number of that epoch in the new generation.
    pub epoch_after: u64,
    /// Its members. The keeper waits until their leases have expired.
    pub members: Vec<Member>,
    /// The keepers that were removed, ordered by name.
    pub cut_off: Vec<KeeperNode>,
    /// Where the old store is kept.
    pub kept: PathBuf,
}

/// Replaces a store with one whose owner is the only keeper, in the next generation of the cluster.
pub(super) fn recover(path: &Path, me: &KeeperNode) -> Result<Recovery, StoreError> {
    let name = path.display().to_string();
    let unrecoverable = |problem: String| {
        let file = name.clone();
        StoreError::Unrecoverable { file, problem }
    };
    let existing = Existing::open(path, &me.name)?;
    let found =
        Found::read(&existing.copy()?).map_err(|error| StoreError::corrupt(&name, error))?;
    found.check(me).map_err(unrecoverable)?;
    let cluster = found.next_generation().map_err(unrecoverable)?;
    let before = &found.state.roster;
    let roster = before.recovered(cluster);
    let identity = StoreIdentity::fresh(cluster);
    let kept = existing.replace(&identity, |transaction| {
        let (snapshot, vote) = alone(me, identity.id, &roster)?;
        tables::put(transaction, VOTE, &vote)?;
        tables::put(transaction, COMMITTED, &snapshot.meta.last_log_id)?;
        if let Some(last) = &snapshot.meta.last_log_id {
            tables::put(transaction, PURGED, last)?;
        }
        tables::put(transaction, SNAPSHOT, &snapshot)
    })?;
    let others = found.keepers().into_values();
    let mut cut_off: Vec<_> = others.filter(|node| node.name != me.name).collect();
    cut_off.sort_by(|one, other| one.name.cmp(&other.name));
    let epoch = |roster: &Roster| roster.begun().map_or(0, |change| change.epoch);
    Ok(Recovery {
        cluster,
        epoch_before: epoch(before),
        epoch_after: epoch(&roster),
        members: (roster.begun()).map_or_else(Vec::new, |change| change.members.clone()),
        cut_off,
        kept,
    })
}

/// What a store knows of its cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The cluster, or `None` if it was created before clusters had an identity.
    pub cluster: Option<ClusterIdentity>,
    /// All members and keepers. A node may be listed twice.
    pub nodes: Vec<KeeperNode>,
}

/// Reads what a store knows of its cluster.
pub(super) fn known(path: &Path, owner: &NodeName) -> Result<Known, StoreError> {
    let existing = Existing::open(path, owner)?;
    let found = Found::read(&existing.copy()?)
        .map_err(|error| StoreError::corrupt(&path.display().to_string(), error))?;
    let members = found.state.roster.begun().map(|change| &change.members[..]);
    let members = members.unwrap_or_default().iter().map(|member| KeeperNode {
        name: member.name.clone(),
        address: member.address.clone(),
    });
    Ok(Known {
        cluster: found.state.roster.cluster(),
        nodes: members.chain(found.keepers().into_values()).collect(),
    })
}

/// The content of a store.
struct Found {
    identity: StoreIdentity,
    state: State,
}

impl Found {
    /// Reads a store and applies its whole log, including entries that it does not know to be
    /// committed: they may have been.
    fn read(database: &Database) -> Result<Self, redb::Error> {
        let (identity, _) = tables::identity(database)?;
        let snapshot: Option<Snapshot> = tables::get(database, SNAPSHOT)?;
        let mut state = match &snapshot {
            Some(snapshot) => state_of(snapshot)?,
            None => State::new(&identity),
        };
        // A snapshot from a leader may be later than the log, which is then obsolete.
        let next = state.applied.map_or(0, |applied| applied.index + 1);
        let rest = (Bound::Included(next), Bound::Unbounded);
        for entry in tables::entries(database, rest, false)? {
            let expected = state.applied.map_or(0, |applied| applied.index + 1);
            let found = entry.log_id.index;
            if found != expected {
                return Err(redb::Error::Corrupted(format!(
                    "the log has entry {found} instead of entry {expected}"
                )));
            }
            state.apply(entry);
        }
        Ok(Found { identity, state })
    }

    /// Checks that the store's owner may continue alone.
    fn check(&self, me: &KeeperNode) -> Result<(), String> {
        if self.state.applied.is_none() {
            let problem = "it contains no committed entry; move it away, and start the node";
            return Err(problem.to_owned());
        }
        let (keepers, to_be) = (self.keepers(), self.to_be());
        if !to_be.contains(&self.identity.id) {
            let nodes = to_be.iter().filter_map(|id| keepers.get(id));
            let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
            let (me, names) = (&me.name, names.join(", "));
            return Err(format!(
                "according to it, {me} was not a keeper, or was being demoted; the keepers are \
                 {names}: use the store of one of them"
            ));
        }
        Ok(())
    }

    /// The cluster's identity after the recovery. A cluster without an identity gets one.
    fn next_generation(&self) -> Result<ClusterIdentity, String> {
        let roster = &self.state.roster;
        let (id, generation) = match roster.cluster() {
            Some(cluster) => (cluster.id, Some(cluster.generation)),
            None => {
                let id = ClusterId::from_bytes(rand::random());
                (id, roster.first_generation(rand::random()))
            }
        };
        let next = generation.and_then(|one| one.next(rand::random()));
        let generation = next.ok_or_else(|| {
            "its cluster has used up its generations; bootstrap a new cluster".to_owned()
        })?;
        Ok(ClusterIdentity { id, generation })
    }

    /// The current keepers by id.
    fn keepers(&self) -> BTreeMap<u64, KeeperNode> {
        let membership = self.state.members.membership.membership();
        let node = |id| Some((id, membership.get_node(&id)?.clone()));
        membership.voter_ids().filter_map(node).collect()
    }

    /// The ids of the keepers after the change that is under way. A keeper that is demoted may
    /// never learn more than that its demotion was started.
    fn to_be(&self) -> BTreeSet<u64> {
        let membership = self.state.members.membership.membership();
        let configs = membership.get_joint_config();
        configs.last().cloned().unwrap_or_default()
    }
}

/// The state of a keeper that is alone in a generation: as if it had been elected in its first
/// term, and its first entry contained everything. Keepers of other generations are not answered,
/// so terms and indices start again.
fn alone(me: &KeeperNode, id: u64, roster: &Roster) -> Result<(Snapshot, Vote), redb::Error> {
    const TERM: u64 = 1;
    let here = LogId::new(CommittedLeaderId::new(TERM, id), 1);
    let only = BTreeSet::from([id]);
    let nodes = BTreeMap::from([(id, me.clone())]);
    let membership = openraft::Membership::new(vec![only], nodes);
    let meta = SnapshotMeta {
        last_log_id: Some(here),
        last_membership: Membership::new(Some(here), membership),
        snapshot_id: here.to_string(),
    };
    let state = State {
        roster: Arc::new(roster.clone()),
        ..State::default()
    };
    let data = write_state(&state)?;
    Ok((Snapshot { meta, data }, Vote::new(TERM, id)))
}
