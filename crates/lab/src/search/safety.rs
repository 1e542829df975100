//! Search for safety violations with `stateright` on all cores: depth-first if all runs end,
//! otherwise breadth-first. It keeps a 64-bit hash per state, so two different states may be taken
//! for one. With 10^8 states, that happens in one search of four thousand.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock, RwLockReadGuard};
use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::describe::number;
use super::interner::{Full, Interner};
use super::plan::Plan;
use super::properties::View;
use super::reduction::{self, reduce};
use super::system::{Action, Entry, Halt, System};
use super::{ENDLESS, Limit, Outcome, Pass, Progress, Watch};
use crate::world::Fault;

/// The only property checked by stateright: a step that violates any of ours leads to [`BROKEN`].
const SAFE: &str = "nothing is broken";

/// The state after a violation. All other states have more words.
const BROKEN: [u32; 1] = [u32::MAX];

struct Safety {
    system: System,
    first: Vec<u32>,
    interner: RwLock<Interner>,
    /// Once set, no further state is expanded.
    stopped: OnceLock<Limit>,
    is_minor_broken: AtomicBool,
    /// Whether a minor fault ends the search like any other.
    stops_at_minor: bool,
    /// Whether partial-order reduction is applied.
    reduces: bool,
    /// The search has ended, and the path to a fault is being reconstructed.
    is_over: AtomicBool,
    cut: AtomicUsize,
}

/// Searches for safety violations. A minor fault ends the search if `stops_at_minor`. Otherwise the
/// search goes on, and returns `None` if it finds no worse one: it keeps no traces of minor faults.
pub(super) fn search(plan: &Plan, stops_at_minor: bool, watch: &mut Watch) -> Option<Outcome> {
    let mut interner = plan.interner();
    let (system, first, entry) = match System::new(plan, &mut interner) {
        Ok(first) => first,
        Err(Full) => {
            let limit = Limit::Numbers;
            return Some(Outcome::NotExhausted { states: 0, limit });
        }
    };
    let safety = Safety {
        system,
        first,
        interner: RwLock::new(interner),
        stopped: OnceLock::new(),
        is_minor_broken: AtomicBool::new(false),
        stops_at_minor,
        reduces: reduction::applies(plan),
        is_over: AtomicBool::new(false),
        cut: AtomicUsize::new(0),
    };
    if let Err(fault) = safety.judge(&safety.interner(), &safety.first, entry) {
        let trace = Vec::new();
        return Some(Outcome::Broken { fault, trace });
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let endless = plan.requests.contains(&ENDLESS) || plan.limits.crashes.are_endless();
    let roams = safety.first.len() > safety.system.envelopes;
    let checker = safety
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::Any);
    if endless || roams {
        // An endless run can be as long as there are states, and a depth-first search copies the
        // path to each state.
        conclude(checker.spawn_bfs(), plan.limits.states_max, watch)
    } else {
        conclude(checker.spawn_dfs(), plan.limits.states_max, watch)
    }
}

/// Watches a search until it ends or has to stop.
fn conclude(
    checker: impl Checker<Safety>,
    states_max: usize,
    watch: &mut Watch,
) -> Option<Outcome> {
    while !checker.is_done() {
        #[expect(
            clippy::disallowed_methods,
            reason = "polls threads; no result depends on it"
        )]
        std::thread::sleep(Duration::from_millis(2));
        let states = checker.unique_state_count();
        let goes_on = watch(Progress {
            pass: Pass::Safety,
            states,
            depth: checker.max_depth(),
        });
        let stopped = &checker.model().stopped;
        if !goes_on {
            stopped.get_or_init(|| Limit::Stopped);
        } else if states > states_max {
            stopped.get_or_init(|| Limit::States);
        }
    }
    let checker = checker.join();
    let model = checker.model();
    model.is_over.store(true, Ordering::Relaxed);
    let states = checker.unique_state_count();
    if let Some(path) = checker.discovery(SAFE) {
        let (fault, trace) = model.describe(path.into_actions());
        return Some(Outcome::Broken { fault, trace });
    }
    if model.is_minor_broken.load(Ordering::Relaxed) {
        return None;
    }
    if let Some(&limit) = model.stopped.get() {
        return Some(Outcome::NotExhausted { states, limit });
    }
    let cut = model.cut.load(Ordering::Relaxed);
    // stateright also counts the first state, which no transition leads to.
    let transitions = checker.state_count() - 1;
    Some(Outcome::Holds {
        states,
        transitions,
        cut,
    })
}

