//! All states and the steps between them, explored breadth-first: the first fault found is a
//! nearest one, and the graph can be searched for endless runs afterwards.

use std::collections::{HashMap, VecDeque};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use soloist_algorithms::{Algorithm, NodeId, Phase, Snapshot};
use xxhash_rust::xxh3::xxh3_128;

use super::components::Digraph;
use super::describe::number;
use super::interner::{Cause, Full, Interner, MessageFacts};
use super::plan::Plan;
use super::properties::View;
use super::system::{Action, Duty, Entry, Halt, System};
use super::{Limit, Outcome, Pass, Progress, Watch};
use crate::world::Fault;

/// The target of a step that is not followed.
pub(crate) const CUT: u32 = u32::MAX;

/// States are numbered in the order of their distance from the first one. They are identified by 96
/// bits of hash: among 10^9 states, two collide with a probability of 1 in 10^11.
pub(crate) struct Graph {
    pub system: System,
    pub(super) interner: Interner,
    /// The words of all states, concatenated, and where each state begins.
    words: Vec<u32>,
    begins: Vec<usize>,
    /// The state from which each one was first reached.
    parents: Vec<u32>,
    /// The targets of the steps of all states, in the order of their actions, and where those of
    /// each state begin.
    targets: Vec<u32>,
    targets_begin: Vec<usize>,
    numbers: HashTable<Known>,
    /// Whether properties are checked.
    judged: bool,
    /// The first minor fault, after which the search continued. A deadlock replaces a minor fault
    /// of another kind.
    minor: Option<(Fault, Vec<Action>)>,
    /// Whether the graph contains all states and steps. If not, a minor fault was found.
    pub is_complete: bool,
    /// Whether a minor fault ends the search, too.
    stops_at_minor: bool,
    /// The distance of the states whose steps are being followed. All states up to this distance
    /// were visited.
    pub depth: usize,
    /// The names of nodes in traces.
    pub(super) name: Box<dyn Fn(NodeId) -> String>,
}

impl Graph {
    /// Explores all states within the bounds and checks the properties of each. The error is the
    /// outcome of a search that does not get that far.
    pub(super) fn explore(plan: &Plan, watch: &mut Watch) -> Result<Self, Outcome> {
        Self::build(plan, true, watch)
    }

    /// Explores all states within the bounds without checking properties. Only a refused event ends
    /// it.
    pub(super) fn walk(plan: &Plan, watch: &mut Watch) -> Result<Self, Outcome> {
        Self::build(plan, false, watch)
    }

    fn build(plan: &Plan, judged: bool, watch: &mut Watch) -> Result<Self, Outcome> {
        let mut interner = plan.interner();
        let full = |_: Full| Outcome::NotExhausted {
            states: 0,
            limit: Limit::Numbers,
        };
        let (system, first, entry) = System::new(plan, &mut interner).map_err(full)?;
        let mut graph = Self::empty(system, interner, judged);
        graph.number(&first, 0);
        let judged = graph
            .judge_step(&first, entry)
            .and_then(|()| graph.judge_state(&first));
        if let Err(fault) = judged {
            let trace = Vec::new();
            return Err(Outcome::Broken { fault, trace });
        }
        match graph.expand_all(watch) {
            Err(Outcome::NotExhausted { .. }) if graph.minor.is_some() => {}
            result => result.map(|()| graph.is_complete = true)?,
        }
        Ok(graph)
    }

    /// Explores all states that can be reached from this one, until the first fault of any kind.
    /// The error is the outcome of a search that does not get to the end.
    pub(super) fn explore_from(
        (system, interner): (System, Interner),
        first: &[u32],
        name: Box<dyn Fn(NodeId) -> String>,
        watch: &mut Watch,
    ) -> (Self, Result<(), Outcome>) {
        let mut graph = Self::empty(system, interner, true);
        graph.stops_at_minor = true;
        graph.name = name;
        graph.number(first, 0);
        let trace = Vec::new();
        let result = match graph.judge_state(first) {
            Ok(()) => graph.expand_all(watch),
            Err(fault) => Err(Outcome::Broken { fault, trace }),
        };
        graph.is_complete = result.is_ok();
        (graph, result)
    }

