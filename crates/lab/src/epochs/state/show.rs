//! What a reader is told about a small cluster.

use soloist_core::epochs::member::MemberState;

use super::{State, lock};
use crate::epochs::describe::{fence, leader, list};
use crate::epochs::journal::Journal;

impl State {
    /// Notes from now on what happens. Times are counted from here.
    pub fn record(&mut self) {
        self.journal = Journal::since(self.now);
        self.note_leases();
        self.journal.take();
    }

    /// Removes and returns the lines about what happened.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.journal.take()
    }

    /// Adds a line.
    pub fn note(&mut self, line: &str) {
        self.journal.note(self.now, || line.to_owned());
    }

    /// Notes which leases were renewed or lost.
    pub fn note_leases(&mut self) {
        if self.journal.is_on() {
            for (node, name) in self.nodes.iter().zip(&self.fixed.plan.names) {
                let until = node.as_ref().and_then(|node| node.valid_until());
                self.journal.note_lease(self.now, name, until);
            }
        }
    }

    /// Notes the state of all nodes and leaders.
    pub fn show(&mut self) {
        let (roster, time) = (&self.roster, |at| self.journal.time(at));
        let mut lines = Vec::new();
        if let Some(change) = roster.begun() {
            let members = list(change.members.iter().map(|member| &member.name), "nobody");
            let stage = match roster.is_changing() {
                true => "begun",
                false => "installed",
            };
            lines.push(format!("epoch {} of {members} is {stage}", change.epoch));
        }
        for node in 0..self.nodes.len() {
            lines.push(format!("{}: {}", self.name(node), self.describe(node)));
        }
        for term in self.terms() {
            let known = self.leader(term).expect("the member is listed");
            let leases = known.leases();
            let leases = leases.map(|(member, until, is_leaving)| {
                let leaving = if is_leaving { " (leaving)" } else { "" };
                format!("{} until {}{leaving}", member.name, time(until))
            });
            let leases: Vec<_> = leases.collect();
            let leases = match leases.is_empty() {
                true => "not a member".to_owned(),
                false => leases.join(", "),
            };
            lines.push(format!("{}: waits for {leases}", leader(term)));
        }
        for line in lines {
            self.note(&line);
        }
    }

    fn describe(&self, node: usize) -> String {
        let Some(participant) = self.node(node) else {
            return "down".to_owned();
        };
        let mut parts = vec![match participant.member_state() {
            MemberState::Member(epoch) => format!("member of epoch {epoch}"),
            MemberState::Changing(epoch) => format!("frozen, epoch {epoch} begins"),
            MemberState::Outside => "not a member".to_owned(),
        }];
        if let Some(until) = participant.valid_until() {
            parts.push(format!("lease until {}", self.journal.time(until)));
        }
        if self.is_paused(node) {
            parts.push("paused".to_owned());
        }
        if participant.is_draining() {
            parts.push("stopping".to_owned());
        }
        if self.witness.waits(node) {
            parts.push("waits".to_owned());
        }
        let lock = participant.table().view(self.now, &lock());
        if let Some(holder) = lock.and_then(|lock| lock.holder) {
            parts.push(format!("inside with fence {}", fence(holder.fence)));
        }
        parts.join(", ")
    }
}
