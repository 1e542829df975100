//! One run of one cluster.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use soloist_algorithms::{Algorithm, Channels, Effect, NodeId, Outbox, Phase};

use super::agenda::Agenda;
use super::meter::{Charge, Measures, Meter};
use super::{Load, Random, Setup, Time};
use crate::world::{Event, Fault, World};

/// How often a caller hears of progress, in events.
const PROGRESS_EVERY: u64 = 1 << 16;

/// What comes of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured.
    pub measures: Measures,
    /// How often something happened that must never happen.
    pub violations: u64,
    /// The first such thing.
    pub first_fault: Option<Fault>,
    /// Who still waited when nothing could happen any more.
    pub unserved: u64,
    /// Requests, arrivals of messages and releases.
    pub events: u64,
    /// How long it took in virtual time.
    pub ended_at: Time,
}

/// Things to come.
#[derive(Debug)]
enum Coming<M> {
    /// A node asks.
    Request(NodeId),
    /// A node leaves.
    Release(NodeId),
    /// Somebody somewhere wants in (open loads).
    Demand,
    /// A message arrives.
    Arrival {
        from: NodeId,
        to: NodeId,
        message: M,
        charge: Charge,
        /// Whether it was sent on asking.
        asking: bool,
    },
}

/// A cluster under simulation.
pub struct Simulation<'a, A: Algorithm> {
    setup: &'a Setup,
    world: World<A>,
    agenda: Agenda<Coming<A::Message>>,
    now: Time,
    out: Outbox<A::Message>,
    meter: Meter,
    delays: Random,
    demands: Random,
    /// Where order is kept: when the last message of a channel arrives.
    last_arrivals: Option<FxHashMap<(NodeId, NodeId), Time>>,
    /// Messages under way that are not idle moves.
    charged_under_way: u64,
    /// How many requests were made or are on the agenda, of those to be made.
    planned: u64,
    /// Open loads: demands that came to a node while it was busy.
    backlog: Vec<u32>,
    events: u64,
    events_since_entry: u64,
    violations: u64,
    first_fault: Option<Fault>,
    /// A node refused something: from here on nothing means anything.
    broken: bool,
}

impl<'a, A: Algorithm> Simulation<'a, A> {
    /// A cluster at the beginning of a run.
    pub fn new(setup: &'a Setup, shape: &Arc<A::Shape>, channels: Channels) -> Self {
        let world = World::new(shape, setup.start, setup.choice.variants);
        let nodes = world.len();
        let open = matches!(setup.load, Load::Poisson(_));
        let inside = world.inside();
        let mut simulation = Simulation {
            setup,
            world,
            agenda: Agenda::new(),
            now: Time::ZERO,
            out: Outbox::new(),
            meter: Meter::new(nodes, inside, setup.entries),
            delays: Random::new(setup.seed, 1),
            demands: Random::new(setup.seed, 2),
            last_arrivals: (channels == Channels::Fifo).then(FxHashMap::default),
            charged_under_way: 0,
            planned: 0,
            backlog: vec![0; if open { nodes } else { 0 }],
            events: 0,
            events_since_entry: 0,
            violations: 0,
            first_fault: None,
            broken: false,
        };
        simulation.begin();
        simulation
    }

    fn begin(&mut self) {
        for node in NodeId::all(self.world.len()) {
            let result = self.world.start(node, &mut self.out);
            self.carry_out(node, result, false);
        }
        if let Some(node) = self.setup.start.inside {
            self.agenda
                .put(self.setup.hold.span(), Coming::Release(node));
        }
        match self.setup.load {
            Load::Light => self.plan_light_request(),
            Load::Poisson(rate) => self.plan_demand(rate),
            Load::Heavy | Load::Burst | Load::Think(_) => {
                for node in NodeId::all(self.world.len()) {
                    match (self.world.node(node).phase(), self.setup.load) {
                        // The one that starts inside asks after it has left.
                        (Phase::Waiting | Phase::Inside, _) => {}
                        (Phase::Idle, Load::Think(mean)) => self.think(node, mean),
                        (Phase::Idle, _) => {
                            if self.take_turn() {
                                self.agenda.put(Time::ZERO, Coming::Request(node));
                            }
                        }
                    }
                }
            }
        }
    }

    /// Runs until everybody was served and all is quiet, or until nobody can be served any more.
    pub fn run(mut self, progress: &mut dyn FnMut(u64)) -> Outcome {
        // A restless token keeps the agenda full for ever, and so may a fault: so long without an
        // entry while somebody waits means that nobody will enter any more.
        let nodes = self.world.len() as u64;
        let patience = nodes
            .saturating_mul(nodes)
            .saturating_add(1024)
            .saturating_mul(64);
        while !self.broken && !self.is_over() && self.events_since_entry < patience {
            let Some((at, coming)) = self.agenda.next() else {
                break;
            };
            self.now = at;
            self.happen(coming);
            if self.events.is_multiple_of(PROGRESS_EVERY) {
                progress(self.meter.entries());
            }
        }
        let unserved = u64::from(self.meter.waiting());
        Outcome {
            measures: self.meter.measures::<A::Message>(self.now),
            violations: self.violations,
            first_fault: self.first_fault,
            unserved,
            events: self.events,
            ended_at: self.now,
        }
    }