    fn empty(system: System, interner: Interner, judged: bool) -> Self {
        Graph {
            system,
            interner,
            words: Vec::new(),
            begins: vec![0],
            parents: Vec::new(),
            targets: Vec::new(),
            targets_begin: vec![0],
            numbers: HashTable::new(),
            judged,
            minor: None,
            is_complete: false,
            stops_at_minor: false,
            depth: 0,
            name: Box::new(number),
        }
    }

    fn expand_all(&mut self, watch: &mut Watch) -> Result<(), Outcome> {
        let (mut state, mut after, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        let mut level_end = 1;
        let mut number = 0;
        while number < self.len() {
            if number == level_end {
                self.depth += 1;
                level_end = self.len();
            }
            if number.is_multiple_of(1 << 12) {
                let goes_on = watch(Progress {
                    pass: Pass::Graph,
                    states: self.len(),
                    depth: self.depth,
                });
                if !goes_on {
                    return Err(self.not_exhausted(Limit::Stopped));
                }
            }
            state.clear();
            state.extend_from_slice(self.state(number as u32));
            self.system.actions(&self.interner, &state, &mut actions);
            for &action in &actions {
                let target = self.follow(number as u32, &state, action, &mut after)?;
                self.targets.push(target);
            }
            self.targets_begin.push(self.targets.len());
            number += 1;
        }
        Ok(())
    }

    /// Takes a step and checks the state that it leads to.
    fn follow(
        &mut self,
        source: u32,
        state: &[u32],
        action: Action,
        after: &mut Vec<u32>,
    ) -> Result<u32, Outcome> {
        let entry = match self.step(state, action, after) {
            Ok(entry) => entry,
            Err(Stop::Broken(fault)) => {
                self.note(fault, source, action)?;
                return Ok(source);
            }
            Err(Stop::Full) => return Err(self.not_exhausted(Limit::Numbers)),
        };
        if let Err(fault) = self.judge_step(after, entry) {
            self.note(fault, source, action)?;
        }
        if after.len() - self.system.envelopes > self.system.limits.messages_max {
            if let Err(fault) = self.judge_state(after) {
                self.note(fault, source, action)?;
            }
            return Ok(CUT);
        }
        let (target, is_new) = self.number(after, source);
        if is_new {
            if self.len() > self.system.limits.states_max {
                return Err(self.not_exhausted(Limit::States));
            }
            if let Err(fault) = self.judge_state(after) {
                self.note(fault, source, action)?;
            }
        }
        Ok(target)
    }

    /// Records a fault. It ends the search unless a worse fault may follow.
    fn note(&mut self, fault: Fault, source: u32, action: Action) -> Result<(), Outcome> {
        let worse = |(known, _): &(Fault, _)| fault.is_deadlock() && !known.is_deadlock();
        let is_minor = fault.is_minor() && !self.stops_at_minor;
        if is_minor && self.minor.as_ref().is_some_and(|minor| !worse(minor)) {
            return Ok(());
        }
        let mut way = self.way_to(source);
        way.push(action);
        if is_minor {
            self.minor = Some((fault, way));
            return Ok(());
        }
        let trace = self.describe(way);
        Err(Outcome::Broken { fault, trace })
    }

    /// Returns the recorded minor fault, if any, with its trace.
    pub(super) fn take_minor(&mut self) -> Option<(Fault, Vec<String>)> {
        let (fault, way) = self.minor.take()?;
        Some((fault, self.describe(way)))
    }

    pub(super) fn step(
        &mut self,
        state: &[u32],
        action: Action,
        after: &mut Vec<u32>,
    ) -> Result<Entry, Stop> {
        loop {
            let cause: Cause = match self.system.step(&self.interner, state, action, after) {
                Ok(entry) => return Ok(entry),
                Err(Halt::Broken(fault)) => return Err(Stop::Broken(fault)),
                Err(Halt::Unknown(cause)) => cause,
            };
            self.interner.learn(cause).map_err(|Full| Stop::Full)?;
        }
    }

    fn view<'a>(&'a self, state: &'a [u32], entry: Entry) -> View<'a> {
        View {
            system: &self.system,
            interner: &self.interner,
            state,
            entry,
        }
    }

    fn judge_step(&self, state: &[u32], entry: Entry) -> Result<(), Fault> {
        if self.judged {
            self.view(state, entry).judge_step()?;
        }
        Ok(())
    }

    fn judge_state(&self, state: &[u32]) -> Result<(), Fault> {
        if self.judged {
            self.view(state, Entry::default()).judge_state()?;
        }
        Ok(())
    }

    /// A state, as the algorithm sees it.
    pub(super) fn snapshot<A: Algorithm>(&self, state: u32) -> impl Snapshot<A> + '_ {
        let cluster = self.system.cluster(self.state(state));
        self.interner.stepper::<A>().snapshot(cluster)
    }

