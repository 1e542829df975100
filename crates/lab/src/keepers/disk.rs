//! A keeper's store in the model.

use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_core::keepers::{EntryId, FormerKeepers, KnownKeepers, StoreClaim};

use super::setup::{Setup, Variant};

/// A cluster in one of its generations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cluster {
    /// Number of the cluster.
    pub id: u8,
    /// Number of its generation.
    pub generation: u8,
}

impl Cluster {
    /// Its identity in the rules.
    pub fn identity(self) -> ClusterIdentity {
        ClusterIdentity {
            id: ClusterId::from_bytes([self.id; 16]),
            generation: Generation {
                number: self.generation,
                nonce: 0,
            },
        }
    }
}

/// Set of keepers' ids, one bit each.
pub type Ids = u16;

/// Maximum number of ids.
pub const IDS_MAX: usize = Ids::BITS as usize;

/// The ids in a set.
pub fn ids(set: Ids) -> impl Iterator<Item = u8> {
    (0..IDS_MAX as u8).filter(move |id| has(set, *id))
}

/// Returns whether a set has this id.
pub fn has(set: Ids, id: u8) -> bool {
    set & (1 << id) != 0
}

/// The set of these ids.
pub fn set_of(ids: impl Iterator<Item = u8>) -> Ids {
    ids.fold(0, |all, id| all | 1 << id)
}

/// Content of a log entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// A change of the keepers.
    Members(Members),
    /// Any other entry. Each leader starts its term with one.
    Decision,
}

/// The keepers according to a log entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Members {
    /// Voters after the change.
    pub voters: Ids,
    /// Voters before it while it is in progress (joint consensus), and those after it otherwise.
    pub old: Ids,
    /// Keepers without a vote.
    pub learners: Ids,
}

impl Members {
    /// Voters of each configuration that needs a majority.
    pub fn configs(self) -> [Ids; 2] {
        [self.voters, self.old]
    }

    /// Voters of either configuration.
    pub fn all_voters(self) -> Ids {
        self.voters | self.old
    }

    /// Voters and learners.
    pub fn all(self) -> Ids {
        self.all_voters() | self.learners
    }

    /// Returns whether a change is in progress.
    pub fn is_joint(self) -> bool {
        self.voters != self.old
    }
}

/// A log entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The term of the leader that proposed it.
    pub term: u8,
    /// Its content.
    pub content: Content,
}

/// The last membership in a log, and the index of its entry.
pub fn last_members(log: &[Entry]) -> Option<(usize, Members)> {
    let mut entries = log.iter().enumerate().rev();
    entries.find_map(|(index, entry)| match entry.content {
        Content::Members(members) => Some((index, members)),
        Content::Decision => None,
    })
}

/// A keeper's store, and whether its process leads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Disk {
    /// The cluster.
    pub cluster: Cluster,
    /// The keeper's id.
    pub id: u8,
    /// The last term in which it has voted or followed.
    pub term: u8,
    /// The log.
    pub log: Vec<Entry>,
    /// Number of entries that it knows to be committed.
    pub committed: usize,
    /// Whether it leads.
    pub leads: bool,
}

impl Disk {
    /// An empty store.
    pub fn new(cluster: Cluster, id: u8) -> Self {
        Disk {
            cluster,
            id,
            term: 0,
            log: Vec::new(),
            committed: 0,
            leads: false,
        }
    }

    /// The store that a cluster or a generation starts with. Its voters are committed.
    pub fn first(cluster: Cluster, id: u8, voters: Ids) -> Self {
        let content = Content::Members(Members {
            voters,
            old: voters,
            learners: 0,
        });
        Disk {
            log: vec![Entry { term: 0, content }],
            committed: 1,
            ..Disk::new(cluster, id)
        }
    }

    /// The last membership in the log, whether or not it is committed. Raft counts with this one.
    pub fn members(&self) -> Members {
        last_members(&self.log).map_or_else(Members::default, |(_, members)| members)
    }

    /// Returns whether these are a majority of each configuration.
    pub fn is_quorum(&self, some: Ids) -> bool {
        let configs = self.members().configs().into_iter();
        configs
            .map(|voters| (voters, voters & some))
            .all(|(voters, some)| some.count_ones() * 2 > voters.count_ones())
    }

    /// The applied membership, and the index of its entry.
    fn applied(&self) -> Option<(usize, Members)> {
        last_members(&self.log[..self.committed])
    }

    /// Returns whether it may stand for election: it must be a voter in the last membership of its
    /// log.
    pub fn may_stand(&self) -> bool {
        has(self.members().all_voters(), self.id)
    }

    /// Ids that were in an applied membership and no longer are.
    pub fn former(&self) -> FormerKeepers {
        let mut former = FormerKeepers::default();
        let mut before = 0;
        for entry in &self.log[..self.committed] {
            if let Content::Members(members) = entry.content {
                let all = members.all();
                let counts = |id: u64| has(all, id as u8);
                former.change(ids(before).map(u64::from), counts);
                before = all;
            }
        }
        former
    }

    fn entry_id(&self, index: usize) -> EntryId {
        EntryId {
            term: self.log[index].term.into(),
            leader: 0,
            index: index as u64,
        }
    }

    /// What its node tells a leader about it.
    pub fn claim(&self) -> StoreClaim {
        StoreClaim {
            cluster: Some(self.cluster.identity()),
            id: self.id.into(),
            membership: self.applied().map(|(index, _)| self.entry_id(index)),
        }
    }

    /// What this leader knows about the keepers.
    pub fn known(&self, setup: &Setup) -> KnownKeepers {
        let applied = self.applied();
        let effective = last_members(&self.log);
        let (counted, entry) = match effective {
            Some((index, members)) if setup.has(Variant::SetAsideUncommitted) => {
                (members.voters | members.learners, Some(index))
            }
            _ => {
                let all = applied.map_or(0, |(_, members)| members.all());
                (all | self.members().all(), applied.map(|(index, _)| index))
            }
        };
        KnownKeepers {
            cluster: self.cluster.identity(),
            ids: ids(counted).map(u64::from).collect(),
            membership: entry.map(|index| self.entry_id(index)),
        }
    }

    /// Returns whether its log is at least as up to date as another one.
    pub fn is_up_to_date_for(&self, other: &Disk) -> bool {
        let last = |disk: &Disk| {
            let term = disk.log.last().map_or(0, |entry| entry.term);
            (term, disk.log.len())
        };
        last(self) >= last(other)
    }
}
