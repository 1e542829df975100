//! One run of one cluster.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use soloist_algorithms::{
    Algorithm, Channels, Config, Effect, Message, NodeId, Outbox, Phase, VariantSet,
};

use super::agenda::Agenda;
use super::crashes::{Crashing, Stage};
use super::meter::{Charge, Measures, Meter};
use super::requesters::Crowd;
use super::trace::{TraceEvent, TraceKind, Tracer};
use super::window::{Doubled, Window};
use super::{Hold, Load, Random, Setup, Time};
use crate::world::{Event, Fault, World};

/// Interval of progress reports, in events.
const PROGRESS_EVERY: u64 = 1 << 16;

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The measurements.
    pub measures: Measures,
    /// The means after twice the warm-up.
    pub doubled: Option<Doubled>,
    /// Number of safety violations.
    pub violations: u64,
    /// The first violation.
    pub first_fault: Option<Fault>,
    /// Number of requests still waiting when nothing more could happen, at nodes and in their
    /// backlogs, plus nodes whose recovery never ended.
    pub unserved: u64,
    /// Number of crashes.
    pub crashes: u64,
    /// Virtual time overflowed before the run ended.
    pub time_ran_out: bool,
    /// Number of events: requests, deliveries, releases, crashes and restarts.
    pub events: u64,
    /// Duration in virtual time.
    pub ended_at: Time,
}

/// A scheduled event.
#[derive(Debug)]
pub(super) enum Coming<M> {
    /// A node requests.
    Request(NodeId),
    /// A node leaves, unless it has crashed since this incarnation of it entered.
    Release(NodeId, u32),
    /// A demand arises at a random node (open loads).
    Demand,
    /// A message arrives.
    Arrival {
        from: NodeId,
        to: NodeId,
        message: M,
        charge: Charge,
        /// Whether it was sent on requesting.
        asking: bool,
    },
    /// A random node crashes.
    Crash,
    /// This incarnation of a crashed node reaches the next stage of its recovery.
    Recovery(NodeId, u32, Stage),
}

/// A cluster under simulation.
pub(super) struct Simulation<'a, A: Algorithm> {
    pub(super) setup: &'a Setup<VariantSet>,
    pub(super) world: World<A>,
    pub(super) agenda: Agenda<Coming<A::Message>>,
    pub(super) now: Time,
    pub(super) out: Outbox<A::Message>,
    pub(super) meter: Meter,
    delays: Random,
    /// The nodes and times of requests that do not depend on what happens at a node.
    demands: Random,
    /// The nodes that request.
    crowd: Crowd,
    /// Each node's own pauses and holds, so that all algorithms see the same demand. Empty if
    /// neither is random.
    users: Vec<Random>,
    /// FIFO channels only: when the last message of each channel arrives.
    last_arrivals: Option<FxHashMap<(NodeId, NodeId), Time>>,
    /// Messages in flight that are not idle moves.
    charged_under_way: u64,
    /// Number of requests made or scheduled so far.
    planned: u64,
    /// Which part of the run is measured.
    window: Window,
    /// Open loads: the times of demands that wait at a busy node.
    backlog: Vec<VecDeque<Time>>,
    /// The state of crashes and recoveries, if nodes crash.
    pub(super) crashing: Option<Box<Crashing<A>>>,
    pub(super) events: u64,
    progress_at: u64,
    /// Deliveries in vain since the last entry or crash, while no node was inside. A move of a
    /// roaming token counts as many times as there are nodes.
    pub(super) in_vain: u64,
    violations: u64,
    first_fault: Option<Fault>,
    /// A node refused an event, so the run is meaningless from here on.
    broken: bool,
    /// Receives every event, if anyone wants them.
    tracer: Option<Tracer<'a>>,
}

