//! Faults of a small cluster, and their repair.

use std::collections::{BTreeMap, BTreeSet};

use soloist_api::Moment;
use soloist_core::{Incarnation, Term};

use super::State;
use crate::epochs::setup::index_of;
use crate::epochs::under_way::{Parcel, Way};
use crate::epochs::witness::Violation;

/// A message that is slow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Renewal {
    /// A renewal.
    Asked,
    /// The answer to one.
    Granted,
}

/// The faults that are present.
#[derive(Clone, Hash, Default)]
pub(super) struct Faults {
    /// Nodes whose messages to and from the keepers are lost.
    pub(super) cut: BTreeSet<usize>,
    /// Nodes whose timers do not fire. They handle messages.
    pub(super) stalled: BTreeSet<usize>,
    /// Nodes that do nothing at all.
    pub(super) paused: BTreeSet<usize>,
    /// The next such message of this node arrives at any time.
    pub(super) slow: Option<(usize, Renewal)>,
    /// The first node reports that it cannot reach the second.
    pub(super) missed: BTreeSet<(usize, usize)>,
    /// Links that are cut: from and to, and since when frames wait for it.
    pub(super) links: BTreeMap<(usize, usize), Option<Moment>>,
    /// Terms of leaders that cannot reach the other keepers.
    pub(super) isolated: BTreeSet<Term>,
}

impl State {
    /// The node crashes. Its clients do not: they rely on what they were promised.
    pub fn crash(&mut self, node: usize) {
        self.nodes[node] = None;
        self.witness.crashes(node);
        self.faults.paused.remove(&node);
        self.faults.stalled.remove(&node);
        self.drop_what_leads_nowhere();
        let (now, name) = (self.now, self.fixed.plan.names[node].clone());
        self.journal.note(now, || format!("{name} is down"));
    }

    /// Starts a node that is down, as a new incarnation.
    pub fn start(&mut self, node: usize) -> Result<(), Violation> {
        self.create(node);
        let (now, name) = (self.now, self.fixed.plan.names[node].clone());
        self.journal.note(now, || format!("{name} starts"));
        self.tick_node(node)
    }

    /// The node is told to stop: it drains, and leaves when nothing is promised any more.
    pub fn stop(&mut self, node: usize) -> Result<(), Violation> {
        self.witness.may_lose(node);
        self.with(node, |participant, now, out| {
            participant.drain(now, out);
            Ok(())
        })
    }

    /// Takes nodes down that have left.
    pub fn end_left(&mut self) {
        for node in 0..self.nodes.len() {
            if self.node(node).is_some_and(|one| one.has_left()) {
                self.crash(node);
            }
        }
    }

    /// Messages between the node and the keepers are lost from now on.
    pub fn cut(&mut self, node: usize) {
        self.faults.cut.insert(node);
        self.witness.may_lose(node);
    }

    /// Messages between the node and the keepers arrive again.
    pub fn heal(&mut self, node: usize) {
        self.faults.cut.remove(&node);
    }

    /// Frames from one node to another wait until the link is healed.
    pub fn cut_link(&mut self, from: usize, to: usize) {
        let is_waiting = self
            .under_way
            .ways()
            .any(|way| way == Way::Link { from, to });
        let since = is_waiting.then_some(self.now);
        self.faults.links.insert((from, to), since);
        self.witness.may_lose(from);
        self.witness.may_lose(to);
    }

    /// Frames from one node to another arrive again.
    pub fn heal_link(&mut self, from: usize, to: usize) {
        self.faults.links.remove(&(from, to));
    }

    /// Whether frames from one node to another wait.
    pub fn is_link_cut(&self, from: usize, to: usize) -> bool {
        self.faults.links.contains_key(&(from, to))
    }

    /// The node's timers do not fire any more.
    pub fn stall(&mut self, node: usize) {
        self.faults.stalled.insert(node);
        self.witness.may_lose(node);
    }

    /// The node does nothing until it is resumed.
    pub fn pause(&mut self, node: usize) {
        self.faults.paused.insert(node);
        self.witness.may_lose(node);
    }

