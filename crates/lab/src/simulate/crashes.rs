//! Nodes that crash and come back, in a run.
//!
//! A crash loses a node's state, not its messages. The node comes back as
//! [`recovering`](Algorithm::recovering) and takes in what arrives. It restarts when it was down long
//! enough and all that it had sent has arrived. When its peers have answered and what was sent
//! before has arrived too, it is [`settled`](Algorithm::settled).
//!
//! What the papers leave open: an entry ends when its node crashes inside. Who waits at a node that
//! crashes has lost the request but still wants in, and asks again when the node restarts; so each
//! request that is made ends in one entry, and the wait counts from the first asking.
//!
//! Nodes that may not be down together never are: such a crash does not happen. Crashes stop when half
//! of the entries were made, or when there were as many crashes as there are to be entries: from then
//! on everybody must be served.

use soloist_algorithms::{Algorithm, Config, NodeId, Phase};

use super::run::{Coming, Simulation};
use super::{Crashes, Load, Random, Time};
use crate::world::Event;

/// What is known of nodes that crash.
pub struct Crashing<A: Algorithm> {
    crashes: Crashes,
    config: Config<A::Shape>,
    random: Random,
    count: u64,
    machines: Vec<Machine>,
    /// Nodes that crashed and had not recovered when last looked at.
    down: Vec<NodeId>,
}

/// What a node runs on.
#[derive(Clone, Debug, Default)]
struct Machine {
    incarnation: u32,
    /// From a crash to the restart: what is to be done then.
    off: Option<Wish>,
    /// When the last message arrives that it sent, and the last that was sent to it.
    sent_until: Time,
    addressed_until: Time,
}

/// What is to be done for the user of a node when it restarts.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// Nothing yet.
    Nothing,
    /// To ask, for somebody who has wanted in since then.
    Ask(Time),
    /// To ask again: the request was lost.
    AskAgain,
    /// To go on as after leaving.
    GoOn,
}

/// The steps of a recovery that the world around a node has to tell it of.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// What it sent before the crash has arrived: it starts.
    Restart,
    /// What it sent on restarting has arrived, and so every peer has answered.
    Answered,
    /// What was sent to it before that has arrived.
    Settled,
}

impl<A: Algorithm> Crashing<A> {
    /// Nobody has crashed yet. All nodes are built from this config.
    pub fn new(crashes: Crashes, config: &Config<A::Shape>, seed: u64) -> Self {
        Crashing {
            crashes,
            config: config.at(config.place.me),
            random: Random::new(seed, 4),
            count: 0,
            machines: vec![Machine::default(); config.place.nodes()],
            down: Vec::new(),
        }
    }

    /// How many crashes there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How often this node came back.
    pub fn incarnation(&self, node: NodeId) -> u32 {
        self.machines[node.index()].incarnation
    }

    /// A message is under way until then.
    pub fn note_sent(&mut self, from: NodeId, to: NodeId, arrives: Time) {
        let sent_until = &mut self.machines[from.index()].sent_until;
        *sent_until = arrives.max(*sent_until);
        let addressed_until = &mut self.machines[to.index()].addressed_until;
        *addressed_until = arrives.max(*addressed_until);
    }

    /// Whether the node may crash now: it runs, and all who are down may be so together with it.
    fn may_crash(&self, node: NodeId) -> bool {
        let shape = &self.config.place.shape;
        let mut others = self.down.iter().filter(|other| **other != node);
        self.machines[node.index()].off.is_none()
            && others.all(|&other| A::may_be_down_together(shape, node, other))
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// Puts the next crash on the agenda, unless it is time to let everything drain.
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

    /// A random node crashes if it may. Half of the entries may have been made since it was planned.
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
        let Some(crashing) = &mut self.crashing else {
            return;
        };
        self.events += 1;
        self.in_vain = 0; // what was done is lost through no fault of the algorithm
        let wish = match self.world.node(node).phase() {
            Phase::Waiting => Wish::AskAgain,
            Phase::Inside => {
                self.meter.left(self.now);
                Wish::GoOn
            }
            // Who comes meanwhile stands behind the node.
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
        self.world.crash(
            node,
            state.expect("looked for recovery before the run began"),
        );
        if !crashing.down.contains(&node) {
            crashing.down.push(node);
        }
    }

    /// The next step of a recovery, unless the node has crashed again.
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
                // After the arrivals of the same moment, which are on the agenda already.
                let at = machine.addressed_until.max(self.now);
                let settled = Coming::Recovery(node, incarnation, Stage::Settled);
                self.agenda.put(at, settled);
            }
            Stage::Settled => {
                let result = self.world.settled(node, &mut self.out);
                self.carry_out(node, result, false);
            }
        }
    }

    fn restart(&mut self, node: NodeId, incarnation: u32, wish: Wish) {
        self.events += 1;
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
                let result = self.world.apply(Event::Request(node), &mut self.out);
                self.carry_out(node, result, false);
            }
            Wish::GoOn => self.ask_again(node),
        }
    }

    /// Keeps a request for the restart if the node is down now; says whether it is.
    pub(super) fn put_off(&mut self, node: NodeId, wanted_since: Time) -> bool {
        let Some(crashing) = &mut self.crashing else {
            return false;
        };
        match &mut crashing.machines[node.index()].off {
            None => false,
            Some(wish) => {
                debug_assert!(!matches!(wish, Wish::AskAgain), "it asks twice");
                *wish = Wish::Ask(wanted_since);
                true
            }
        }
    }

    /// Whether the node crashed and has not restarted.
    pub(super) fn is_off(&self, node: NodeId) -> bool {
        let crashing = self.crashing.as_ref();
        crashing.is_some_and(|crashing| crashing.machines[node.index()].off.is_some())
    }

    /// How often the node came back.
    pub(super) fn incarnation(&self, node: NodeId) -> u32 {
        let crashing = self.crashing.as_ref();
        crashing.map_or(0, |crashing| crashing.incarnation(node))
    }

    /// Whether every node that crashed has recovered.
    pub(super) fn all_are_up(&self) -> bool {
        self.recovering().next().is_none()
    }

    /// At the end of a run: nodes still in recovery, but those that wait, which are counted as such.
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
    use soloist_algorithms::{Channels, Choice};

    use super::*;
    use crate::simulate::Setup;

    /// Raymond 1989, §8.8, in a hail of crashes; and several nodes that are no neighbours are down together.
    #[test]
    fn neighbours_are_never_down_together() {
        let config = Config::first(15);
        let setup = Setup {
            crashes: Some("0.2:3".parse().unwrap()),
            entries: 500,
            ..Setup::new(Choice::parse("raymond", "").unwrap(), 15)
        };
        let mut simulation = Simulation::<Raymond>::new(&setup, &config, Channels::Fifo);
        let mut most_down = 0;
        while !simulation.is_over() {
            let (at, coming) = simulation.agenda.next().expect("it goes on");
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
