//! The steps of the model.

use super::disk::{Ids, ids};
use super::setup::Setup;
use super::state::State;
use super::steps::{election, leader, operator};
use crate::epochs::describe::list;

/// A step. Machines are numbered as in the setup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The first keeper bootstraps the cluster alone.
    Found(usize),
    /// A keeper sees a later generation of its cluster, and sets its store aside.
    Notice(usize),
    /// A keeper stands for election, and its requests reach these voters.
    Elect {
        /// The keeper's machine.
        machine: usize,
        /// Ids of the voters that it asks.
        asked: Ids,
    },
    /// A leader sends its log to all that lack something.
    SendAll(usize),
    /// A leader sends its log to one machine.
    Send {
        /// The leader's machine.
        leader: usize,
        /// The other machine.
        to: usize,
    },
    /// A leader commits its log.
    Commit(usize),
    /// A node joins the leader's cluster.
    Join {
        /// The node's machine.
        machine: usize,
        /// The leader's machine.
        leader: usize,
    },
    /// A leader has a node set its store aside.
    SetAside {
        /// The leader's machine.
        leader: usize,
        /// The node's machine.
        machine: usize,
    },
    /// A leader ends the joint membership of a change.
    Complete(usize),
    /// A leader makes its learners voters.
    Admit(usize),
    /// A leader removes a learner that has lost its store.
    Forget {
        /// The leader's machine.
        leader: usize,
        /// The learner's id.
        id: u8,
    },
    /// A leader appoints a node, which creates a store. The leader goes no further.
    Appoint {
        /// The leader's machine.
        leader: usize,
        /// The node's machine.
        machine: usize,
    },
    /// A leader appoints a node, and makes it a learner.
    Promote {
        /// The leader's machine.
        leader: usize,
        /// The node's machine.
        machine: usize,
    },
    /// A leader begins to remove a voter.
    Demote {
        /// The leader's machine.
        leader: usize,
        /// The voter's machine.
        machine: usize,
    },
    /// A machine goes down.
    Crash(usize),
    /// A machine returns with its disk.
    Start(usize),
    /// A machine returns re-imaged.
    Reimage(usize),
    /// `cluster recover` on this machine, with all machines down as the manual requires. The
    /// recovered machine starts first.
    Recover(usize),
}

/// Steps that need neither a fault nor an operator.
pub fn by_itself(setup: &Setup, state: &State) -> Vec<Action> {
    let mut next = Vec::new();
    for machine in 0..state.machines.len() {
        if !state.machines[machine].up {
            continue;
        }
        operator::found_actions(setup, state, machine, &mut next);
        election::actions(setup, state, machine, &mut next);
        leader::actions(setup, state, machine, &mut next);
    }
    next
}

/// All steps that are possible, including faults and those of operators.
pub fn all(setup: &Setup, state: &State) -> Vec<Action> {
    let mut next = by_itself(setup, state);
    for machine in 0..state.machines.len() {
        operator::actions(setup, state, machine, &mut next);
        operator::fault_actions(state, machine, &mut next);
    }
    operator::recover_actions(state, &mut next);
    next
}

/// Takes a step that is possible. The error is what it breaks; the step is taken all the same.
pub fn apply(setup: &Setup, state: &mut State, action: Action) -> Result<(), String> {
    match action {
        Action::Elect { machine, asked } => return election::elect(setup, state, machine, asked),
        Action::SendAll(leader) => return leader::send_all(setup, state, leader),
        Action::Send { leader, to } => return leader::send(setup, state, leader, to),
        Action::Commit(leader) => return leader::commit(setup, state, leader),
        Action::Join { machine, leader } => return leader::join(setup, state, machine, leader),
        Action::Found(machine) => operator::found(setup, state, machine),
        Action::Notice(machine) => election::notice(state, machine),
        Action::SetAside { machine, .. } => state.machines[machine].store = None,
        Action::Complete(leader) => leader::complete(state, leader),
        Action::Admit(leader) => leader::admit(state, leader),
        Action::Forget { leader, id } => leader::forget(state, leader, id),
        Action::Appoint { leader, machine } => {
            leader::appoint(setup, state, leader, machine);
        }
        Action::Promote { leader, machine } => leader::promote(setup, state, leader, machine),
        Action::Demote { leader, machine } => operator::demote(state, leader, machine),
        Action::Crash(machine) => operator::crash(state, machine),
        Action::Start(machine) => state.machines[machine].up = true,
        Action::Reimage(machine) => operator::reimage(setup, state, machine),
        Action::Recover(machine) => operator::recover(setup, state, machine),
    }
    Ok(())
}

impl Action {
    /// The step of a [text](super::text) that takes this action in this state.
    pub fn step(self, setup: &Setup, state: &State) -> String {
        let one = |word: &str, machine: usize| format!("{word} {}", setup.name(machine));
        let two = |word: &str, first: usize, second: usize| {
            format!("{word} {} {}", setup.name(first), setup.name(second))
        };
        match self {
            Action::Found(machine) => one("found", machine),
            Action::Notice(machine) => one("notice", machine),
            Action::Elect { machine, asked } => {
                let elect = one("elect", machine);
                let me = state.machines[machine].store.as_ref();
                if me.is_some_and(|me| asked == election::reached(setup, state, me)) {
                    return elect;
                }
                let asked = ids(asked).map(|id| setup.name(state.owner(id)));
                format!("{elect} asking {}", list(asked, "nobody"))
            }
            Action::SendAll(leader) => one("send", leader),
            Action::Send { leader, to } => two("send", leader, to),
            Action::Commit(leader) => one("commit", leader),
            Action::Join { machine, leader } => two("join", machine, leader),
            Action::SetAside { leader, machine } => two("set-aside", leader, machine),
            Action::Complete(leader) => one("complete", leader),
            Action::Admit(leader) => one("admit", leader),
            Action::Forget { leader, id } => format!("{} {id}", one("forget", leader)),
            Action::Appoint { leader, machine } => two("appoint", leader, machine),
            Action::Promote { leader, machine } => two("promote", leader, machine),
            Action::Demote { leader, machine } => two("demote", leader, machine),
            Action::Crash(machine) => one("crash", machine),
            Action::Start(machine) => one("start", machine),
            Action::Reimage(machine) => one("reimage", machine),
            Action::Recover(machine) => one("recover", machine),
        }
    }

    /// Returns whether the step may take a new id.
    pub(super) fn takes_id(self) -> bool {
        matches!(
            self,
            Action::Found(_) | Action::Appoint { .. } | Action::Promote { .. } | Action::Recover(_)
        )
    }
}
