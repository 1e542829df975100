//! The cluster on which the steps of a scenario are executed, and who watches it.

use std::collections::VecDeque;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Channels, Config, Effect, Message, NodeId, Outbox, Phase, Place,
};

use super::{Head, ScenarioError};
use crate::network::Envelope;
use crate::world::{self, Event, Fault, World};

/// The cluster on which the steps are executed.
pub(crate) struct Stage<'a, A: Algorithm, W> {
    head: &'a Head,
    shape: Arc<A::Shape>,
    world: World<A>,
    /// Messages in flight, in the order sent.
    under_way: VecDeque<Posted<A::Message>>,
    /// Number of messages sent so far.
    sent: usize,
    out: Outbox<A::Message>,
    incarnations: u64,
    pub witness: W,
}

/// A message in flight, and how many were sent before it.
pub(crate) struct Posted<M> {
    pub id: usize,
    pub envelope: Envelope<M>,
}

/// Receives what happens on a stage.
pub(crate) trait Witness<A: Algorithm> {
    /// Called when all nodes have started, before the first step.
    fn opened(&mut self, _shape: &Arc<A::Shape>, _world: &World<A>) -> Result<(), String> {
        Ok(())
    }

    /// Called after each event, with the cluster after it.
    fn happened(&mut self, event: StageEvent<'_, A>, world: &World<A>) -> Result<(), String>;

    /// The script shows a node's state.
    fn shown(&mut self, _node: NodeId, _world: &World<A>) -> Result<(), String> {
        Ok(())
    }

    /// The script says that the next steps happen at this time, in message delays.
    fn time(&mut self, _time: f64) -> Result<(), String> {
        Ok(())
    }
}

/// An event and its effects.
pub(crate) struct StageEvent<'a, A: Algorithm> {
    pub deed: Deed<'a, A::Message>,
    /// Where it happened.
    pub node: NodeId,
    pub effects: &'a [Effect<A::Message>],
    /// The id of the first message that was sent; the others follow.
    pub first_id: usize,
    pub fault: Option<&'a Fault>,
}

