//! How time passes in a small cluster: in steps, as in a search, or from deadline to deadline.

use std::time::Duration;

use soloist_api::Moment;

use super::{STEP, State};
use crate::epochs::witness::Violation;

/// More deliveries in a row than a cluster that makes progress needs.
const DELIVERIES_MAX: usize = 10_000;

impl State {
    /// Advances time by a step. Then all nodes look at their clocks, and all leaders.
    pub fn step(&mut self) -> Result<(), Violation> {
        self.now = self.now + STEP;
        self.tick_all()
    }

    /// Lets this much time pass. Everything that can arrive arrives at once, and all timers fire
    /// when they are due.
    pub fn wait(&mut self, span: Duration) -> Result<(), Violation> {
        let end = self.now + span;
        loop {
            self.deliver_all()?;
            self.note_leases();
            match self.next_deadline().filter(|at| *at <= end) {
                Some(at) => self.now = at,
                None => break,
            }
            self.tick_all()?;
            self.look()?;
        }
        self.now = end;
        self.witness.forget(end);
        Ok(())
    }

    /// Delivers everything that can arrive, until nothing is in flight that can.
    pub fn deliver_all(&mut self) -> Result<(), Violation> {
        for _ in 0..DELIVERIES_MAX {
            let next = self
                .under_way
                .ways()
                .find(|way| self.is_held_up(*way).is_none());
            let Some(way) = next else { return Ok(()) };
            self.deliver(way)?;
            self.look()?;
        }
        Err("messages never stop".to_owned())
    }

    fn is_awake(&self, node: usize) -> bool {
        !self.faults.stalled.contains(&node) && !self.faults.paused.contains(&node)
    }

    fn tick_all(&mut self) -> Result<(), Violation> {
        self.witness.forget(self.now);
        for node in 0..self.nodes.len() {
            if self.is_awake(node) {
                self.tick_node(node)?;
            }
        }
        for term in self.leaders.keys().copied().collect::<Vec<_>>() {
            self.with_leader(term, |leader, roster, now, out| {
                leader.tick(now, roster, out)
            })?;
        }
        Ok(())
    }

    pub(super) fn tick_node(&mut self, node: usize) -> Result<(), Violation> {
        let unreached = self.unreached(node);
        self.with(node, |participant, now, out| {
            participant.miss(unreached);
            participant.tick(now, out);
            Ok(())
        })
    }

    /// When a timer of a node or a leader fires next. Timers that are overdue fire soon.
    fn next_deadline(&self) -> Option<Moment> {
        let nodes = (0..self.nodes.len()).filter(|&node| self.is_awake(node));
        let nodes = nodes.filter_map(|node| self.nodes[node].as_ref()?.next_deadline());
        let leaders = self.leaders.values();
        let leaders = leaders.filter_map(|elected| elected.leader.next_deadline(self.now));
        let soon = self.now + Duration::from_millis(1);
        nodes
            .chain(leaders)
            .map(|at| if at <= self.now { soon } else { at })
            .min()
    }
}