    /// Number of messages in flight.
    pub(super) fn envelopes(&self, state: u32) -> usize {
        self.state(state).len() - self.system.envelopes
    }

    /// Whether no message is in flight, except a circulating token.
    pub(super) fn only_roaming_in_flight(&self, state: u32) -> bool {
        let mut envelopes = self.system.envelopes(self.state(state));
        envelopes.all(|envelope| self.interner.message(envelope.message()).is_roaming)
    }

    /// Returns the number of a state, and whether the state is new.
    fn number(&mut self, state: &[u32], parent: u32) -> (u32, bool) {
        let (hash, check) = hash(state);
        let is_it = |known: &Known| known.hash == hash && known.check == check;
        match self.numbers.entry(hash, is_it, |known| known.hash) {
            Slot::Occupied(known) => (known.get().number, false),
            Slot::Vacant(vacant) => {
                let number = self.parents.len() as u32;
                vacant.insert(Known {
                    hash,
                    check,
                    number,
                });
                self.words.extend_from_slice(state);
                self.begins.push(self.words.len());
                self.parents.push(parent);
                (number, true)
            }
        }
    }

    /// Number of states.
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Number of steps that are not followed.
    pub(super) fn cut(&self) -> usize {
        self.targets.iter().filter(|&&target| target == CUT).count()
    }

    /// Number of steps that are followed.
    pub(super) fn transitions(&self) -> usize {
        self.targets.len() - self.cut()
    }

    pub(super) fn state(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.words[self.begins[number]..self.begins[number + 1]]
    }

    /// The targets of a state's steps, in the order of its actions.
    pub(super) fn targets(&self, state: u32) -> &[u32] {
        let state = state as usize;
        &self.targets[self.targets_begin[state]..self.targets_begin[state + 1]]
    }

    /// The steps from a state: the action, the duty that it fulfils, and the target.
    pub(super) fn steps(&self, number: u32) -> Vec<Step> {
        let state = self.state(number);
        let mut actions = Vec::new();
        self.system.actions(&self.interner, state, &mut actions);
        let steps = actions.into_iter().zip(self.targets(number));
        let steps = steps.map(|(action, &target)| Step {
            action,
            duty: self.system.duty(&self.interner, state, action),
            target,
        });
        // `Settled` at a node that is not ready for it changes nothing and does not count as a
        // step.
        let changes =
            |step: &Step| step.target != number || !matches!(step.action, Action::Settled(_));
        steps.filter(changes).collect()
    }

    pub(super) fn phase(&self, state: u32, node: NodeId) -> Phase {
        let word = self.system.word(self.state(state), node);
        self.interner.facts(word.local()).phase
    }

    /// Facts about the message that an action delivers or loses, if any.
    pub(super) fn message(&self, state: u32, action: Action) -> Option<&MessageFacts> {
        let envelope = self.system.envelope(self.state(state), action)?;
        Some(self.interner.message(envelope.message()))
    }

    /// Number of messages that a step sends.
    pub(super) fn sent(&self, state: u32, step: &Step) -> usize {
        let taken = usize::from(self.message(state, step.action).is_some());
        self.envelopes(step.target) + taken - self.envelopes(state)
    }

