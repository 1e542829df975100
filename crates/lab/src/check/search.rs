//! Breadth-first search of every reachable state: when to ask, which message arrives next and
//! when to leave are all free choices.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Channels, Effect, NodeId, Outbox, Phase, Shape, Start, VariantSet,
};

use crate::network::{Letter, Network};
use crate::world::{Event, Fault, World};

/// In [`Bounds::requests`]: as often as it likes. For algorithms whose states are finite in number.
pub const ENDLESS: u8 = u8::MAX;

/// What to search.
#[derive(Clone, Debug)]
pub struct Bounds<S> {
    /// The cluster's shape.
    pub shape: Arc<S>,
    /// How it begins.
    pub start: Start,
    /// The algorithm's variants in use.
    pub variants: VariantSet,
    /// Whether messages between two nodes keep their order.
    pub channels: Channels,
    /// How often each node may ask; [`ENDLESS`]: without bound.
    pub requests: Vec<u8>,
    /// Give up beyond this many states.
    pub states_max: usize,
}

impl<S: Shape> Bounds<S> {
    /// The default shape, the token at node 0, no variant, the algorithm's own channels, ten million
    /// states; node i may ask `requests[i]` times.
    pub fn of<A: Algorithm<Shape = S>>(requests: &[u8]) -> Self {
        Bounds {
            shape: Arc::new(S::default_for(requests.len())),
            start: Start::idle(NodeId::new(0)),
            variants: VariantSet::default(),
            channels: A::INFO.channels,
            requests: requests.to_vec(),
            states_max: 10_000_000,
        }
    }
}

/// A step of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The node asks.
    Request(NodeId),
    /// The node leaves.
    Release(NodeId),
    /// The message at this place of the list of messages under way arrives.
    Deliver(usize),
}

/// What the search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every reachable state was seen, and all is well: nothing broke, and from each state everybody
    /// can still be served.
    Holds {
        /// How many states there are.
        states: usize,
    },
    /// Something broke; the trace is a shortest one.
    Broken {
        /// What broke.
        fault: Fault,
        /// How to get there, readable.
        trace: Vec<String>,
    },
    /// A state from which not everybody can be served any more.
    Stuck {
        /// How to get there, readable.
        trace: Vec<String>,
    },
    /// There are more states than allowed; nothing broke so far.
    NotExhausted,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State<A: Algorithm> {
    pub(super) world: World<A>,
    pub(super) network: Network<A::Message>,
    left: Vec<u8>,
}

impl<A: Algorithm> State<A> {
    pub(super) fn first(bounds: &Bounds<A::Shape>) -> Result<Self, Fault> {
        let mut state = State {
            world: World::new(&bounds.shape, bounds.start, bounds.variants),
            network: Network::new(),
            left: bounds.requests.clone(),
        };
        let mut out = Outbox::new();
        for node in NodeId::all(state.world.len()) {
            state.world.start(node, &mut out)?;
            state.post(node, bounds.channels, &mut out);
        }
        Ok(state)
    }

