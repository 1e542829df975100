//! Raymond 1989, §8, in every interleaving: when a node crashes is one more free choice. It loses
//! its state, not its messages, and restarts when all that it had sent has arrived. Besides
//! mutual exclusion and the one token, every run must end, and with everybody served.

use std::collections::HashMap;
use std::sync::Arc;

use soloist_algorithms::raymond::*;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{
    Algorithm, Channels, Config, Effect, Message, NodeId, Outbox, Phase, Place, Shape, Start,
    VariantSet,
};
use soloist_lab::world::{Event, Fault, World};

use crate::raymond::all_variants;

struct Case {
    config: Config<Tree>,
    channels: Channels,
    requests: u8,
    crashes: u8,
    /// Whether neighbours may be down together, outside what §8.8 promises: then only safety counts.
    neighbours_too: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    world: World<Raymond>,
    /// From, to, what, and whether an ADVISE was sent after it on the same channel.
    letters: Vec<(NodeId, NodeId, RaymondMessage, bool)>,
    left: Vec<u8>,
    crashes: u8,
    /// Nodes that crashed and have not recovered, and whether they have restarted.
    down: Vec<(NodeId, bool)>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Request(NodeId),
    Release(NodeId),
    Crash(NodeId),
    Restart(NodeId),
    Settled(NodeId),
    Deliver(usize),
}

impl State {
    fn first(case: &Case) -> Self {
        let nodes = case.config.place.nodes();
        let Config {
            place,
            start,
            variants,
        } = &case.config;
        let mut state = State {
            world: World::new(&place.shape, *start, *variants),
            letters: Vec::new(),
            left: vec![case.requests; nodes],
            crashes: 0,
            down: Vec::new(),
        };
        for node in NodeId::all(nodes) {
            let mut out = Outbox::new();
            state.world.start(node, &mut out).unwrap();
            state.post(node, &mut out, case);
        }
        state
    }

    fn actions(&self, case: &Case) -> Vec<Action> {
        let mut actions = Vec::new();
        let tree = &case.config.place.shape;
        for (node, state) in self.world.iter() {
            match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => actions.push(Action::Request(node)),
                Phase::Inside => actions.push(Action::Release(node)),
                Phase::Idle | Phase::Waiting => {}
            }
            let down_too = self.down.iter().any(|down| tree.is_neighbour(down.0, node));
            if self.crashes < case.crashes && (case.neighbours_too || !down_too) {
                actions.push(Action::Crash(node));
            }
        }
        for &(node, restarted) in &self.down {
            if !restarted && self.letters.iter().all(|letter| letter.0 != node) {
                actions.push(Action::Restart(node));
            }
            if restarted
                && !self
                    .letters
                    .iter()
                    .any(|letter| letter.1 == node && letter.3)
            {
                actions.push(Action::Settled(node));
            }
        }
        let first_of_channel = |place: usize| {
            let (from, to, ..) = self.letters[place];
            !self.letters[..place]
                .iter()
                .any(|l| (l.0, l.1) == (from, to))
        };
        let may_arrive = |place: &usize| case.channels == Channels::Any || first_of_channel(*place);
        actions.extend(
            (0..self.letters.len())
                .filter(may_arrive)
                .map(Action::Deliver),
        );
        actions
    }

    fn act(&mut self, action: Action, case: &Case) -> Result<(), String> {
        let mut out = Outbox::new();
        let (node, result) = match action {
            Action::Request(node) => {
                self.left[node.index()] -= 1;
                (node, self.world.apply(Event::Request(node), &mut out))
            }
            Action::Release(node) => (node, self.world.apply(Event::Release(node), &mut out)),
            Action::Crash(node) => {
                self.crashes += 1;
                let state = Raymond::recovering(&case.config.at(node), u64::from(self.crashes));
                self.world.crash(node, state.unwrap());
                self.down.retain(|down| down.0 != node);
                self.down.push((node, false));
                (node, Ok(()))
            }
            Action::Restart(node) => {
                let down = self.down.iter_mut().find(|down| down.0 == node);
                down.unwrap().1 = true;
                (node, self.world.start(node, &mut out))
            }
            Action::Settled(node) => (node, self.world.settled(node, &mut out)),
            Action::Deliver(place) => {
                let (from, to, message, _) = self.letters.remove(place);
                (
                    to,
                    self.world
                        .apply(Event::Deliver { from, to, message }, &mut out),
                )
            }
        };
        match result {
            Err(Fault::Refused { .. }) if case.neighbours_too => {}
            result => result.map_err(|fault| fault.to_string())?,
        }
        self.post(node, &mut out, case);
        let world = &self.world;
        self.down.retain(|down| world.node(down.0).is_recovering());
        world
            .check_invariants()
            .map_err(|fault| fault.to_string())?;
        let here = world.iter().filter(|(_, node)| node.has_token()).count();
        let tokens = here
            + self
                .letters
                .iter()
                .filter(|letter| letter.2.is_token())
                .count();
        match tokens {
            1 => Ok(()),
            0 if !self.down.is_empty() || case.neighbours_too => Ok(()),
            _ => Err(format!("{tokens} tokens")),
        }
    }

    fn post(&mut self, from: NodeId, out: &mut Outbox<RaymondMessage>, case: &Case) {
        for effect in out.drain() {
            let Effect::Send { to, message } = effect else {
                continue;
            };
            if matches!(message, RaymondMessage::Advise(..)) {
                let before = self.letters.iter_mut().filter(|l| (l.0, l.1) == (from, to));
                before.for_each(|letter| letter.3 = true);
            }
            self.letters.push((from, to, message, false));
        }
        match case.channels {
            Channels::Fifo => self.letters.sort_by_key(|letter| (letter.0, letter.1)),
            Channels::Any => self.letters.sort(),
        }
    }

    fn is_final(&self) -> bool {
        let idle = self
            .world
            .iter()
            .all(|(_, node)| node.phase() == Phase::Idle);
        idle && self.letters.is_empty() && self.down.is_empty() && self.left.iter().all(|l| *l == 0)
    }
}