impl<'a, A: Algorithm> Simulation<'a, A> {
    /// A cluster at the start of a run.
    pub(super) fn new(
        setup: &'a Setup<VariantSet>,
        config: &Config<A::Shape>,
        channels: Channels,
        tracer: Option<Tracer<'a>>,
    ) -> Self {
        let world = World::new(&config.place.shape, config.start, config.variants);
        let nodes = world.len();
        let open = matches!(setup.load, Load::Poisson(_));
        let draws = matches!(setup.load, Load::Think(_)) || setup.hold.constant().is_none();
        let inside = world.inside();
        let window = Window::new(setup.warm_up, setup.entries);
        let mut simulation = Simulation {
            setup,
            world,
            agenda: Agenda::new(),
            now: Time::ZERO,
            out: Outbox::new(),
            meter: Meter::new(nodes, inside, window, setup.distributions),
            delays: Random::new(setup.seed, 1),
            demands: Random::new(setup.seed, 2),
            crowd: Crowd::new(&setup.requesters, nodes),
            users: (0..if draws { nodes } else { 0 })
                .map(|node| Random::of_one(setup.seed, 5, node))
                .collect(),
            last_arrivals: (channels == Channels::Fifo).then(FxHashMap::default),
            charged_under_way: 0,
            planned: 0,
            window,
            backlog: vec![VecDeque::new(); if open { nodes } else { 0 }],
            crashing: setup
                .crashes
                .map(|crashes| Box::new(Crashing::new(crashes, config, setup.seed))),
            events: 0,
            progress_at: PROGRESS_EVERY,
            in_vain: 0,
            violations: 0,
            first_fault: None,
            broken: false,
            tracer,
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
            let leaves_at = hold(self.setup.hold, &mut self.users, node);
            self.agenda.put(leaves_at, Coming::Release(node, 0));
        }
        self.plan_crash();
        match self.setup.load {
            Load::Light => self.plan_light_request(),
            Load::Poisson(rate) => self.plan_demand(rate),
            Load::Heavy | Load::Burst | Load::Think(_) => {
                for node in NodeId::all(self.world.len()) {
                    if !self.crowd.includes(node) {
                        continue;
                    }
                    match (self.world.node(node).phase(), self.setup.load) {
                        // The node that starts inside requests after it has left.
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

    /// Runs until every request was served and at most a restless token is in flight, or until no
    /// request can be served any longer.
    pub(super) fn run(mut self, progress: &mut dyn FnMut(u64)) -> Outcome {
        // A restless token keeps the agenda full forever, and so may a fault: this many deliveries
        // in vain mean that no node will enter again. A full round of all nodes, or a message from
        // each node to each other, amounts to N² here.
        let nodes = self.world.len() as u64;
        let in_vain_max = nodes
            .saturating_mul(nodes)
            .saturating_add(1024)
            .saturating_mul(64);
        let mut time_ran_out = false;
        while !self.broken && !time_ran_out && !self.is_over() && self.in_vain < in_vain_max {
            let Some((at, coming)) = self.agenda.next() else {
                break;
            };
            time_ran_out = at == Time::END;
            self.now = at;
            self.happen(coming);
            if self.events >= self.progress_at {
                self.progress_at = self.events + PROGRESS_EVERY;
                progress(self.meter.entries());
            }
        }
        let behind: usize = self.backlog.iter().map(VecDeque::len).sum();
        let unserved = u64::from(self.meter.waiting()) + behind as u64 + self.never_recovered();
        if self.in_vain >= in_vain_max && self.meter.is_quiet() {
            self.violations += 1;
            self.first_fault.get_or_insert(Fault::Endless);
        }
        let (measures, doubled) = self.meter.finish::<A::Message>(self.now);
        Outcome {
            measures,
            doubled,
            violations: self.violations,
            first_fault: self.first_fault,
            unserved,
            crashes: self.crashing.map_or(0, |crashing| crashing.count()),
            time_ran_out,
            events: self.events,
            ended_at: self.now,
        }
    }

    /// Returns whether every request was served and at most a restless token is in flight.
    pub(super) fn is_over(&self) -> bool {
        self.meter.entries() == self.planned
            && !self.has_turns()
            && self.meter.is_quiet()
            && self.charged_under_way == 0
            && self.all_are_up()
    }

    pub(super) fn happen(&mut self, coming: Coming<A::Message>) {
        match coming {
            Coming::Request(node) => self.request(node, self.now),
            Coming::Release(node, incarnation) if incarnation == self.incarnation(node) => {
                self.events += 1;
                self.note(TraceKind::Leave, node);
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
                self.events += 1;
                self.charged_under_way -= u64::from(charge == Charge::Entry);
                self.meter.received(from, to, charge, asking);
                if let Some(tracer) = &mut self.tracer {
                    trace(tracer, self.now, TraceKind::Receive, to, from, &message);
                }
                let unneeded = charge == Charge::Entry && self.meter.is_quiet();
                if self.meter.is_stalled() || unneeded {
                    // A roaming token reaches one node at a time.
                    let roams = message.is_roaming();
                    self.in_vain += if roams { self.world.len() as u64 } else { 1 };
                }
                let event = Event::Deliver { from, to, message };
                let result = self.world.apply(event, &mut self.out);
                self.carry_out(to, result, false);
            }
            Coming::Demand => self.demand(),
            Coming::Crash => self.crash(),
            Coming::Recovery(node, incarnation, stage) => self.recover(node, incarnation, stage),
            // The node crashed inside.
            Coming::Release(..) => {}
        }
        if self.setup.load == Load::Light {
            self.plan_light_request();
        }
    }

    /// The node requests. The demand arose at `wanted_since`.
    pub(super) fn request(&mut self, node: NodeId, wanted_since: Time) {
        if self.put_off(node, wanted_since) {
            return;
        }
        self.events += 1;
        self.note(TraceKind::Request, node);
        let result = self.world.apply(Event::Request(node), &mut self.out);
        let sends = self.out.sends().count();
        self.meter.requested(node, self.now, wanted_since, sends);
        self.carry_out(node, result, true);
    }

    /// Sends the node's messages, schedules its release if it enters, and records faults.
    pub(super) fn carry_out(&mut self, node: NodeId, result: Result<(), Fault>, asking: bool) {
        if let Err(fault) = result {
            self.violations += 1;
            self.broken |= matches!(fault, Fault::Refused { .. });
            self.first_fault.get_or_insert(fault);
        }
        let nodes = self.world.len();
        for effect in self.out.drain() {
            match effect {
                Effect::Enter => {
                    if let Some(tracer) = &mut self.tracer {
                        trace_at(tracer, self.now, TraceKind::Enter, node);
                    }
                    self.meter.entered::<A::Message>(node, self.now);
                    self.in_vain = 0;
                    let leaves_at = self.now + hold(self.setup.hold, &mut self.users, node);
                    let crashing = self.crashing.as_ref();
                    let incarnation = crashing.map_or(0, |crashing| crashing.incarnation(node));
                    self.agenda
                        .put(leaves_at, Coming::Release(node, incarnation));
                }
                Effect::Send { to, message } => {
                    assert_ne!(node, to, "a node does not send to itself");
                    let charge = self.meter.sent(&message);
                    self.charged_under_way += u64::from(charge == Charge::Entry);
                    let delay = &self.setup.delay;
                    let mut at = self.now + delay.draw(nodes, node, to, &mut self.delays);
                    if let Some(tracer) = &mut self.tracer {
                        trace(tracer, self.now, TraceKind::Send, node, to, &message);
                    }
                    if let Some(last_arrivals) = &mut self.last_arrivals {
                        let last = last_arrivals.entry((node, to)).or_default();
                        at = at.max(*last);
                        *last = at;
                    }
                    if let Some(crashing) = &mut self.crashing {
                        crashing.note_sent(node, to, at);
                    }
                    if charge == Charge::Idle {
                        self.meter.moves_idly(self.now, at);
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

    /// Traces an event of a node that is not about a message.
    pub(super) fn note(&mut self, kind: TraceKind, node: NodeId) {
        if let Some(tracer) = &mut self.tracer {
            trace_at(tracer, self.now, kind, node);
        }
    }

    /// Returns whether more requests are to be made: until the number of entries is planned, or,
    /// after a warm-up, until the last entry of the window was made.
    fn has_turns(&self) -> bool {
        let so_far = match self.setup.warm_up {
            None => self.planned,
            Some(_) => self.meter.entries(),
        };
        so_far < self.window.last_entry()
    }

    /// Takes one of the remaining requests, if any, and returns whether there was one.
    fn take_turn(&mut self) -> bool {
        let left = self.has_turns();
        self.planned += u64::from(left);
        left
    }

    /// Plans the next request of a node that has left, according to the load.
    pub(super) fn ask_again(&mut self, node: NodeId) {
        match self.setup.load {
            Load::Light => {}
            // The node started inside.
            _ if !self.crowd.includes(node) => {}
            // After a burst only the node that started inside has yet to request.
            Load::Heavy | Load::Burst => {
                if self.take_turn() {
                    self.request(node, self.now);
                }
            }
            Load::Poisson(_) => {
                if let Some(wanted_since) = self.backlog[node.index()].pop_front() {
                    self.request(node, wanted_since);
                }
            }
            Load::Think(mean) => self.think(node, mean),
        }
    }

    fn think(&mut self, node: NodeId, mean: f64) {
        if self.take_turn() {
            let pause = self.crowd.pause(node, mean);
            let asks_at = self.now + self.users[node.index()].exponential(pause);
            self.agenda.put(asks_at, Coming::Request(node));
        }
    }

    /// If no node waits or is inside and at most a restless token is in flight, plans a request of
    /// a random node, after a pause during which a restless token may move anywhere.
    fn plan_light_request(&mut self) {
        let all_quiet = self.charged_under_way == 0
            && self.meter.is_quiet()
            && self.meter.entries() == self.planned;
        if all_quiet && self.take_turn() {
            let nodes = self.world.len();
            let node = self.crowd.pick(&mut self.demands);
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

    /// Handles a demand at a random node: the node requests immediately if idle, otherwise when it
    /// leaves or restarts.
    fn demand(&mut self) {
        let Load::Poisson(rate) = self.setup.load else {
            unreachable!("only an open load has demands")
        };
        let node = self.crowd.pick(&mut self.demands);
        if self.world.node(node).phase() == Phase::Idle && !self.is_off(node) {
            self.request(node, self.now);
        } else {
            self.backlog[node.index()].push_back(self.now);
        }
        self.plan_demand(rate);
    }
}

/// Draws how long a node stays inside.
#[inline]
fn hold(hold: Hold, users: &mut [Random], node: NodeId) -> Time {
    match hold.constant() {
        Some(hold) => hold,
        None => hold.draw(&mut users[node.index()]),
    }
}

/// Traces an event of a node that is not about a message.
// Not inlined into the simulator's innermost loop, like `trace`: few runs are traced.
#[cold]
#[inline(never)]
fn trace_at(tracer: &mut Tracer<'_>, now: Time, kind: TraceKind, node: NodeId) {
    tracer(&event(now, kind, node));
}

/// Traces an event of a node and a message.
#[cold]
#[inline(never)]
fn trace<M: Message>(
    tracer: &mut Tracer<'_>,
    now: Time,
    kind: TraceKind,
    node: NodeId,
    peer: NodeId,
    message: &M,
) {
    tracer(&TraceEvent {
        peer: Some(peer.index() as u32),
        message: Some(M::KINDS[message.kind()]),
        text: Some(message.to_string()),
        ..event(now, kind, node)
    });
}

fn event(now: Time, event: TraceKind, node: NodeId) -> TraceEvent {
    TraceEvent {
        time: now.delays(),
        event,
        node: node.index() as u32,
        peer: None,
        message: None,
        text: None,
    }
}