    fn post(&mut self, from: NodeId, channels: Channels, out: &mut Outbox<A::Message>) {
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                self.network.send(channels, Letter { from, to, message });
            }
        }
    }

    pub(super) fn actions(&self, channels: Channels) -> Vec<Action> {
        let mut actions = Vec::new();
        for (node, state) in self.world.iter() {
            match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => actions.push(Action::Request(node)),
                Phase::Inside => actions.push(Action::Release(node)),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        actions.extend(self.network.deliverable(channels).map(Action::Deliver));
        actions
    }

    pub(super) fn act(&mut self, action: Action, channels: Channels) -> Result<(), Fault> {
        let mut out = Outbox::new();
        let (node, event) = match action {
            Action::Request(node) => {
                let left = &mut self.left[node.index()];
                *left -= u8::from(*left != ENDLESS);
                (node, Event::Request(node))
            }
            Action::Release(node) => (node, Event::Release(node)),
            Action::Deliver(place) => {
                let Letter { from, to, message } = self.network.take(place);
                (to, Event::Deliver { from, to, message })
            }
        };
        self.world.apply(event, &mut out)?;
        self.post(node, channels, &mut out);
        self.world.check_invariants()
    }

    fn describe(&self, action: Action) -> String {
        match action {
            Action::Request(node) => format!("request {node}"),
            Action::Release(node) => format!("release {node}"),
            Action::Deliver(place) => {
                let Letter { from, to, message } = &self.network.letters()[place];
                format!("deliver {from} {to} {message}")
            }
        }
    }

    /// Nobody waits, nobody is inside, nobody will ask (who asks without end need not ask now).
    fn all_served(&self) -> bool {
        self.left.iter().all(|left| [0, ENDLESS].contains(left))
            && self
                .world
                .iter()
                .all(|(_, node)| node.phase() == Phase::Idle)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Searches all states within the bounds. States are told apart by 64 bits of hash.
pub fn search<A: Algorithm>(bounds: &Bounds<A::Shape>) -> Outcome {
    let first = match State::<A>::first(bounds) {
        Ok(first) => first,
        Err(fault) => {
            return Outcome::Broken {
                fault,
                trace: Vec::new(),
            };
        }
    };
    let mut seen = HashMap::from([(first.fingerprint(), 0_usize)]);
    let mut parents: Vec<Option<(usize, Action)>> = vec![None];
    let mut served = vec![first.all_served()];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut frontier = vec![(0_usize, first)];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (index, state) in frontier {
            for action in state.actions(bounds.channels) {
                let mut after = state.clone();
                if let Err(fault) = after.act(action, bounds.channels) {
                    let trace = trace::<A>(bounds, &parents, index, Some(action));
                    return Outcome::Broken { fault, trace };
                }
                let target = match seen.entry(after.fingerprint()) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(vacant) => {
                        let number = parents.len();
                        if number >= bounds.states_max {
                            return Outcome::NotExhausted;
                        }
                        vacant.insert(number);
                        parents.push(Some((index, action)));
                        served.push(after.all_served());
                        next.push((number, after));
                        number
                    }
                };
                edges.push((target as u32, index as u32));
            }
        }
        frontier = next;
    }
    match first_hopeless(served, edges) {
        Some(index) => Outcome::Stuck {
            trace: trace::<A>(bounds, &parents, index, None),
        },
        None => Outcome::Holds {
            states: parents.len(),
        },
    }
}

/// The first state from which no state in which all are served can be reached. `edges` are
/// (target, source).
fn first_hopeless(mut hopeful: Vec<bool>, mut edges: Vec<(u32, u32)>) -> Option<usize> {
    edges.sort_unstable();
    let mut stack: Vec<u32> = (0..hopeful.len() as u32)
        .filter(|&i| hopeful[i as usize])
        .collect();
    while let Some(target) = stack.pop() {
        let from = edges.partition_point(|edge| edge.0 < target);
        for &(_, source) in edges[from..].iter().take_while(|edge| edge.0 == target) {
            if !std::mem::replace(&mut hopeful[source as usize], true) {
                stack.push(source);
            }
        }
    }
    hopeful.iter().position(|hopeful| !hopeful)
}

/// The way to a state, and one more action if given, as readable lines.
pub(super) fn trace<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    parents: &[Option<(usize, Action)>],
    index: usize,
    last: Option<Action>,
) -> Vec<String> {
    replay::<A>(bounds, path(parents, index).into_iter().chain(last))
}

/// The actions that lead to a state.
pub(super) fn path(parents: &[Option<(usize, Action)>], mut index: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some((parent, action)) = parents[index] {
        actions.push(action);
        index = parent;
    }
    actions.reverse();
    actions
}

/// Does the actions once more, from the first state, and puts them down as readable lines.
pub(super) fn replay<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    actions: impl IntoIterator<Item = Action>,
) -> Vec<String> {
    let mut state = State::<A>::first(bounds).expect("the first state was fine before");
    let mut lines = Vec::new();
    for action in actions {
        lines.push(state.describe(action));
        if let Err(fault) = state.act(action, bounds.channels) {
            lines.push(fault.to_string());
        }
    }
    lines
}
