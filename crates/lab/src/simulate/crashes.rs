//! Nodes that crash and restart during a run.
//!
//! A crash loses a node's state, not its messages. The node is replaced by a
//! [`recovering`](Algorithm::recovering) one, which receives what arrives. It restarts when it has
//! been down long enough and all messages that it had sent have arrived. When its peers have
//! answered, and all messages sent to it before have arrived too, it is
//! [`settled`](Algorithm::settled).
//!
//! Decisions that the papers leave open: an entry ends if its node crashes inside. A waiting node
//! that crashes loses its request but still wants to enter, and requests again when it restarts. So
//! each request ends in exactly one entry, and the wait counts from the first request.
//!
//! Nodes that may not be down together never are: such a crash is skipped. Crashes stop when half
//! of the entries were made, or when there were as many crashes as entries to be made. From then on
//! every request must be served.

use soloist_algorithms::{Algorithm, Config, NodeId, Phase};

use super::run::{Coming, Simulation};
use super::trace::TraceKind;
use super::{Crashes, Load, Random, Time};
use crate::world::Event;

/// The state of crashes and recoveries.
pub(super) struct Crashing<A: Algorithm> {
    crashes: Crashes,
    config: Config<A::Shape>,
    random: Random,
    count: u64,
    machines: Vec<Machine>,
    /// Nodes that crashed and had not recovered when last checked.
    down: Vec<NodeId>,
}

/// The crash state of one node.
#[derive(Clone, Debug, Default)]
struct Machine {
    incarnation: u32,
    /// Set from a crash until the restart: what to do then.
    off: Option<Wish>,
    /// When the last message that it sent arrives, and the last message sent to it.
    sent_until: Time,
    addressed_until: Time,
}

/// What to do for the user of a node when it restarts.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// Nothing yet.
    Nothing,
    /// Request. The demand arose at this time.
    Ask(Time),
    /// Request again, because the request was lost.
    AskAgain,
    /// Continue as after leaving.
    GoOn,
}

/// The stages of a recovery that depend on the node's environment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// All messages sent before the crash have arrived: the node starts.
    Restart,
    /// All messages sent on restarting have arrived, so every peer has answered.
    Answered,
    /// All messages sent to the node before that have arrived.
    Settled,
}

impl<A: Algorithm> Crashing<A> {
    /// The state before the first crash. All nodes are built from this config.
    pub(super) fn new(crashes: Crashes, config: &Config<A::Shape>, seed: u64) -> Self {
        Crashing {
            crashes,
            config: config.at(config.place.me),
            random: Random::new(seed, 4),
            count: 0,
            machines: vec![Machine::default(); config.place.nodes()],
            down: Vec::new(),
        }
    }

    /// Number of crashes.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The current incarnation of this node: how often it has crashed.
    pub(super) fn incarnation(&self, node: NodeId) -> u32 {
        self.machines[node.index()].incarnation
    }

    /// Records that a message is in flight until `arrives`.
    pub(super) fn note_sent(&mut self, from: NodeId, to: NodeId, arrives: Time) {
        let sent_until = &mut self.machines[from.index()].sent_until;
        *sent_until = arrives.max(*sent_until);
        let addressed_until = &mut self.machines[to.index()].addressed_until;
        *addressed_until = arrives.max(*addressed_until);
    }

