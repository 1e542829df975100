//! State of the model: machines with disks, and what was committed.

use std::collections::BTreeMap;

use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_core::keepers::{EntryId, KnownKeepers, StoreClaim};

/// Parameters of a search: the cluster, a budget of events, and the rules.
#[derive(Clone, Debug)]
pub struct Setup {
    pub nodes: usize,
    /// Number of first keepers. They are the first machines.
    pub first: usize,
    /// Whether the search starts after the cluster was bootstrapped.
    pub starts_founded: bool,
    /// Whether the first machine's folder may be restored as `soloist init` made it.
    pub redeploys: bool,
    /// Whether elections may reach any subset of the voters.
    pub partitions: bool,
    /// A machine that is down at first. It may return with its disk.
    pub down: Option<usize>,
    /// Whether to check, in each state, that a majority of the keepers can make progress. This
    /// takes most of the time.
    pub checks_progress: bool,
    pub budget: Budget,
    pub rules: Rules,
}

/// How often each event may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Nodes that are appointed as keepers.
    pub promotions: u8,
    pub demotions: u8,
    pub crashes: u8,
    pub reimages: u8,
    pub recoveries: u8,
    pub elections: u8,
}

/// Faults in the rules. Each field that is true replaces a correct rule by a wrong one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// A node without a store answers Raft with an empty one.
    pub empty_store_votes: bool,
    /// A keeper answers only keepers that it knows.
    pub refuses_unknown: bool,
    /// A store is set aside because of an uncommitted membership.
    pub sets_aside_uncommitted: bool,
    /// A leader proposes its own removal, or completes a change that removes it. openraft does not
    /// let a keeper stand for election if an entry in its own log removes it, even if that entry is
    /// not committed. If such a leader crashes before others have the entry, a cluster of four
    /// keepers, one of them down, has no leader until that one returns.
    pub leaders_remove_themselves: bool,
    /// A keeper's id follows from its node's name, so a node that is promoted again has its old id.
    pub ids_from_names: bool,
    /// A keeper of an earlier generation stands for election although it sees a later one.
    pub ignores_successors: bool,
}

/// A cluster in one of its generations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cluster {
    pub id: u8,
    pub generation: u8,
}

impl Cluster {
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

pub fn ids(set: Ids) -> impl Iterator<Item = u8> {
    (0..16).filter(move |id| set & (1 << id) != 0)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// Voters after the change, voters before it while it is in progress (joint consensus), and
    /// learners.
    Members {
        voters: Ids,
        old: Ids,
        learners: Ids,
    },
    /// Any other entry. Each leader starts its term with one.
    Decision,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    pub term: u8,
    pub what: What,
}

/// A keeper's store, and whether its process leads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Disk {
    pub cluster: Cluster,
    pub id: u8,
    pub term: u8,
    pub log: Vec<Entry>,
    pub committed: usize,
    pub leads: bool,
}

impl Disk {
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
    fn first(cluster: Cluster, id: u8, voters: Ids) -> Self {
        let what = What::Members {
            voters,
            old: voters,
            learners: 0,
        };
        Disk {
            log: vec![Entry { term: 0, what }],
            committed: 1,
            ..Disk::new(cluster, id)
        }
    }

    fn last_members(log: &[Entry]) -> Option<(usize, [Ids; 2], Ids)> {
        let mut entries = log.iter().enumerate().rev();
        entries.find_map(|(index, entry)| match entry.what {
            What::Members {
                voters,
                old,
                learners,
            } => Some((index, [voters, old], learners)),
            What::Decision => None,
        })
    }

    /// Voters of each configuration that needs a majority, from the last membership in the log.
    pub fn configs(&self) -> [Ids; 2] {
        Self::last_members(&self.log).map_or([0, 0], |(_, configs, _)| configs)
    }

    pub fn learners(&self) -> Ids {
        Self::last_members(&self.log).map_or(0, |(.., learners)| learners)
    }

    /// Voters and learners of the last membership in the log.
    pub fn members(&self) -> Ids {
        self.voters() | self.learners()
    }

    /// Voters of either configuration.
    pub fn voters(&self) -> Ids {
        let [new, old] = self.configs();
        new | old
    }

    /// Returns whether these are a majority of each configuration.
    pub fn is_quorum(&self, some: Ids) -> bool {
        self.configs()
            .into_iter()
            .all(|voters| (voters & some).count_ones() * 2 > voters.count_ones())
    }

    /// The applied membership: index of its entry, and all its members.
    fn applied(&self) -> Option<(usize, Ids)> {
        let (index, [new, old], learners) = Self::last_members(&self.log[..self.committed])?;
        Some((index, new | old | learners))
    }

    /// Returns whether it may stand for election: it must be a voter in the last membership of its
    /// log.
    pub fn may_stand(&self) -> bool {
        self.voters() & (1 << self.id) != 0
    }

