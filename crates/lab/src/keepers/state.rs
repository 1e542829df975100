//! State of the model: machines with disks, and what was committed.

use std::collections::BTreeMap;

use super::disk::{Cluster, Disk, Entry, IDS_MAX, Ids, ids, set_of};
use super::setup::{Budget, Setup, Variant};

/// A machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    /// Whether it runs.
    pub up: bool,
    /// `data/cluster`.
    pub memory: Option<Cluster>,
    /// Its keeper's store.
    pub store: Option<Disk>,
    /// `data/first-start`: whether it may found a cluster.
    pub permission: bool,
}

/// All machines, and what they have agreed on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The machines.
    pub machines: Vec<Machine>,
    /// The machine of each id.
    pub owners: Vec<usize>,
    /// Ids whose stores are lost.
    pub lost: Ids,
    /// What each cluster has committed.
    pub agreed: BTreeMap<Cluster, Vec<Entry>>,
    /// Number of clusters that were founded.
    pub clusters: u8,
    /// What may still happen.
    pub left: Budget,
}

impl State {
    /// The initial state: before anything was started, or just after the cluster was bootstrapped.
    pub fn new(setup: &Setup) -> Self {
        let machine = |index| Machine {
            up: !setup.down.contains(&index),
            memory: None,
            store: None,
            permission: index == 0,
        };
        let mut state = State {
            machines: (0..setup.names.len()).map(machine).collect(),
            owners: Vec::new(),
            lost: 0,
            agreed: BTreeMap::new(),
            clusters: 0,
            left: setup.budget,
        };
        if setup.starts_founded {
            state.bootstrap(setup.first);
        }
        state
    }

    fn bootstrap(&mut self, first: usize) {
        let cluster = Cluster {
            id: 0,
            generation: 0,
        };
        let voters = (1 << first) - 1;
        for (index, machine) in self.machines.iter_mut().enumerate() {
            machine.memory = Some(cluster);
            machine.permission = false;
            if index < first {
                let store = Disk::first(cluster, index as u8, voters);
                self.agreed.insert(cluster, store.log.clone());
                machine.store = Some(store);
            }
        }
        self.owners = (0..first).collect();
        self.clusters = 1;
    }

    /// The machine of an id.
    pub fn owner(&self, id: u8) -> usize {
        self.owners[usize::from(id)]
    }

    /// The store of this id, if its machine is up and still has that store.
    pub fn keeper(&self, id: u8) -> Option<&Disk> {
        let machine = &self.machines[*self.owners.get(usize::from(id))?];
        let store = machine.store.as_ref().filter(|store| store.id == id);
        store.filter(|_| machine.up)
    }

    /// The store of a machine that leads.
    pub fn leading(&self, machine: usize) -> Option<&Disk> {
        let machine = &self.machines[machine];
        let store = machine.store.as_ref().filter(|store| store.leads);
        store.filter(|_| machine.up)
    }

    /// What a cluster has committed.
    pub fn agreed(&self, cluster: Cluster) -> &[Entry] {
        self.agreed.get(&cluster).map_or(&[], |agreed| agreed)
    }

    /// The store of a leader, for a step that only a leader takes.
    pub(super) fn leader(&self, machine: usize) -> &Disk {
        self.leading(machine).expect("the step is for a leader")
    }

    pub(super) fn disk_mut(&mut self, machine: usize) -> &mut Disk {
        let store = self.machines[machine].store.as_mut();
        store.expect("the step is for a machine with a store")
    }

    /// Starts a cluster or a generation with this machine as the only keeper.
    pub(super) fn begin_alone(&mut self, setup: &Setup, machine: usize, cluster: Cluster) {
        let id = self.take_id(setup, machine);
        let store = Disk::first(cluster, id, 1 << id);
        self.agreed.insert(cluster, store.log.clone());
        self.machines[machine].memory = Some(cluster);
        self.machines[machine].store = Some(store);
    }

    /// The id of this machine's next keeper.
    pub(super) fn next_id(&self, setup: &Setup, machine: usize) -> u8 {
        let mut before = self.owners.iter();
        let before = before.position(|owner| *owner == machine);
        let same = before.filter(|_| setup.has(Variant::IdsFromNames));
        same.unwrap_or(self.owners.len()) as u8
    }

    /// Takes the id of this machine's next keeper.
    pub(super) fn take_id(&mut self, setup: &Setup, machine: usize) -> u8 {
        let id = self.next_id(setup, machine);
        if usize::from(id) == self.owners.len() {
            assert!(self.owners.len() < IDS_MAX, "there are enough ids");
            self.owners.push(machine);
        }
        id
    }

    /// Voters that are in the leader's term.
    fn following(&self, leader: &Disk) -> Ids {
        let follows = |id: &u8| {
            let keeper = self.keeper(*id);
            keeper.is_some_and(|it| it.cluster == leader.cluster && it.term == leader.term)
        };
        set_of(ids(leader.members().all_voters()).filter(follows))
    }

    /// Returns whether a quorum confirms that this keeper leads.
    pub fn is_confirmed(&self, leader: &Disk) -> bool {
        leader.leads && leader.is_quorum(self.following(leader))
    }
}