impl Safety {
    fn interner(&self) -> RwLockReadGuard<'_, Interner> {
        self.interner.read().expect("no thread panicked")
    }

    fn judge(&self, interner: &Interner, state: &[u32], entry: Entry) -> Result<(), Fault> {
        let view = View {
            system: &self.system,
            interner,
            state,
            entry,
        };
        for judged in [view.judge_step(), view.judge_state()] {
            match judged {
                Err(fault) if fault.is_minor() && !self.stops_at_minor => {
                    self.is_minor_broken.store(true, Ordering::Relaxed);
                }
                judged => judged?,
            }
        }
        Ok(())
    }

    /// Returns the successor of a state, or `None` if the interner is full.
    fn step(&self, state: &[u32], action: Action) -> Option<Result<Vec<u32>, Fault>> {
        let mut after = Vec::with_capacity(state.len() + 4);
        loop {
            let interner = self.interner();
            let cause = match self.system.step(&interner, state, action, &mut after) {
                Ok(entry) => {
                    let judged = self.judge(&interner, &after, entry);
                    return Some(judged.map(|()| after));
                }
                Err(Halt::Broken(fault)) => return Some(Err(fault)),
                Err(Halt::Unknown(cause)) => cause,
            };
            drop(interner);
            let mut interner = self.interner.write().expect("no thread panicked");
            if let Err(Full) = interner.learn(cause) {
                self.stopped.get_or_init(|| Limit::Numbers);
                return None;
            }
        }
    }

    /// Removes the actions that may be postponed, or none if the interner is full.
    fn reduce(&self, state: &[u32], actions: &mut Vec<Action>) {
        loop {
            let unknown = reduce(&self.system, &self.interner(), state, actions);
            let Err(prospect) = unknown else {
                return;
            };
            let mut interner = self.interner.write().expect("no thread panicked");
            if let Err(Full) = interner.find_notes(prospect) {
                self.stopped.get_or_init(|| Limit::Numbers);
                return;
            }
        }
    }

    /// Repeats the actions from the first state and formats them as steps of a scenario. The last
    /// one violates a property.
    fn describe(&self, actions: Vec<Action>) -> (Fault, Vec<String>) {
        let mut state = self.first.clone();
        let mut lines = Vec::new();
        for action in actions {
            lines.push(
                self.system
                    .describe(&self.interner(), &state, action, &number),
            );
            match self.step(&state, action) {
                Some(Ok(after)) => state = after,
                Some(Err(fault)) => return (fault, lines),
                None => break,
            }
        }
        unreachable!("the path ends with a violation")
    }
}

impl Model for Safety {
    type State = Vec<u32>;
    type Action = Action;

    fn init_states(&self) -> Vec<Vec<u32>> {
        vec![self.first.clone()]
    }

    fn actions(&self, state: &Vec<u32>, actions: &mut Vec<Action>) {
        let goes_on = self.stopped.get().is_none() || self.is_over.load(Ordering::Relaxed);
        if *state != BROKEN && goes_on {
            self.system.actions(&self.interner(), state, actions);
            if self.reduces {
                self.reduce(state, actions);
            }
        }
    }

    fn next_state(&self, state: &Vec<u32>, action: Action) -> Option<Vec<u32>> {
        match self.step(state, action)? {
            Ok(after) => Some(after),
            Err(_) => Some(BROKEN.to_vec()),
        }
    }

    fn within_boundary(&self, state: &Vec<u32>) -> bool {
        let envelopes = state.len().saturating_sub(self.system.envelopes);
        let is_within = envelopes <= self.system.limits.messages_max || *state == self.first;
        if !is_within {
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        is_within
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(SAFE, |_, state| *state != BROKEN)]
    }
}
