//! Steps and states of the model in words.

use soloist_core::keepers::{Appointment, NoAnswer};

use super::action::Action;
use super::disk::{Cluster, Content, Disk, Entry, Ids, Members, ids};
use super::setup::Setup;
use super::state::State;
use super::steps::election::{Silence, answering, successor};
use super::steps::leader::appointment;
use crate::epochs::describe::list;

/// What the step from one state to the other did, one line each.
pub fn step(setup: &Setup, before: &State, action: Action, after: &State) -> Vec<String> {
    let words = Words {
        setup,
        state: after,
    };
    let name = |machine: usize| setup.name(machine).to_string();
    match action {
        Action::Found(machine) => {
            let store = after.machines[machine].store.as_ref();
            let store = store.expect("a founder has a store");
            let (name, cluster) = (name(machine), cluster(store.cluster));
            vec![format!(
                "{name} founds {cluster} alone, as keeper {}",
                store.id
            )]
        }
        Action::Notice(machine) => {
            let me = before.machines[machine].store.as_ref();
            let shown = me.and_then(|me| successor(before, me)).map(cluster);
            let (name, shown) = (name(machine), shown.unwrap_or_default());
            vec![format!("{name} sees {shown}, and sets its store aside")]
        }
        Action::Elect { machine, asked } => words.election(before, machine, asked),
        Action::SendAll(leader) | Action::Send { leader, .. } => words.sending(before, leader),
        Action::Commit(leader) => words.commit(before, leader),
        Action::Join { machine, leader } => {
            let joined = after.machines[machine].memory.map(cluster);
            let (name, leader) = (name(machine), name(leader));
            let joined = joined.unwrap_or_default();
            vec![format!("{name} joins {joined}, which {leader} leads")]
        }
        Action::SetAside { leader, machine } => {
            let (name, leader) = (name(machine), name(leader));
            vec![format!("{name} sets its store aside, on {leader}'s word")]
        }
        Action::Appoint { leader, machine } => {
            vec![words.appointment(before, leader, machine)]
        }
        Action::Promote { leader, machine } => vec![
            words.appointment(before, leader, machine),
            words.proposal(leader),
        ],
        Action::Complete(leader)
        | Action::Admit(leader)
        | Action::Forget { leader, .. }
        | Action::Demote { leader, .. } => vec![words.proposal(leader)],
        Action::Crash(machine) => vec![format!("{} is down", name(machine))],
        Action::Start(machine) => vec![format!("{} is up again, with its old disk", name(machine))],
        Action::Reimage(machine) => {
            let may_found = match after.machines[machine].permission {
                true => ", and may found a cluster",
                false => "",
            };
            let name = name(machine);
            vec![format!(
                "{name} is up again, re-imaged: it has no data{may_found}"
            )]
        }
        Action::Recover(machine) => {
            let shown = after.machines[machine].memory.map(cluster);
            let (name, shown) = (name(machine), shown.unwrap_or_default());
            vec![format!("{name} is recovered, and begins {shown} alone")]
        }
    }
}

/// The state of each machine, one line each.
pub fn show(setup: &Setup, state: &State) -> Vec<String> {
    let words = Words { setup, state };
    let machines = 0..state.machines.len();
    machines.map(|machine| words.machine(machine)).collect()
}

fn cluster(cluster: Cluster) -> String {
    match cluster.generation {
        0 => format!("cluster {}", cluster.id),
        generation => format!("generation {generation} of cluster {}", cluster.id),
    }
}

struct Words<'a> {
    setup: &'a Setup,
    state: &'a State,
}