    /// Everybody was served, and what is under way is at most a restless token.
    fn is_over(&self) -> bool {
        self.meter.entries() == self.setup.entries
            && self.meter.is_quiet()
            && self.charged_under_way == 0
    }

    fn happen(&mut self, coming: Coming<A::Message>) {
        self.events += 1;
        self.events_since_entry += 1;
        match coming {
            Coming::Request(node) => self.request(node),
            Coming::Release(node) => {
                let result = self.world.apply(Event::Release(node), &mut self.out);
                self.meter.left(self.now);
                self.carry_out(node, result, false);
                self.ask_again(node);
            }
            Coming::Arrival {
                from,
                to,
                message,
                charge,
                asking,
            } => {
                self.charged_under_way -= u64::from(charge == Charge::Entry);
                self.meter.received(from, to, asking);
                let event = Event::Deliver { from, to, message };
                let result = self.world.apply(event, &mut self.out);
                self.carry_out(to, result, false);
            }
            Coming::Demand => self.demand(),
        }
        if self.setup.load == Load::Light {
            self.plan_light_request();
        }
    }

    fn request(&mut self, node: NodeId) {
        let result = self.world.apply(Event::Request(node), &mut self.out);
        let sends = self.out.sends().count();
        self.meter.requested(node, self.now, sends);
        self.carry_out(node, result, true);
    }

    /// Sends what the node sends, lets it enter, and notes what must not happen.
    fn carry_out(&mut self, node: NodeId, result: Result<(), Fault>, asking: bool) {
        if let Err(fault) = result {
            self.violations += 1;
            self.broken |= matches!(fault, Fault::Refused { .. });
            self.first_fault.get_or_insert(fault);
        }
        for effect in self.out.drain() {
            match effect {
                Effect::Enter => {
                    self.meter.entered(node, self.now);
                    self.events_since_entry = 0;
                    let leaves_at = self.now + self.setup.hold.span();
                    self.agenda.put(leaves_at, Coming::Release(node));
                }
                Effect::Send { to, message } => {
                    assert_ne!(node, to, "a node does not send to itself");
                    let charge = self.meter.sent(&message);
                    self.charged_under_way += u64::from(charge == Charge::Entry);
                    let mut at = self.now + self.setup.delay.draw(&mut self.delays);
                    if let Some(last_arrivals) = &mut self.last_arrivals {
                        let last = last_arrivals.entry((node, to)).or_default();
                        at = at.max(*last);
                        *last = at;
                    }
                    let from = node;
                    let arrival = Coming::Arrival {
                        from,
                        to,
                        message,
                        charge,
                        asking,
                    };
                    self.agenda.put(at, arrival);
                }
            }
        }
    }

    /// Takes one of the requests that are still to be made, if there is one.
    fn take_turn(&mut self) -> bool {
        let left = self.planned < self.setup.entries;
        self.planned += u64::from(left);
        left
    }

    /// The node has left: does it ask again, and when?
    fn ask_again(&mut self, node: NodeId) {
        let at_once = match self.setup.load {
            Load::Light => false,
            // After a burst only the node that started inside is left to ask.
            Load::Heavy | Load::Burst => self.take_turn(),
            Load::Poisson(_) => {
                let backlog = &mut self.backlog[node.index()];
                let any = *backlog > 0;
                *backlog -= u32::from(any);
                any
            }
            Load::Think(mean) => {
                self.think(node, mean);
                false
            }
        };
        if at_once {
            self.events += 1;
            self.request(node);
        }
    }

    fn think(&mut self, node: NodeId, mean: f64) {
        if self.take_turn() {
            let asks_at = self.now + self.demands.exponential(mean);
            self.agenda.put(asks_at, Coming::Request(node));
        }
    }

    /// When all is quiet: after a pause, so that a restless token may be anywhere, a random node
    /// asks.
    fn plan_light_request(&mut self) {
        let all_quiet = self.charged_under_way == 0
            && self.meter.is_quiet()
            && self.meter.entries() == self.planned;
        if all_quiet && self.take_turn() {
            let nodes = self.world.len() as u64;
            let node = NodeId::from_index(self.demands.below(nodes) as usize);
            let asks_at = self.now + self.demands.exponential(nodes as f64);
            self.agenda.put(asks_at, Coming::Request(node));
        }
    }

    fn plan_demand(&mut self, rate: f64) {
        if self.take_turn() {
            let comes_at = self.now + self.demands.exponential(1.0 / rate);
            self.agenda.put(comes_at, Coming::Demand);
        }
    }

    /// Somebody somewhere wants in: at once if that node is idle, else when it leaves.
    fn demand(&mut self) {
        let Load::Poisson(rate) = self.setup.load else {
            unreachable!("only an open load has demands")
        };
        let node = NodeId::from_index(self.demands.below(self.world.len() as u64) as usize);
        if self.world.node(node).phase() == Phase::Idle {
            self.request(node);
        } else {
            self.backlog[node.index()] += 1;
        }
        self.plan_demand(rate);
    }
}
