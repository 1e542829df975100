//! One run under a schedule.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use soloist_algorithms::{Algorithm, Channels, Effect, Message, NodeId, Outbox, Phase};

use super::schedule::{Key, Schedule};
use crate::report::cost;
use crate::search::{Aim, Case};
use crate::simulate::Overtaking;
use crate::world::{Event, World};

/// What a run costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Score {
    pub messages: u64,
    pub entries: u64,
    pub overtaken: u64,
}

/// What a run costs up to its worst step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Worst {
    pub score: Score,
    /// Number of steps up to there.
    steps: usize,
}

impl Score {
    pub(super) fn is_worse_than(&self, other: &Score, aim: Aim) -> bool {
        match aim {
            Aim::Messages => self.messages * other.entries > other.messages * self.entries,
            Aim::Overtaking => self.overtaken > other.overtaken,
        }
    }

    pub(super) fn text(&self, aim: Aim) -> String {
        match aim {
            Aim::Messages => cost(self.messages, self.entries),
            Aim::Overtaking => format!("one waiter is overtaken {} times", self.overtaken),
        }
    }
}

/// A message in flight.
struct Envelope<M> {
    message: M,
    key: Key,
    priority: i64,
    /// The number of the request on which its sender sent it, if any.
    request: Option<u8>,
}

/// An event that can happen.
#[derive(Clone, Copy)]
enum Possible {
    Request(NodeId),
    Release(NodeId),
    /// The message at this position of the channel arrives.
    Deliver(NodeId, NodeId, usize),
}

pub(super) struct Run<'a, A: Algorithm> {
    case: &'a Case,
    schedule: &'a Schedule,
    world: World<A>,
    channels: BTreeMap<(NodeId, NodeId), VecDeque<Envelope<A::Message>>>,
    out: Outbox<A::Message>,
    /// Requests that each node has made.
    rounds: Vec<u8>,
    /// Number of requests that were made in turn.
    turn: usize,
    /// Messages of each node's request that have not arrived.
    pending: Vec<u32>,
    overtaking: Overtaking,
    waiting: usize,
    score: Score,
    /// The part of the run with the most messages per entry, among those that are complete: no node
    /// waits or is inside, and no message is in flight, except a circulating token.
    worst: Option<Worst>,
    keys: Vec<Key>,
    /// The steps so far as those of a scenario, if they are recorded.
    steps: Option<Vec<String>>,
}

impl<'a, A: Algorithm> Run<'a, A> {
    pub(super) fn new(case: &'a Case, shape: &Arc<A::Shape>, schedule: &'a Schedule) -> Self {
        let nodes = case.nodes;
        let mut run = Run {
            case,
            schedule,
            world: World::new(shape, case.start, case.choice.variants),
            channels: BTreeMap::new(),
            out: Outbox::new(),
            rounds: vec![0; nodes],
            turn: 0,
            pending: vec![0; nodes],
            overtaking: Overtaking::new(nodes),
            waiting: 0,
            score: Score::default(),
            worst: None,
            keys: Vec::new(),
            steps: None,
        };
        for node in NodeId::all(nodes) {
            // A node that starts inside does not count as an entry of the run.
            let _ = run.world.start(node, &mut run.out);
            run.send(node, false);
        }
        run
    }

    /// The cost of the run up to its worst step, and the keys of its events. The cost is 0 if a
    /// request is not served.
    pub(super) fn score(mut self, aim: Aim) -> (Score, Vec<Key>) {
        let worst = self.go(aim);
        (worst.score, self.keys)
    }

    /// The steps of the run up to its worst step, as those of a scenario.
    pub(super) fn recorded(mut self, aim: Aim) -> Vec<String> {
        self.steps = Some(Vec::new());
        let worst = self.go(aim);
        let mut steps = self.steps.expect("they were recorded");
        steps.truncate(worst.steps);
        steps
    }

    /// Runs to the end, and returns the cost up to the worst step: that of the whole run or, if
    /// messages are counted, of the complete part with the most messages per entry.
    fn go(&mut self, aim: Aim) -> Worst {
        let is_well = self.run_to_end();
        let nothing = Worst {
            score: Score {
                entries: 1,
                ..Score::default()
            },
            steps: self.keys.len(),
        };
        match aim {
            _ if !is_well => nothing,
            Aim::Messages => self.worst.unwrap_or(nothing),
            Aim::Overtaking => Worst {
                score: self.score,
                steps: self.keys.len(),
            },
        }
    }

    /// Runs to the end. Returns whether every request was served and nothing went wrong.
    fn run_to_end(&mut self) -> bool {
        let requests: u64 = self.case.requests.iter().map(|&r| u64::from(r)).sum();
        let steps_max = 1_000 + 50 * requests * (self.case.nodes as u64 + 10);
        for _ in 0..steps_max {
            if self.waiting == 0 && self.is_quiet() {
                self.note_complete();
                if self.score.entries == requests {
                    return true;
                }
            }
            let Some(next) = self.next() else {
                return self.score.entries == requests;
            };
            if !self.happen(next) {
                return false;
            }
        }
        false
    }

    /// Notes a complete part of the run.
    fn note_complete(&mut self) {
        let here = Worst {
            score: self.score,
            steps: self.keys.len(),
        };
        let is_worst = |known: Worst| here.score.is_worse_than(&known.score, Aim::Messages);
        if self.score.entries > 0 && self.worst.is_none_or(is_worst) {
            self.worst = Some(here);
        }
    }

