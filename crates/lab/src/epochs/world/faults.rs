//! Faults in the world, and their repair.

use std::collections::BTreeSet;

use rand::RngExt;
use soloist_core::Term;
use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::member::Participant;
use soloist_core::epochs::roster::Roster;

use super::{Event, World, moment};
use crate::epochs::describe;
use crate::epochs::setup::{named, table};

/// A deposed leader that cannot reach the other keepers: it finds out late.
pub(super) struct Isolated {
    pub(super) term: Term,
    /// The roster when it was cut off.
    pub(super) roster: Roster,
    until: u64,
    /// The nodes that reach only this leader.
    followers: BTreeSet<usize>,
}

impl World {
    /// Starts a node that is down, as a new incarnation.
    pub fn start(&mut self, index: usize) {
        let now = self.local(index);
        let node = &mut self.nodes[index];
        if node.participant.is_some() {
            return;
        }
        node.starts += 1;
        let table = table(&self.rules, self.tuning, index, node.starts);
        let me = named(self.names[index].clone(), index, node.starts);
        node.participant = Some(Participant::new(me, table, self.lease, now));
        node.members.clear();
        node.wakes_at = None;
        self.note_node(index, "starts");
        self.wake(index, self.now);
    }

    /// Crashes a node.
    pub fn crash(&mut self, index: usize) {
        if self.nodes[index].participant.is_some() {
            self.note_node(index, "is down");
        }
        let node = &mut self.nodes[index];
        node.participant = None;
        node.backlog.clear();
        node.paused = false;
        node.clients.crash();
    }

    /// Tells a node to stop. It goes down when no promise is outstanding and the keepers have
    /// removed it.
    pub fn stop(&mut self, index: usize) {
        if !self.nodes[index].paused {
            self.note_node(index, "is told to stop");
            self.with(index, |participant, now, out| participant.drain(now, out));
        }
    }

    /// Makes the node's machine sleep, if only for a moment.
    pub fn suspend(&mut self, index: usize) {
        if !self.nodes[index].paused {
            self.note_node(index, "slept for a moment");
            self.with(index, |participant, now, out| participant.wake(now, out));
        }
    }

    /// Pauses a node: it handles events when it continues.
    pub fn pause(&mut self, index: usize) {
        self.nodes[index].paused = self.nodes[index].participant.is_some();
        if self.nodes[index].paused {
            self.note_node(index, "is paused");
        }
    }

    /// Lets a paused node continue.
    pub fn go_on(&mut self, index: usize) {
        if std::mem::take(&mut self.nodes[index].paused) {
            self.note_node(index, "resumes");
        }
        for event in std::mem::take(&mut self.nodes[index].backlog) {
            self.schedule(self.now, event);
        }
    }

    /// The keepers elect a new leader. The one before does not know it yet.
    pub fn elect(&mut self) {
        self.term = self.term.next();
        let clock = self.some_clock(self.lease.drift);
        let keys = (self.keys)(self.term);
        let leader = Leader::tuned(
            self.tuning,
            self.lease,
            clock.at(self.now),
            &self.roster,
            keys,
        );
        self.leaders.insert(self.term, (leader, clock, self.now));
        self.schedule(self.now, Event::WakeLeader(self.term));
        let term = self.term;
        self.note(|| format!("{} is elected", describe::leader(term)));
    }

    /// Cuts the leader and some nodes off from the other keepers, which elect a new leader.
    pub fn isolate_leader(&mut self) {
        let some = 0..self.nodes.len();
        let followers: BTreeSet<_> = some.filter(|_| self.rng.random_bool(0.5)).collect();
        let term = self.term;
        self.note(|| {
            let leader = describe::leader(term);
            let nodes = followers.iter().map(|node| format!("n{node}"));
            let nodes = describe::list(nodes, "nobody");
            format!("{leader} cannot reach the other keepers; with it: {nodes}")
        });
        self.isolated = Some(Isolated {
            term: self.term,
            roster: self.roster.clone(),
            until: self.now + self.rng.random_range(0..12_000_000),
            followers,
        });
        self.elect();
    }

    /// The term of the leader that a message of this node reaches. It may have been deposed.
    pub(super) fn leader_asked_by(&mut self, node: usize) -> Term {
        let isolated = self.isolated.as_ref();
        if let Some(one) = isolated.filter(|one| one.until > self.now)
            && one.followers.contains(&node)
        {
            return one.term;
        }
        let terms: Vec<_> = self.leaders.keys().copied().collect();
        match terms.len() > 1 && self.rng.random_bool(0.2) {
            true => terms[self.rng.random_range(0..terms.len())],
            false => self.term,
        }
    }

    /// A deposed leader asks the other keepers. It ends as soon as it reaches them.
    pub(super) fn depose(&mut self, term: Term, asked: Event) {
        let isolated = self.isolated.as_ref().filter(|one| one.term == term);
        match isolated
            .map(|one| one.until)
            .filter(|&until| until > self.now)
        {
            Some(until) => self.schedule(until, asked),
            None => {
                self.leaders.remove(&term);
                self.note(|| format!("{} learns that it was deposed", describe::leader(term)));
            }
        }
    }

    /// Ends all faults, and starts the nodes that are down.
    pub fn heal(&mut self) {
        self.note(|| "all faults end".to_owned());
        self.cuts.clear();
        self.isolated = None;
        for index in 0..self.nodes.len() {
            self.nodes[index].away = 0;
            self.nodes[index].to_keepers_cut = false;
            self.nodes[index].from_keepers_cut = false;
            self.go_on(index);
            self.start(index);
        }
        self.release_held_back();
    }

    fn note_node(&mut self, index: usize, what: &str) {
        let World { journal, names, .. } = self;
        journal.note(moment(self.now), || format!("{} {what}", names[index]));
    }

    /// Drops frames for members that the node no longer has a link to.
    pub(super) fn forget_who_is_gone(&mut self, index: usize) {
        let members = &self.nodes[index].members;
        self.held_back.retain(|(link, _, event)| match event {
            Event::Frame { to, .. } => link.0 != index || members.contains(to),
            _ => true,
        });
    }

    /// Sends the frames that waited for links that are no longer cut.
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