    /// Ids that were in an applied membership and no longer are.
    pub fn former(&self) -> Ids {
        let all = self.log[..self.committed].iter();
        let all = all.fold(0, |all, entry| match entry.what {
            What::Members {
                voters,
                old,
                learners,
            } => all | voters | old | learners,
            What::Decision => all,
        });
        all & !self.applied().map_or(0, |(_, members)| members)
    }

    fn entry_id(&self, index: usize) -> EntryId {
        EntryId {
            term: self.log[index].term.into(),
            leader: 0,
            index: index as u64,
        }
    }

    pub fn claim(&self) -> StoreClaim {
        StoreClaim {
            cluster: Some(self.cluster.identity()),
            id: self.id.into(),
            membership: self.applied().map(|(index, _)| self.entry_id(index)),
        }
    }

    /// What this leader knows about the keepers.
    pub fn known(&self, rules: Rules) -> KnownKeepers {
        let applied = self.applied();
        let effective = Self::last_members(&self.log);
        let (counted, entry) = match (rules.sets_aside_uncommitted, effective) {
            (true, Some((index, [new, _], learners))) => (new | learners, Some(index)),
            _ => {
                let all = applied.map_or(0, |(_, members)| members);
                (all | self.members(), applied.map(|(index, _)| index))
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
            (
                disk.log.last().map_or(0, |entry| entry.term),
                disk.log.len(),
            )
        };
        last(self) >= last(other)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    pub up: bool,
    /// `data/cluster`.
    pub memory: Option<Cluster>,
    pub store: Option<Disk>,
    /// `data/first-start`.
    pub permission: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub machines: Vec<Machine>,
    /// The machine of each id.
    pub owners: Vec<usize>,
    /// Ids whose stores are lost.
    pub lost: Ids,
    /// What each cluster has committed.
    pub agreed: BTreeMap<Cluster, Vec<Entry>>,
    pub clusters: u8,
    pub left: Budget,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            nodes: 4,
            first: 3,
            starts_founded: true,
            redeploys: false,
            partitions: true,
            down: None,
            checks_progress: true,
            budget: Budget::default(),
            rules: Rules::default(),
        }
    }
}

impl Setup {
    /// The initial state: before anything was started, or just after the cluster was bootstrapped.
    pub fn start(&self) -> State {
        let machine = |index| Machine {
            up: true,
            memory: None,
            store: None,
            permission: index == 0,
        };
        let mut state = State {
            machines: (0..self.nodes).map(machine).collect(),
            owners: Vec::new(),
            lost: 0,
            agreed: BTreeMap::new(),
            clusters: 0,
            left: self.budget,
        };
        if let Some(down) = self.down {
            state.machines[down].up = false;
        }
        if !self.starts_founded {
            return state;
        }
        let cluster = Cluster {
            id: 0,
            generation: 0,
        };
        let voters = (1 << self.first) - 1;
        for (index, machine) in state.machines.iter_mut().enumerate() {
            machine.memory = Some(cluster);
            machine.permission = false;
            if index < self.first {
                let store = Disk::first(cluster, index as u8, voters);
                state.agreed.insert(cluster, store.log.clone());
                machine.store = Some(store);
            }
        }
        state.owners = (0..self.first).collect();
        state.clusters = 1;
        state
    }
}

impl State {
    /// The store of this id, if its machine is up and still has that store.
    pub fn keeper(&self, id: u8) -> Option<&Disk> {
        let machine = &self.machines[*self.owners.get(usize::from(id))?];
        let store = machine.store.as_ref().filter(|store| store.id == id);
        store.filter(|_| machine.up)
    }

    pub fn disk(&mut self, machine: usize) -> &mut Disk {
        let store = self.machines[machine].store.as_mut();
        store.expect("the step is for a machine with a store")
    }

    /// Starts a cluster or a generation with this machine as the only keeper.
    pub fn begin_alone(&mut self, setup: &Setup, machine: usize, cluster: Cluster) {
        let id = self.fresh_id(setup, machine);
        let store = Disk::first(cluster, id, 1 << id);
        self.agreed.insert(cluster, store.log.clone());
        self.machines[machine].memory = Some(cluster);
        self.machines[machine].store = Some(store);
    }

    pub fn fresh_id(&mut self, setup: &Setup, machine: usize) -> u8 {
        let before = self.owners.iter().position(|owner| *owner == machine);
        if let Some(id) = before.filter(|_| setup.rules.ids_from_names) {
            return id as u8;
        }
        self.owners.push(machine);
        self.owners.len() as u8 - 1
    }

    /// Voters that are in the leader's term.
    fn following(&self, leader: &Disk) -> Ids {
        let follows = |id: &u8| {
            let keeper = self.keeper(*id);
            keeper.is_some_and(|it| it.cluster == leader.cluster && it.term == leader.term)
        };
        let voters = ids(leader.voters());
        voters.filter(follows).fold(0, |all, id| all | 1 << id)
    }

    /// Returns whether a quorum confirms that this keeper leads.
    pub fn is_confirmed(&self, leader: &Disk) -> bool {
        leader.leads && leader.is_quorum(self.following(leader))
    }
}