    /// The node that enters on a step from one state to another, if any.
    pub(super) fn entered(&self, before: u32, after: u32) -> Option<NodeId> {
        let is_inside = |state, node| self.phase(state, node) == Phase::Inside;
        let mut nodes = NodeId::all(self.system.nodes);
        nodes.find(|&node| is_inside(after, node) && !is_inside(before, node))
    }

    pub(super) fn waits(&self, state: u32, node: NodeId) -> bool {
        self.system.waits(&self.interner, self.state(state), node)
    }

    fn not_exhausted(&self, limit: Limit) -> Outcome {
        Outcome::NotExhausted {
            states: self.len(),
            limit,
        }
    }

    /// The actions on a shortest path to a state.
    pub(super) fn way_to(&mut self, number: u32) -> Vec<Action> {
        let mut way = vec![number];
        while let Some(&last) = way.last().filter(|&&last| last != 0) {
            way.push(self.parents[last as usize]);
        }
        way.reverse();
        way.windows(2)
            .map(|pair| self.between(pair[0], pair[1]))
            .collect()
    }

    /// The states on a run from the first one.
    pub(super) fn states_on(&self, run: &[Action]) -> Vec<u32> {
        let mut states = vec![0];
        let mut here = 0;
        for action in run {
            let mut steps = self.steps(here).into_iter();
            let step = steps.find(|step| step.action == *action);
            here = step.expect("a run of this graph").target;
            states.push(here);
        }
        states
    }

    /// An action that leads from one state to another.
    fn between(&mut self, source: u32, target: u32) -> Action {
        let state = self.state(source).to_vec();
        let (mut actions, mut after) = (Vec::new(), Vec::new());
        self.system.actions(&self.interner, &state, &mut actions);
        let leads_there = |action: &Action| {
            let stepped = self.step(&state, *action, &mut after);
            stepped.is_ok() && after == self.state(target)
        };
        let found = actions.iter().copied().find(leads_there);
        found.expect("the state was reached by a step")
    }

    /// The shortest walk that ends with a step for which `is_last` returns true, within a strongly
    /// connected component that has such a step. The component must be sorted.
    pub(super) fn shortest_walk(
        &self,
        component: &[u32],
        from: u32,
        is_last: impl Fn(&Step) -> bool,
    ) -> Vec<Step> {
        let mut came_by: HashMap<u32, (u32, Step)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            for step in self.steps(state) {
                if component.binary_search(&step.target).is_err() {
                    continue;
                }
                if is_last(&step) {
                    let mut walk = vec![step];
                    let mut at = state;
                    while at != from {
                        let (before, step) = came_by.remove(&at).expect("it was reached");
                        walk.push(step);
                        at = before;
                    }
                    walk.reverse();
                    return walk;
                }
                came_by.entry(step.target).or_insert_with(|| {
                    queue.push_back(step.target);
                    (state, step)
                });
            }
        }
        unreachable!("a strongly connected component has a path to that step")
    }
}

impl Digraph for Graph {
    fn len(&self) -> usize {
        Graph::len(self)
    }

    fn targets(&self, node: u32) -> &[u32] {
        Graph::targets(self, node)
    }
}

/// A run that never ends.
pub(crate) struct Endless {
    /// The path to the cycle.
    pub way: Vec<Action>,
    /// The steps that repeat from there on.
    pub cycle: Vec<Action>,
}

pub(crate) enum Stop {
    Broken(Fault),
    Full,
}

/// A step to another state.
pub(crate) struct Step {
    pub action: Action,
    pub duty: Option<Duty>,
    pub target: u32,
}

/// Hash and number of a state. Everything that a lookup needs is in one place in memory.
struct Known {
    hash: u64,
    check: u32,
    number: u32,
}

fn hash(state: &[u32]) -> (u64, u32) {
    let bytes: &[u8] = bytemuck::cast_slice(state);
    let hash = xxh3_128(bytes);
    (hash as u64, (hash >> 64) as u32)
}