    /// Returns whether the node may crash now: it is running, and may be down together with all
    /// nodes that are down.
    fn may_crash(&self, node: NodeId) -> bool {
        let shape = &self.config.place.shape;
        let mut others = self.down.iter().filter(|other| **other != node);
        self.machines[node.index()].off.is_none()
            && others.all(|&other| A::may_be_down_together(shape, node, other))
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// Schedules the next crash, unless it is time to drain.
    pub(super) fn plan_crash(&mut self) {
        let Some(crashing) = &mut self.crashing else {
            return;
        };
        if !self.meter.is_half_done() && crashing.count < self.setup.entries {
            let at = self.now + crashing.random.exponential(crashing.crashes.every);
            self.agenda
                .put(at.max(self.now + Time::TICK), Coming::Crash);
        }
    }

    /// Crashes a random node if it may. Half of the entries may have been made since this was
    /// planned.
    pub(super) fn crash(&mut self) {
        let Some(crashing) = &mut self.crashing else {
            return;
        };
        let world = &self.world;
        crashing
            .down
            .retain(|down| world.node(*down).is_recovering());
        let node = NodeId::from_index(crashing.random.below(world.len() as u64) as usize);
        if !self.meter.is_half_done() && crashing.may_crash(node) {
            self.crash_node(node);
        }
        self.plan_crash();
    }

    fn crash_node(&mut self, node: NodeId) {
        self.note(TraceKind::Crash, node);
        let Some(crashing) = &mut self.crashing else {
            return;
        };
        self.events += 1;
        self.in_vain = 0; // work is lost, but not through a fault of the algorithm
        let wish = match self.world.node(node).phase() {
            Phase::Waiting => Wish::AskAgain,
            Phase::Inside => {
                self.meter.left(self.now);
                Wish::GoOn
            }
            // Demands that arise while the node is down wait in its backlog.
            Phase::Idle if matches!(self.setup.load, Load::Poisson(_)) => Wish::GoOn,
            Phase::Idle => Wish::Nothing,
        };
        crashing.count += 1;
        let machine = &mut crashing.machines[node.index()];
        machine.incarnation += 1;
        machine.off = Some(wish);
        let up_at = self.now + Time::from_delays(crashing.crashes.down);
        let restart = Coming::Recovery(node, machine.incarnation, Stage::Restart);
        self.agenda.put(up_at.max(machine.sent_until), restart);
        let incarnation = u64::from(machine.incarnation);
        let state = A::recovering(&crashing.config.at(node), incarnation);
        self.world
            .crash(node, state.expect("recovery was checked before the run"));
        if !crashing.down.contains(&node) {
            crashing.down.push(node);
        }
    }

    /// Performs the next stage of a recovery, unless the node has crashed again.
    pub(super) fn recover(&mut self, node: NodeId, incarnation: u32, stage: Stage) {
        let Some(crashing) = &mut self.crashing else {
            return;
        };
        let machine = &mut crashing.machines[node.index()];
        if machine.incarnation != incarnation {
            return;
        }
        match stage {
            Stage::Restart => {
                let wish = machine.off.take();
                self.restart(node, incarnation, wish.unwrap_or(Wish::Nothing));
            }
            Stage::Answered => {
                // After simultaneous deliveries, which are already scheduled.
                let at = machine.addressed_until.max(self.now);
                let settled = Coming::Recovery(node, incarnation, Stage::Settled);
                self.agenda.put(at, settled);
            }
            Stage::Settled => {
                self.note(TraceKind::Settled, node);
                let result = self.world.settled(node, &mut self.out);
                self.carry_out(node, result, false);
            }
        }
    }

    fn restart(&mut self, node: NodeId, incarnation: u32, wish: Wish) {
        self.events += 1;
        self.note(TraceKind::Restart, node);
        let result = self.world.start(node, &mut self.out);
        self.carry_out(node, result, false);
        if let Some(crashing) = &self.crashing {
            let at = crashing.machines[node.index()].sent_until.max(self.now);
            let answered = Coming::Recovery(node, incarnation, Stage::Answered);
            self.agenda.put(at, answered);
        }
        match wish {
            Wish::Nothing => {}
            Wish::Ask(wanted_since) => self.request(node, wanted_since),
            Wish::AskAgain => {
                self.events += 1;
                self.note(TraceKind::Request, node);
                let result = self.world.apply(Event::Request(node), &mut self.out);
                self.carry_out(node, result, false);
            }
            Wish::GoOn => self.ask_again(node),
        }
    }

    /// If the node is down, keeps the request until it restarts. Returns whether it is down.
    pub(super) fn put_off(&mut self, node: NodeId, wanted_since: Time) -> bool {
        let Some(crashing) = &mut self.crashing else {
            return false;
        };
        match &mut crashing.machines[node.index()].off {
            None => false,
            Some(wish) => {
                debug_assert!(!matches!(wish, Wish::AskAgain), "the node requests twice");
                *wish = Wish::Ask(wanted_since);
                true
            }
        }
    }

    /// Returns whether the node crashed and has not restarted.
    pub(super) fn is_off(&self, node: NodeId) -> bool {
        let crashing = self.crashing.as_ref();
        crashing.is_some_and(|crashing| crashing.machines[node.index()].off.is_some())
    }

    /// The current incarnation of the node: how often it has crashed.
    pub(super) fn incarnation(&self, node: NodeId) -> u32 {
        let crashing = self.crashing.as_ref();
        crashing.map_or(0, |crashing| crashing.incarnation(node))
    }

    /// Returns whether every crashed node has recovered.
    pub(super) fn all_are_up(&self) -> bool {
        self.recovering().next().is_none()
    }

    /// Number of nodes still recovering at the end of a run, except those that wait, which are
    /// counted elsewhere.
    pub(super) fn never_recovered(&self) -> u64 {
        let idle = |node: &NodeId| self.world.node(*node).phase() == Phase::Idle;
        self.recovering().filter(idle).count() as u64
    }

    fn recovering(&self) -> impl Iterator<Item = NodeId> {
        let crashing = self.crashing.iter();
        let down = crashing.flat_map(|crashing| crashing.down.iter().copied());
        down.filter(|node| self.world.node(*node).is_recovering())
    }
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::raymond::Raymond;
    use soloist_algorithms::{Channels, VariantSet};

    use super::*;
    use crate::simulate::Setup;

    /// Raymond 1989, §8.8, under very frequent crashes. Several nodes that are not neighbours are
    /// down at the same time.
    #[test]
    fn neighbours_are_never_down_together() {
        let config = Config::first(15);
        let setup = Setup {
            crashes: Some("0.2:3".parse().unwrap()),
            entries: 500,
            ..Setup::new(VariantSet::default(), 15)
        };
        let mut simulation = Simulation::<Raymond>::new(&setup, &config, Channels::Fifo, None);
        let mut most_down = 0;
        while !simulation.is_over() {
            let (at, coming) = simulation.agenda.next().expect("the run continues");
            simulation.now = at;
            simulation.happen(coming);
            let down: Vec<NodeId> = simulation.recovering().collect();
            most_down = most_down.max(down.len());
            for (one, other) in down
                .iter()
                .flat_map(|one| down.iter().map(move |o| (one, o)))
            {
                assert!(!config.place.shape.is_neighbour(*one, *other));
            }
        }
        assert!(most_down > 2, "{most_down}");
    }
}