    /// Whether only a token that nobody asked for is in flight, and no node is inside.
    fn is_quiet(&self) -> bool {
        let mut envelopes = self.channels.values().flatten();
        self.world.inside() == 0 && envelopes.all(|envelope| envelope.message.is_roaming())
    }

    /// The possible event with the highest priority. While nodes take turns, the next of them
    /// requests as soon as the one before it was served, and no other does.
    fn next(&self) -> Option<Possible> {
        let turn = self.schedule.turns.get(self.turn);
        if let Some(&node) = turn
            && self.waiting == 0
            && self.is_quiet()
        {
            return Some(Possible::Request(node));
        }
        let mut best: Option<(i64, Possible)> = None;
        let mut consider = |priority: i64, possible| {
            if best.is_none_or(|(known, _)| priority > known) {
                best = Some((priority, possible));
            }
        };
        for (node, state) in self.world.iter() {
            let left = self.case.requests[node.index()] > self.rounds[node.index()];
            match state.phase() {
                Phase::Idle if left && turn.is_none() => {
                    let key = self.own_key(Key::REQUEST, node);
                    consider(self.schedule.priority(key), Possible::Request(node));
                }
                Phase::Inside => {
                    let key = self.own_key(Key::RELEASE, node);
                    consider(self.schedule.priority(key), Possible::Release(node));
                }
                Phase::Idle | Phase::Waiting => {}
            }
        }
        for (&(from, to), envelopes) in &self.channels {
            let deliverable = match self.case.limits.channels {
                Channels::Fifo => 1,
                Channels::Any => envelopes.len(),
            };
            for (place, envelope) in envelopes.iter().take(deliverable).enumerate() {
                consider(envelope.priority, Possible::Deliver(from, to, place));
            }
        }
        best.map(|(_, possible)| possible)
    }

    fn own_key(&self, kind: u8, node: NodeId) -> Key {
        let number = node.index() as u32;
        Key {
            kind,
            round: self.rounds[node.index()],
            from: number,
            to: number,
        }
    }

    /// Lets an event happen. Returns whether nothing went wrong.
    fn happen(&mut self, event: Possible) -> bool {
        let (event, text) = match event {
            Possible::Request(node) => {
                self.keys.push(self.own_key(Key::REQUEST, node));
                self.rounds[node.index()] += 1;
                self.turn += usize::from(self.turn < self.schedule.turns.len());
                self.waiting += 1;
                self.overtaking.requested(node);
                (Event::Request(node), format!("request {node}"))
            }
            Possible::Release(node) => {
                self.keys.push(self.own_key(Key::RELEASE, node));
                (Event::Release(node), format!("release {node}"))
            }
            Possible::Deliver(from, to, place) => {
                let channel = self.channels.get_mut(&(from, to));
                let channel = channel.expect("the channel has a message");
                let envelope = channel.remove(place).expect("a place in the channel");
                if channel.is_empty() {
                    self.channels.remove(&(from, to));
                }
                self.keys.push(envelope.key);
                // An earlier request may have been served before all its messages arrived.
                if envelope.request == Some(self.rounds[from.index()]) {
                    self.pending[from.index()] -= 1;
                    if self.pending[from.index()] == 0 {
                        self.arrived(from);
                    }
                }
                let message = envelope.message;
                let text = match &self.steps {
                    Some(_) => format!("deliver {from} {to} {message}"),
                    None => String::new(),
                };
                (Event::Deliver { from, to, message }, text)
            }
        };
        if let Some(steps) = &mut self.steps {
            steps.push(text);
        }
        let node = event.node();
        let is_request = matches!(event, Event::Request(_));
        let is_well = self.world.apply(event, &mut self.out).is_ok();
        self.send(node, is_request);
        is_well
    }

    /// The messages of a node's request have arrived.
    fn arrived(&mut self, node: NodeId) {
        if self.world.node(node).phase() == Phase::Waiting {
            self.overtaking.arrived(node);
        }
    }

    /// Puts the messages of a node in flight, and counts its entry.
    fn send(&mut self, node: NodeId, is_request: bool) {
        let mut entered = false;
        let mut sent = 0;
        for effect in self.out.drain() {
            match effect {
                Effect::Enter => entered = true,
                Effect::Send { to, message } => {
                    // A circulating token moves anyway.
                    let is_idle = message.is_roaming() && self.waiting == 0;
                    self.score.messages += u64::from(!is_idle);
                    sent += 1;
                    let rounds = [node, to].map(|node| self.rounds[node.index()]);
                    let key = Key {
                        kind: Key::MESSAGES + message.kind() as u8,
                        round: rounds[0].wrapping_add(rounds[1]),
                        from: node.index() as u32,
                        to: to.index() as u32,
                    };
                    let channel = self.channels.entry((node, to)).or_default();
                    channel.push_back(Envelope {
                        message,
                        key,
                        priority: self.schedule.priority(key),
                        request: is_request.then_some(rounds[0]),
                    });
                }
            }
        }
        if is_request {
            self.pending[node.index()] = sent;
            if sent == 0 && !entered {
                self.arrived(node);
            }
        }
        if entered && self.rounds[node.index()] > 0 {
            self.waiting -= 1;
            self.score.entries += 1;
            self.overtaking.entered(node);
            self.score.overtaken = self.overtaking.most();
        }
    }
}