/// A fault may let queues or messages grow without end.
const STATES_MAX: usize = 300_000;

/// Searches all states; says how many there are, or what goes wrong and how.
fn search(case: &Case) -> Result<usize, String> {
    let first = State::first(case);
    let mut numbers = HashMap::from([(first.clone(), 0_usize)]);
    let mut states = vec![(first, String::new(), 0)];
    let mut successors: Vec<Vec<usize>> = Vec::new();
    let mut current = 0;
    while current < states.len() {
        let mut next = Vec::new();
        let state = states[current].0.clone();
        for action in state.actions(case) {
            let mut after = state.clone();
            let line = match action {
                Action::Deliver(place) => format!("{:?}", state.letters[place]),
                _ => format!("{action:?}"),
            };
            if let Err(what) = after.act(action, case) {
                return Err(format!("{what}\n{}{line}", trace(&states, current)));
            }
            let number = *numbers.entry(after.clone()).or_insert(states.len());
            if number == states.len() {
                if number == STATES_MAX {
                    return Err(format!("too many states\n{}", trace(&states, current)));
                }
                states.push((after, line, current));
            }
            // Settled too early changes nothing.
            if number != current {
                next.push(number);
            }
        }
        successors.push(next);
        current += 1;
    }
    if case.neighbours_too {
        return Ok(states.len());
    }
    // Every run ends: states without successors, then those that lead to such only, and so on.
    let mut sources = vec![Vec::new(); states.len()];
    for (state, next) in successors.iter().enumerate() {
        next.iter().for_each(|&target| sources[target].push(state));
    }
    let mut open: Vec<usize> = successors.iter().map(Vec::len).collect();
    let mut ended: Vec<usize> = (0..states.len()).filter(|&s| open[s] == 0).collect();
    if let Some(&stuck) = ended.iter().find(|&&s| !states[s].0.is_final()) {
        return Err(format!(
            "not everybody is served\n{}",
            trace(&states, stuck)
        ));
    }
    let mut ends = 0;
    while let Some(state) = ended.pop() {
        ends += 1;
        for &source in &sources[state] {
            open[source] -= 1;
            if open[source] == 0 {
                ended.push(source);
            }
        }
    }
    if ends == states.len() {
        return Ok(ends);
    }
    // Walking on among the others comes round in the end.
    let onward = |state: usize| {
        successors[state]
            .iter()
            .copied()
            .find(|&next| open[next] > 0)
    };
    let (mut endless, mut passed) = (0, vec![false; states.len()]);
    while !std::mem::replace(&mut passed[endless], true) {
        endless = onward(endless).unwrap();
    }
    Err(format!("messages without end\n{}", trace(&states, endless)))
}

