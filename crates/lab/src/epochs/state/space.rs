//! The actions of a search, and what is checked in each state.

use soloist_api::NodeName;

use super::{Renewal, State};
use crate::breadth_first::{Space, fingerprint};
use crate::epochs::budget::Budget;
use crate::epochs::describe;
use crate::epochs::under_way::Way;
use crate::epochs::witness::Violation;

/// What can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A client of this node requests the lock.
    Request(usize),
    /// The client inside on this node releases it.
    Release(usize),
    /// The next message on this channel arrives.
    Arrive(Way),
    /// Time advances by a step.
    Step,
    /// The node crashes for good.
    Crash(usize),
    /// Messages between the node and the keepers are lost from now on.
    Cut(usize),
    /// They arrive again.
    Heal(usize),
    /// Its timers do not fire any more.
    Stall(usize),
    /// Its next renewal, or the next answer to one, arrives at any time.
    Slow(usize, Renewal),
    /// All nodes turn to the new leader. One of them may not learn of it until the old leader does.
    Elect(Option<usize>),
    /// It reports that a message was lost.
    Suspect(usize),
    /// The first reports that it cannot reach the second.
    Miss(usize, usize),
    /// It is told to stop.
    Stop(usize),
}

impl Action {
    /// The action as a step of a text.
    pub fn step(self, names: &[NodeName]) -> String {
        let name = |node: usize| &names[node];
        match self {
            Action::Request(node) => format!("request {}", name(node)),
            Action::Release(node) => format!("release {}", name(node)),
            Action::Arrive(Way::Link { from, to }) => {
                format!("deliver {} {}", name(from), name(to))
            }
            Action::Arrive(Way::ToLeader { from, term }) => {
                format!("deliver {} {}", name(from), describe::leader(term))
            }
            Action::Arrive(Way::ToMember { term, to }) => {
                format!("deliver {} {}", describe::leader(term), name(to))
            }
            Action::Arrive(Way::Commit { term }) => format!("commit {}", describe::leader(term)),
            Action::Arrive(Way::Confirm { term }) => format!("confirm {}", describe::leader(term)),
            Action::Step => "tick".to_owned(),
            Action::Crash(node) => format!("crash {}", name(node)),
            Action::Cut(node) => format!("cut {}", name(node)),
            Action::Heal(node) => format!("heal {}", name(node)),
            Action::Stall(node) => format!("stall {}", name(node)),
            Action::Slow(node, Renewal::Asked) => format!("slow {} renewal", name(node)),
            Action::Slow(node, Renewal::Granted) => format!("slow {} grant", name(node)),
            Action::Elect(None) => "elect".to_owned(),
            Action::Elect(Some(node)) => format!("elect without {}", name(node)),
            Action::Suspect(node) => format!("suspect {}", name(node)),
            Action::Miss(node, other) => format!("miss {} {}", name(node), name(other)),
            Action::Stop(node) => format!("stop {}", name(node)),
        }
    }
}

impl State {
    /// Whether the state is quiescent: time is over and nothing is in flight. Every path passes
    /// through such a state, whatever else happens.
    fn is_at_rest(&self) -> bool {
        self.budget.steps == 0 && self.under_way.first().is_none()
    }

    fn act(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Request(node) => return self.request(node),
            Action::Release(node) => return self.release(node),
            Action::Arrive(way) => return self.deliver(way),
            Action::Step => return self.step(),
            Action::Stop(node) => return self.stop(node),
            Action::Suspect(node) => return self.suspect(node),
            Action::Elect(astray) => return self.elect_without(astray.as_slice()),
            Action::Crash(node) => self.crash(node),
            Action::Cut(node) => self.cut(node),
            Action::Heal(node) => self.heal(node),
            Action::Stall(node) => self.stall(node),
            Action::Slow(node, renewal) => self.slow(node, renewal),
            Action::Miss(node, other) => self.miss(node, other),
        }
        Ok(())
    }
}

impl Space for State {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let Budget {
            steps,
            requests,
            crashes,
            cuts,
            heals,
            stalls,
            slow,
            elections,
            suspicions,
            complaints,
            stops,
        } = self.budget;
        let alive = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_some());
        let mut actions = Vec::new();
        for node in alive {
            if requests > 0 && node < 2 && self.witness.is_idle(node) && !self.is_draining(node) {
                actions.push(Action::Request(node));
            }
            if self.witness.hold(node).is_some() {
                actions.push(Action::Release(node));
            }
            if stops > 0 && node == 0 {
                actions.push(Action::Stop(node));
            }
            if crashes > 0 {
                actions.push(Action::Crash(node));
            }
            if suspicions > 0 && node == 0 {
                actions.push(Action::Suspect(node));
            }
            if cuts > 0 && self.faults.cut.is_empty() {
                actions.push(Action::Cut(node));
            }
            if stalls > 0 && node == 0 {
                actions.push(Action::Stall(node));
            }
            if slow > 0 && self.faults.slow.is_none() && node == 0 {
                let slow = |renewal| Action::Slow(node, renewal);
                actions.extend([Renewal::Asked, Renewal::Granted].map(slow));
            }
        }
        if complaints > 0 && self.faults.missed.is_empty() {
            actions.push(Action::Miss(0, 1));
        }
        if heals > 0 {
            actions.extend(self.faults.cut.iter().map(|&node| Action::Heal(node)));
        }
        actions.extend(self.under_way.ways().map(Action::Arrive));
        if steps > 0 {
            actions.push(Action::Step);
        }
        if elections > 0 {
            actions.extend([None, Some(0), Some(1)].map(Action::Elect));
        }
        actions
    }

    fn apply(&mut self, action: Action) -> Result<(), Violation> {
        self.budget.spend(action);
        self.act(action)?;
        self.look()
    }

    /// In a quiescent state, all requests must be served without further faults.
    fn check(&self) -> Result<(), Violation> {
        match self.is_at_rest() {
            true => self.clone().completes(),
            false => Ok(()),
        }
    }

    fn fingerprint(&self) -> u128 {
        fingerprint(self)
    }
}
