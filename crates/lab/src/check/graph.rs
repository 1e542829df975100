//! All states of a small cluster and the steps between them, kept for questions about endless runs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use soloist_algorithms::{Algorithm, Channels, NodeId, Phase};

use super::search::{Action, Bounds, State, trace};
use crate::network::Letter;
use crate::world::Fault;

/// The target of a step that is not followed.
pub(super) const CUT: u32 = u32::MAX;

/// What has to happen some time if it can happen all the time.
#[derive(PartialEq, Eq, Hash)]
enum Duty<M> {
    Leave(NodeId),
    /// The oldest message of a channel arrives.
    ArriveInOrder(NodeId, NodeId),
    Arrive(Letter<M>),
}

impl<M: Clone + Ord> Duty<M> {
    /// The duty that an action does.
    fn of<A: Algorithm<Message = M>>(
        state: &State<A>,
        action: Action,
        channels: Channels,
    ) -> Option<Self> {
        match action {
            Action::Request(_) => None,
            Action::Release(node) => Some(Duty::Leave(node)),
            Action::Deliver(place) => {
                let letter = &state.network.letters()[place];
                Some(match channels {
                    Channels::Fifo => Duty::ArriveInOrder(letter.from, letter.to),
                    Channels::Any => Duty::Arrive(letter.clone()),
                })
            }
        }
    }
}

/// From one state to another.
pub(super) struct Step {
    pub(super) action: Action,
    /// The number of the duty that it does, if any.
    pub(super) duty: Option<u32>,
    pub(super) target: u32,
}

/// All states and steps. States have numbers, in the order of their distance from the first.
pub(super) struct Graph {
    pub(super) parents: Vec<Option<(usize, Action)>>,
    /// The nodes that wait in a state, a bit a node.
    waiting: Vec<u64>,
    /// The steps of all states, one state after the other, and where those of a state begin.
    steps: Vec<Step>,
    begins: Vec<usize>,
}

/// Why there is no graph.
pub(super) enum NoGraph {
    Broken { fault: Fault, trace: Vec<String> },
    TooLarge,
}

impl Graph {
    /// All states that can be reached with no more than `letters_max` messages under way.
    pub(super) fn explore<A: Algorithm>(
        bounds: &Bounds<A::Shape>,
        letters_max: usize,
    ) -> Result<Self, NoGraph> {
        assert!(bounds.requests.len() <= 64, "a bit a node");
        let broken = |fault, trace| NoGraph::Broken { fault, trace };
        let first = State::<A>::first(bounds).map_err(|fault| broken(fault, Vec::new()))?;
        let mut seen = HashMap::from([(first.fingerprint(), 0)]);
        let mut duties = HashMap::new();
        let mut graph = Graph {
            parents: vec![None],
            waiting: vec![waiting(&first)],
            steps: Vec::new(),
            begins: vec![0],
        };
        let mut queue = VecDeque::from([first]);
        while let Some(state) = queue.pop_front() {
            let index = graph.begins.len() - 1;
            for action in state.actions(bounds.channels) {
                let duty = Duty::of(&state, action, bounds.channels).map(|duty| {
                    let number = duties.len() as u32;
                    *duties.entry(duty).or_insert(number)
                });
                let mut after = state.clone();
                if let Err(fault) = after.act(action, bounds.channels) {
                    let trace = trace::<A>(bounds, &graph.parents, index, Some(action));
                    return Err(broken(fault, trace));
                }
                let number = graph.parents.len();
                let target = match seen.entry(after.fingerprint()) {
                    _ if after.network.letters().len() > letters_max => CUT,
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(_) if number >= bounds.states_max => {
                        return Err(NoGraph::TooLarge);
                    }
                    Entry::Vacant(vacant) => {
                        graph.parents.push(Some((index, action)));
                        graph.waiting.push(waiting(&after));
                        queue.push_back(after);
                        *vacant.insert(number as u32)
                    }
                };
                graph.steps.push(Step {
                    action,
                    duty,
                    target,
                });
            }
            graph.begins.push(graph.steps.len());
        }
        Ok(graph)
    }

    /// How many steps are not followed.
    pub(super) fn cut(&self) -> usize {
        self.steps.iter().filter(|step| step.target == CUT).count()
    }

    pub(super) fn steps_of(&self, state: u32) -> &[Step] {
        let state = state as usize;
        &self.steps[self.begins[state]..self.begins[state + 1]]
    }

    /// Whether the duty could be done in this state.
    pub(super) fn is_open(&self, duty: u32, state: u32) -> bool {
        self.steps_of(state).iter().any(|s| s.duty == Some(duty))
    }

    /// Calls `visit` with each strongly connected component of the states in which `node` waits:
    /// Tarjan 1972, *Depth-first search and linear graph algorithms*, with a stack of its own.
    pub(super) fn components_while_waiting(&self, node: NodeId, mut visit: impl FnMut(&mut [u32])) {
        const NEW: u32 = u32::MAX;
        const DONE: u32 = u32::MAX - 1;
        let waits = |state: u32| self.waiting[state as usize] >> node.index() & 1 == 1;
        // When a state was first seen; the earliest seen one that it is known to lead to.
        let mut order = vec![NEW; self.parents.len()];
        let mut low = order.clone();
        let mut open = Vec::new();
        let mut calls: Vec<(u32, usize)> = Vec::new();
        let mut clock = 0;
        for root in (0..self.parents.len() as u32).filter(|&state| waits(state)) {
            let mut enter = (order[root as usize] == NEW).then_some(root);
            loop {
                if let Some(state) = enter.take() {
                    order[state as usize] = clock;
                    low[state as usize] = clock;
                    clock += 1;
                    open.push(state);
                    calls.push((state, 0));
                }
                let Some((state, next)) = calls.last_mut() else {
                    break;
                };
                let here = *state as usize;
                if let Some(step) = self.steps_of(*state).get(*next) {
                    *next += 1;
                    let there = step.target;
                    if there == CUT || !waits(there) {
                        continue;
                    }
                    match order[there as usize] {
                        NEW => enter = Some(there),
                        DONE => {}
                        seen => low[here] = low[here].min(seen),
                    }
                    continue;
                }
                calls.pop();
                if let Some((caller, _)) = calls.last() {
                    let caller = *caller as usize;
                    low[caller] = low[caller].min(low[here]);
                }
                if low[here] == order[here] {
                    let begin = open.iter().rposition(|&s| s as usize == here);
                    let mut component = open.split_off(begin.expect("a state is open until here"));
                    component.iter().for_each(|&s| order[s as usize] = DONE);
                    visit(&mut component);
                }
            }
        }
    }
}

/// The nodes that wait, a bit a node.
fn waiting<A: Algorithm>(state: &State<A>) -> u64 {
    let nodes = state.world.iter();
    let waiting = nodes.filter(|(_, node)| node.phase() == Phase::Waiting);
    waiting.fold(0, |bits, (node, _)| bits | 1 << node.index())
}