fn trace(states: &[(State, String, usize)], mut number: usize) -> String {
    let mut text = String::new();
    while number > 0 {
        text = format!("{}\n{text}", states[number].1);
        number = states[number].2;
    }
    text
}

/// One request a node, one crash.
fn case(nodes: usize, home: u32, variants: VariantSet, channels: Channels) -> Case {
    let place = Place {
        me: NodeId::new(0),
        shape: Arc::new(Tree::parse("line", nodes).unwrap()),
    };
    let start = Start::idle(NodeId::new(home));
    Case {
        config: Config {
            place,
            start,
            variants,
        },
        channels,
        requests: 1,
        crashes: 1,
        neighbours_too: false,
    }
}

/// Every tree of up to three nodes (all are lines), with the nodes whose places in it differ.
const LINES: [(usize, u32); 4] = [(1, 0), (2, 0), (3, 0), (3, 1)];

#[track_caller]
fn recovers(case: &Case) {
    if let Err(what) = search(case) {
        panic!("{what}");
    }
}

#[track_caller]
fn fails(case: &Case, expected: &str) {
    let what = search(case).expect_err(expected);
    assert!(what.starts_with(expected), "{what}");
}

#[test]
fn recovers_over_fifo_with_every_variant() {
    for (nodes, home) in LINES {
        for variants in all_variants() {
            recovers(&case(nodes, home, variants, Channels::Fifo));
        }
    }
}

#[test]
fn recovers_in_any_order_after_a_second_wait_with_every_variant() {
    for (nodes, home) in LINES {
        for variants in all_variants() {
            recovers(&case(
                nodes,
                home,
                variants.with(SECOND_WAIT),
                Channels::Any,
            ));
        }
    }
}

/// §8.7: also a crash during recovery, and of one node after the other.
#[test]
fn recovers_from_two_crashes() {
    for (nodes, home) in LINES {
        for (variants, channels) in [
            (VariantSet::default(), Channels::Fifo),
            (VariantSet::default().with(SECOND_WAIT), Channels::Any),
        ] {
            let once = case(nodes, home, variants, channels);
            recovers(&Case { crashes: 2, ..once });
        }
    }
}

#[test]
fn recovers_and_asks_again() {
    let once = case(3, 1, VariantSet::default(), Channels::Fifo);
    recovers(&Case {
        requests: 2,
        ..once
    });
}

/// §8.1 (3) and (4) by the letter: the recovered node believes to have asked.
#[test]
fn as_published_waits_for_ever() {
    let variants = VariantSet::default().with(AS_PUBLISHED);
    fails(
        &case(2, 0, variants, Channels::Fifo),
        "not everybody is served",
    );
}

/// §8.2 to §8.6 where an ADVISE may overtake a PRIVILEGE, without a second wait.
#[test]
fn a_privilege_that_is_overtaken_makes_two() {
    let variants = VariantSet::default();
    fails(&case(2, 1, variants, Channels::Any), "2 tokens");
}

/// §8.6 has it that requests queued twice correct themselves. After one recovery over fifo they do.
/// After two, or where messages overtake each other, the privilege can go to and fro for ever.
#[test]
fn duplicates_may_chase_each_other_for_ever() {
    let variants = VariantSet::default().with(DUPLICATES);
    for (nodes, home) in LINES {
        recovers(&case(nodes, home, variants, Channels::Fifo));
    }
    let once = case(2, 0, variants, Channels::Fifo);
    fails(&Case { crashes: 2, ..once }, "messages without end");
    let variants = variants.with(SECOND_WAIT);
    fails(&case(3, 0, variants, Channels::Any), "messages without end");
}

/// §8.8 promises nothing where neighbours are down together. They may wait for ever, but nothing
/// panics and there never are two tokens.
#[test]
fn neighbours_down_together_make_no_second_token() {
    for (nodes, home) in LINES {
        for (variants, channels) in [
            (VariantSet::default(), Channels::Fifo),
            (VariantSet::default().with(INITIALIZE), Channels::Fifo),
        ] {
            recovers(&Case {
                crashes: 2,
                neighbours_too: true,
                ..case(nodes, home, variants, channels)
            });
        }
    }
}