impl Words<'_> {
    fn name(&self, machine: usize) -> String {
        self.setup.name(machine).to_string()
    }

    /// A keeper by its node. If the node was promoted more than once, also by its id.
    fn keeper(&self, id: u8) -> String {
        let owner = self.state.owner(id);
        let name = self.name(owner);
        let same = self.state.owners.iter().filter(|other| **other == owner);
        match same.count() {
            1 => name,
            _ => format!("{name}/{id}"),
        }
    }

    fn keepers(&self, set: Ids) -> String {
        list(ids(set).map(|id| self.keeper(id)), "nobody")
    }

    fn members(&self, members: Members) -> String {
        let mut text = format!("voters {}", self.keepers(members.voters));
        if members.is_joint() {
            text += &format!(", joint with {}", self.keepers(members.old));
        }
        if members.learners != 0 {
            text += &format!(", learning {}", self.keepers(members.learners));
        }
        text
    }

    fn entry(&self, index: usize, entry: Entry) -> String {
        let content = match entry.content {
            Content::Members(members) => self.members(members),
            Content::Decision => format!("the first of term {}", entry.term),
        };
        format!("entry {index}: {content}")
    }

    fn store(&self, machine: usize) -> &Disk {
        let store = self.state.machines[machine].store.as_ref();
        store.expect("the step is for a machine with a store")
    }

    fn proposal(&self, leader: usize) -> String {
        let log = &self.store(leader).log;
        let index = log.len() - 1;
        let entry = self.entry(index, log[index]);
        format!("{} proposes {entry}", self.name(leader))
    }

    fn commit(&self, before: &State, leader: usize) -> Vec<String> {
        let committed = before.machines[leader].store.as_ref();
        let committed = committed.map_or(0, |store| store.committed);
        let entries = self.store(leader).log.iter().enumerate().skip(committed);
        let name = self.name(leader);
        entries
            .map(|(index, entry)| format!("{name} commits {}", self.entry(index, *entry)))
            .collect()
    }

    fn appointment(&self, before: &State, leader: usize, machine: usize) -> String {
        let name = self.name(machine);
        let reaction = appointment(self.setup, before, leader, machine);
        match reaction {
            Some((id, Appointment::Create)) => format!("{name} creates a store, as keeper {id}"),
            Some((id, Appointment::Replace)) => {
                format!("{name} sets its store aside and creates another one, as keeper {id}")
            }
            Some((id, _)) => format!("{name} is keeper {id} already"),
            None => format!("{name} refuses: its store may still count"),
        }
    }

    fn sending(&self, before: &State, leader: usize) -> Vec<String> {
        let name = self.name(leader);
        let machines = 0..self.state.machines.len();
        let changed = machines.filter(|machine| {
            *machine != leader
                && self.state.machines[*machine].store != before.machines[*machine].store
        });
        let changed: Vec<_> = changed.map(|machine| self.name(machine)).collect();
        let mut lines = Vec::new();
        if !changed.is_empty() {
            lines.push(format!("{name} sends its log to {}", changed.join(" ")));
        }
        if self.state.leading(leader).is_none() {
            lines.push(format!("{name} learns of a later term, and leads no more"));
        }
        lines
    }

    fn election(&self, before: &State, machine: usize, asked: Ids) -> Vec<String> {
        let name = self.name(machine);
        let me = before.machines[machine].store.as_ref();
        let me = me.expect("the step is for a machine with a store");
        let mut lines = Vec::new();
        for id in ids(asked) {
            let voter = self.keeper(id);
            let has_store = before.machines[before.owner(id)].store.is_some();
            lines.push(match answering(self.setup, before, me, id) {
                Err(silence) => {
                    let reason = self.silence(silence, &name);
                    format!("{voter} does not answer {name}: {reason}")
                }
                Ok(disk) if !me.is_up_to_date_for(&disk) => {
                    format!("{voter} does not vote for {name}: it has a later log")
                }
                Ok(_) if !has_store => {
                    format!("{voter} creates an empty store, and votes for {name}")
                }
                Ok(_) => format!("{voter} votes for {name}"),
            });
        }
        let store = self.store(machine);
        let term = store.term;
        lines.push(match store.leads {
            true => format!("{name} leads in term {term}"),
            false => format!("{name} is not elected in term {term}"),
        });
        lines
    }

    fn silence(&self, silence: Silence, from: &str) -> String {
        match silence {
            Silence::Down => "it is down".to_owned(),
            Silence::NoStore => "it has no store".to_owned(),
            Silence::OtherCluster(other) => format!("its store is of {}", cluster(other)),
            Silence::Unknown => format!("it does not know {from}"),
            Silence::Rule(NoAnswer::Former { .. }) => format!("{from} is a former keeper"),
            Silence::Rule(NoAnswer::OtherKeeper { me, wanted }) => {
                format!("it is keeper {me} now, not {wanted}")
            }
            Silence::Rule(other) => other.to_string(),
        }
    }

    fn machine(&self, machine: usize) -> String {
        let node = &self.state.machines[machine];
        let mut parts = Vec::new();
        if !node.up {
            parts.push("down".to_owned());
        }
        match &node.store {
            Some(store) => {
                parts.push(format!("keeper {} of {}", store.id, cluster(store.cluster)));
                let term = store.term;
                parts.push(match (store.leads, self.state.is_confirmed(store)) {
                    (true, true) => format!("leads in term {term}, as a majority confirms"),
                    (true, false) => format!("leads in term {term}, unconfirmed"),
                    (false, _) => format!("term {term}"),
                });
                parts.push(self.members(store.members()));
                let (committed, all) = (store.committed, store.log.len());
                parts.push(format!("{committed} of {all} entries committed"));
            }
            None => {
                parts.push("no store".to_owned());
                parts.push(match node.memory {
                    Some(memory) => format!("belongs to {}", cluster(memory)),
                    None => "belongs to no cluster".to_owned(),
                });
            }
        }
        if node.permission {
            parts.push("may found a cluster".to_owned());
        }
        format!("{}: {}", self.name(machine), parts.join(", "))
    }
}
