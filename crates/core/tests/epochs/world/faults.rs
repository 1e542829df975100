//! What goes wrong in the world, and right again.

use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::member::Participant;

use super::{Event, World};
use crate::setup::{member, table};

impl World {
    pub fn start(&mut self, index: usize) {
        let now = self.local(index);
        let node = &mut self.nodes[index];
        if node.participant.is_some() {
            return;
        }
        node.lives += 1;
        let table = table(&self.rules, index, node.lives);
        let me = member(index, node.lives);
        node.participant = Some(Participant::new(me, table, self.lease, now));
        node.members.clear();
        node.wakes_at = None;
        self.wake(index, self.now);
    }

    pub fn crash(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.participant = None;
        node.backlog.clear();
        node.paused = false;
        node.clients.crash();
    }

    /// Is told to stop. It goes down when no promise runs any more and the keepers have let it go.
    pub fn stop(&mut self, index: usize) {
        if !self.nodes[index].paused {
            self.with(index, |participant, now, out| participant.drain(now, out));
        }
    }

    /// Its machine slept, if only for a moment.
    pub fn suspend(&mut self, index: usize) {
        if !self.nodes[index].paused {
            self.with(index, |participant, now, out| participant.wake(now, out));
        }
    }

    pub fn pause(&mut self, index: usize) {
        self.nodes[index].paused = self.nodes[index].participant.is_some();
    }

    pub fn go_on(&mut self, index: usize) {
        self.nodes[index].paused = false;
        for event in std::mem::take(&mut self.nodes[index].backlog) {
            self.schedule(self.now, event);
        }
    }

    pub fn elect(&mut self) {
        self.term += 1;
        let clock = self.some_clock(self.lease.drift);
        let leader = Leader::elected(self.lease, clock.at(self.now), &self.roster);
        self.leaders.insert(self.term, (leader, clock, self.now));
        self.schedule(self.now, Event::WakeLeader(self.term));
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
        for index in 0..self.nodes.len() {
            self.nodes[index].to_keepers_cut = false;
            self.nodes[index].from_keepers_cut = false;
            self.go_on(index);
            self.start(index);
        }
        self.release_held_back();
    }

    /// What waits for somebody that a node has no link to any more is dropped.
    pub(super) fn forget_who_is_gone(&mut self, index: usize) {
        let members = &self.nodes[index].members;
        self.held_back.retain(|(link, _, event)| match event {
            Event::Frame { to, .. } => link.0 != index || members.contains(to),
            _ => true,
        });
    }

    pub fn release_held_back(&mut self) {
        let cuts = self.cuts.clone();
        let held_back = std::mem::take(&mut self.held_back);
        for (link, since, event) in held_back {
            match cuts.contains(&link) {
                true => self.held_back.push((link, since, event)),
                false => self.schedule_frame(link, event),
            }
        }
    }
}