    /// A paused or stalled node continues.
    pub fn resume(&mut self, node: usize) -> Result<(), Violation> {
        self.faults.paused.remove(&node);
        self.faults.stalled.remove(&node);
        self.find_leader(node)?;
        self.tick_node(node)
    }

    /// Whether the node is paused.
    pub fn is_paused(&self, node: usize) -> bool {
        self.faults.paused.contains(&node)
    }

    /// The node's next renewal, or the next answer to one, arrives at any time.
    pub fn slow(&mut self, node: usize, renewal: Renewal) {
        self.faults.slow = Some((node, renewal));
        self.witness.may_lose(node);
    }

    /// The node reports that a message was lost.
    pub fn suspect(&mut self, node: usize) -> Result<(), Violation> {
        self.with(node, |participant, _, out| {
            participant.suspect(out);
            Ok(())
        })
    }

    /// From now on the node reports that it cannot reach the other one.
    pub fn miss(&mut self, node: usize, other: usize) {
        self.witness.may_lose(node);
        self.witness.may_lose(other);
        self.faults.missed.insert((node, other));
    }

    /// The leader cannot reach the other keepers, which elect a new one. These nodes stay with it.
    pub fn isolate(&mut self, followers: &[usize]) -> Result<(), Violation> {
        self.faults.isolated.insert(self.term);
        for &node in followers {
            self.witness.may_lose(node);
        }
        self.elect_without(followers)
    }

    /// All isolated leaders reach the other keepers again.
    pub fn reunite(&mut self) {
        self.faults.isolated.clear();
    }

    /// The keepers elect a new leader, and all nodes but these find it.
    pub fn elect_without(&mut self, astray: &[usize]) -> Result<(), Violation> {
        self.budget.elections = self.budget.elections.saturating_sub(1);
        self.elect();
        let mut nodes = 0..self.nodes.len();
        nodes.try_for_each(|node| match astray.contains(&node) {
            true => Ok(()),
            false => self.find_leader(node),
        })
    }

    /// Incarnations of other members that the node reports as unreachable.
    pub(super) fn unreached(&self, node: usize) -> Vec<Incarnation> {
        let limit = self.plan().lease.apart_after();
        let is_late = |other: usize| {
            let since = self.faults.links.get(&(node, other));
            let since = since.copied().flatten();
            since.is_some_and(|since| self.now.since(since) >= limit)
        };
        let members = self.members[node].iter();
        let unreached = members.filter(|member| {
            let other = index_of(member);
            self.faults.missed.contains(&(node, other)) || is_late(other)
        });
        unreached.map(|member| member.incarnation).collect()
    }

    /// Drops frames that wait for a cut link to members that the node has no link to any more.
    pub(super) fn drop_frames_to_former_members(&mut self, node: usize) {
        let members = &self.members[node];
        for (&(from, to), since) in &mut self.faults.links {
            if from != node {
                continue;
            }
            let way = Way::Link { from, to };
            self.under_way.retain(way, |parcel| match parcel {
                Parcel::Frame { to, .. } => members.contains(to),
                _ => true,
            });
            let is_waiting = self.under_way.ways().any(|other| other == way);
            *since = since.filter(|_| is_waiting);
        }
    }

    /// Whether the next message of a channel cannot arrive because of a fault, and which.
    pub fn is_held_up(&self, way: Way) -> Option<String> {
        let paused = |node: usize| {
            let is_paused = self.faults.paused.contains(&node);
            is_paused.then(|| format!("{} is paused", self.name(node)))
        };
        match way {
            Way::Link { from, to } if self.is_link_cut(from, to) => {
                let (from, to) = (self.name(from), self.name(to));
                Some(format!("the link from {from} to {to} is cut"))
            }
            Way::Link { to, .. } | Way::ToMember { to, .. } => paused(to),
            Way::Commit { term } | Way::Confirm { term } => {
                let is_isolated = self.faults.isolated.contains(&term);
                is_isolated.then(|| format!("L{term} cannot reach the other keepers"))
            }
            Way::ToLeader { .. } => None,
        }
    }
}