/// What happened.
pub(crate) enum Deed<'a, M> {
    Start,
    Request,
    Release,
    Deliver(&'a Posted<M>),
    Lose(&'a Posted<M>),
    Crash(u64),
    Restart,
    Settled,
    /// The node was forgotten, and its clock advanced by this.
    Forget(u64),
    /// All nodes were forgotten, and the clock of one of them advanced by this.
    ForgetAll(Option<(NodeId, u64)>),
}

/// The steps of a scenario, as an error lists them.
const STEPS: [&str; 13] = [
    "start",
    "request NODE",
    "release NODE",
    "deliver FROM TO [MESSAGE]",
    "run",
    "show NODE",
    "forget NODE [CLOCK]",
    "forget all [NODE CLOCK]",
    "crash NODE [INCARNATION]",
    "restart NODE",
    "settled NODE",
    "lose FROM TO [MESSAGE]",
    "at TIME",
];

impl<'a, A: Algorithm, W: Witness<A>> Stage<'a, A, W> {
    pub(crate) fn new(head: &'a Head, witness: W) -> Result<Self, ScenarioError> {
        let nodes = head.names.len();
        let at_start = |reason| ScenarioError::Line { line: 1, reason };
        if nodes > A::NODES_MAX {
            return Err(ScenarioError::TooManyNodes {
                algorithm: A::INFO.name,
                nodes,
                most: A::NODES_MAX,
            });
        }
        let shape = Arc::new(head.shape.build(nodes)?);
        let world = World::new(&shape, head.start, head.choice.variants);
        let mut stage = Stage {
            head,
            shape,
            world,
            under_way: VecDeque::new(),
            sent: 0,
            out: Outbox::new(),
            incarnations: 0,
            witness,
        };
        for node in NodeId::all(nodes) {
            let result = stage.world.start(node, &mut stage.out);
            stage.note(Deed::Start, node, result).map_err(at_start)?;
        }
        let opened = stage.witness.opened(&stage.shape, &stage.world);
        opened.map_err(at_start)?;
        Ok(stage)
    }

    /// The witness and the messages in flight, in the order sent.
    pub(crate) fn close(self) -> (W, VecDeque<Posted<A::Message>>) {
        (self.witness, self.under_way)
    }

    pub(crate) fn step(&mut self, step: &str) -> Result<(), String> {
        let words: Vec<&str> = step.split_whitespace().collect();
        let node = |name: &str| self.head.node(name);
        match words[..] {
            ["start"] => Ok(()), // all nodes have started; their effects appear under the first step
            ["request", who] => self.request(node(who)?),
            ["release", who] => self.release(node(who)?),
            ["deliver", from, to, ..] => {
                let place = self.find(node(from)?, node(to)?, &words[3..].join(" "))?;
                self.arrive(place)
            }
            ["lose", from, to, ..] => self.lose(node(from)?, node(to)?, &words[3..].join(" ")),
            ["run"] => self.run(),
            ["show", who] => self.witness.shown(node(who)?, &self.world),
            ["forget", "all"] => self.forget_all(None),
            ["forget", "all", who, clock] => {
                self.forget_all(Some((node(who)?, parse("clock", clock)?)))
            }
            ["forget", who] => self.forget(node(who)?, None),
            ["forget", who, clock] => self.forget(node(who)?, Some(parse("clock", clock)?)),
            ["crash", who] => {
                self.incarnations += 1;
                self.crash(node(who)?, self.incarnations)
            }
            ["crash", who, incarnation] => {
                self.crash(node(who)?, parse("incarnation", incarnation)?)
            }
            ["restart", who] => {
                let node = node(who)?;
                let result = self.world.start(node, &mut self.out);
                self.note(Deed::Restart, node, result)
            }
            ["settled", who] => {
                let node = node(who)?;
                let result = self.world.settled(node, &mut self.out);
                self.note(Deed::Settled, node, result)
            }
            ["at", time] => match time.parse() {
                Ok(time) if f64::is_finite(time) && time >= 0.0 => self.witness.time(time),
                _ => Err(format!(
                    "invalid time '{time}': use a number of message delays"
                )),
            },
            _ => Err(format!("'{step}' is not a step; use {}", STEPS.join(", "))),
        }
    }

    fn request(&mut self, node: NodeId) -> Result<(), String> {
        let result = self.world.apply(Event::Request(node), &mut self.out);
        self.note(Deed::Request, node, result)
    }

    fn release(&mut self, node: NodeId) -> Result<(), String> {
        let result = self.world.apply(Event::Release(node), &mut self.out);
        self.note(Deed::Release, node, result)
    }

    fn lose(&mut self, from: NodeId, to: NodeId, given: &str) -> Result<(), String> {
        if !self.world.node(to).is_recovering() {
            return Err(format!("{} is not down", self.head.name(to)));
        }
        let place = self.find(from, to, given)?;
        let lost = self
            .under_way
            .remove(place)
            .expect("the index is in the list");
        self.note(Deed::Lose(&lost), to, Ok(()))
    }

    /// Returns the position of the oldest matching message. `given` is its kind, its full text, or
    /// empty to match any message.
    fn find(&self, from: NodeId, to: NodeId, given: &str) -> Result<usize, String> {
        let of_channel = |l: &Posted<A::Message>| (l.envelope.from, l.envelope.to) == (from, to);
        let wanted = |l: &Posted<A::Message>| {
            let message = &l.envelope.message;
            let is_it = || message.name() == given || message.to_string() == given;
            of_channel(l) && (given.is_empty() || is_it())
        };
        let place = self
            .under_way
            .iter()
            .position(wanted)
            .ok_or("no such message is in flight")?;
        if self.head.channels == Channels::Fifo
            && self.under_way.iter().position(of_channel) != Some(place)
        {
            return Err("an earlier message from there is in flight: channels are fifo".to_owned());
        }
        Ok(place)
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            if self.under_way.is_empty() {
                return Ok(());
            }
            self.arrive(0)?;
        }
        Err("messages never stop; use 'deliver'".to_owned())
    }

    fn arrive(&mut self, place: usize) -> Result<(), String> {
        let arrives = self
            .under_way
            .remove(place)
            .expect("the index is in the list");
        let Envelope { from, to, message } = arrives.envelope.clone();
        let event = Event::Deliver { from, to, message };
        let result = self.world.apply(event, &mut self.out);
        self.note(Deed::Deliver(&arrives), to, result)
    }

    /// What a node is built from.
    pub(crate) fn config(&self, node: NodeId) -> Config<A::Shape> {
        Config {
            place: Place {
                me: node,
                shape: Arc::clone(&self.shape),
            },
            start: self.head.start,
            variants: self.head.choice.variants,
        }
    }

    fn forget(&mut self, node: NodeId, clock: Option<u64>) -> Result<(), String> {
        let config = self.config(node);
        let state = self.world.node(node);
        if !state.is_at_rest(&config) {
            return Err(format!(
                "{} is not idle enough to be forgotten",
                self.head.name(node)
            ));
        }
        let jump = jump(state.clock(), clock)?;
        self.world.forget(node, &config, jump);
        self.note(Deed::Forget(jump), node, Ok(()))
    }

    fn forget_all(&mut self, jumps: Option<(NodeId, u64)>) -> Result<(), String> {
        if !world::forgets_together::<A>(&self.config(NodeId::new(0))) {
            return Err(
                "nodes of this algorithm are forgotten one by one; use 'forget NODE'".to_owned(),
            );
        }
        let is_idle = |(_, state): (NodeId, &A)| state.phase() == Phase::Idle;
        if !self.under_way.is_empty() || !self.world.iter().all(is_idle) {
            return Err("a node waits or is inside, or a message is in flight".to_owned());
        }
        let mut jumped = None;
        for node in NodeId::all(self.world.len()) {
            let clock = jumps
                .filter(|(who, _)| *who == node)
                .map(|(_, clock)| clock);
            let jump = jump(self.world.node(node).clock(), clock)?;
            let config = self.config(node);
            self.world.forget(node, &config, jump);
            if jump > 0 {
                jumped = Some((node, jump));
            }
        }
        let node = jumped.map_or(NodeId::new(0), |(node, _)| node);
        self.note(Deed::ForgetAll(jumped), node, Ok(()))
    }

    fn crash(&mut self, node: NodeId, incarnation: u64) -> Result<(), String> {
        let config = self.config(node);
        let state =
            A::recovering(&config, incarnation).ok_or("this algorithm does not support crashes")?;
        self.world.crash(node, state);
        self.note(Deed::Crash(incarnation), node, Ok(()))
    }

    /// Tells the witness what happened at a node, and puts the node's messages in flight.
    fn note(
        &mut self,
        deed: Deed<'_, A::Message>,
        node: NodeId,
        result: Result<(), Fault>,
    ) -> Result<(), String> {
        let event = StageEvent {
            deed,
            node,
            effects: self.out.effects(),
            first_id: self.sent,
            fault: result.as_ref().err(),
        };
        let noted = self.witness.happened(event, &self.world);
        for effect in self.out.drain() {
            if let Effect::Send { to, message } = effect {
                let from = node;
                self.under_way.push_back(Posted {
                    id: self.sent,
                    envelope: Envelope { from, to, message },
                });
                self.sent += 1;
            }
        }
        noted
    }
}

fn parse(what: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("invalid {what} '{text}': use a whole number"))
}

/// How far a clock has to jump to reach the given value.
fn jump(now: u64, clock: Option<u64>) -> Result<u64, String> {
    let jump = clock.unwrap_or(now).checked_sub(now);
    jump.ok_or_else(|| format!("its clock is at {now} and cannot go back"))
}
