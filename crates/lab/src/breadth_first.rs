//! Breadth-first search of a state space: a violation comes with a shortest way to it.
//!
//! Visited states are identified by 128 bits of hash; only those that have not been expanded are
//! kept whole. The algorithms' own search, [`search`](mod@crate::search), packs its states.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3;

use crate::search::{Limit, Verdict};

/// A state of a search, and what can happen in it.
pub trait Space: Clone {
    /// A step from one state to another.
    type Action: Copy;

    /// The steps that are possible in this state, always in the same order.
    fn actions(&self) -> Vec<Self::Action>;

    /// Takes a step, in place. The error is the property that the step violates.
    fn apply(&mut self, action: Self::Action) -> Result<(), String>;

    /// Checks a state that was reached for the first time.
    fn check(&self) -> Result<(), String>;

    /// Identifies the state: states with equal futures have equal fingerprints.
    fn fingerprint(&self) -> u128;
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome<A> {
    /// All states were visited, and nothing is violated.
    Holds {
        /// Number of states.
        states: usize,
    },
    /// A property is violated.
    Broken {
        /// A shortest way to it.
        actions: Vec<A>,
        /// What is violated.
        violation: String,
        /// Number of states visited.
        states: usize,
    },
    /// The watcher stopped the search, and there was no violation so far.
    Stopped {
        /// Number of states visited.
        states: usize,
    },
}

/// Progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of states visited.
    pub states: usize,
    /// Distance of the last one from the first, in steps.
    pub depth: usize,
}

/// Number of states between two calls of the watcher.
const WATCHED_EVERY: usize = 1024;

/// Visits all states that can be reached from `first`. Calls `watch` from time to time, which
/// returns whether to continue.
pub fn search<S: Space>(first: S, watch: &mut dyn FnMut(Progress) -> bool) -> Outcome<S::Action> {
    if let Err(violation) = first.check() {
        return Outcome::Broken {
            actions: Vec::new(),
            violation,
            states: 1,
        };
    }
    let mut seen = FxHashSet::from_iter([first.fingerprint()]);
    let mut ways = Ways(vec![None]);
    let mut open = VecDeque::from([(0, first)]);
    let (mut depth, mut next_depth) = (0, 1);
    while let Some((number, state)) = open.pop_front() {
        if number == next_depth {
            depth += 1;
            next_depth = ways.0.len();
        }
        for action in state.actions() {
            let mut next = state.clone();
            let applied = next.apply(action);
            if applied.is_ok() && !seen.insert(next.fingerprint()) {
                continue;
            }
            let reached = ways.add(number, action);
            if let Err(violation) = applied.and_then(|()| next.check()) {
                return Outcome::Broken {
                    actions: ways.to(reached),
                    violation,
                    states: ways.0.len(),
                };
            }
            open.push_back((reached, next));
            let states = ways.0.len();
            if states.is_multiple_of(WATCHED_EVERY)
                && !watch(Progress {
                    states,
                    depth: depth + 1,
                })
            {
                return Outcome::Stopped { states };
            }
        }
    }
    let states = ways.0.len();
    Outcome::Holds { states }
}

/// What a search found, for a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// Number of states visited.
    pub states: usize,
    /// What is violated, or why the search was not exhausted.
    pub what: Option<String>,
    /// A shortest way to the violation, as text.
    pub text: Option<String>,
}

/// Visits all states that can be reached from `first`, and at most `states_max`. Calls `watch` from
/// time to time, which returns whether to continue. `text` writes a way to a violation as text.
pub fn find<S: Space>(
    first: S,
    states_max: usize,
    watch: &mut dyn FnMut(Progress) -> bool,
    text: impl FnOnce(&[S::Action], &str) -> String,
) -> Finding {
    let mut limit = Limit::Stopped;
    let outcome = search(first, &mut |progress| {
        if progress.states >= states_max {
            limit = Limit::States;
            return false;
        }
        watch(progress)
    });
    let (verdict, states, what, text) = match outcome {
        Outcome::Holds { states } => (Verdict::Holds, states, None, None),
        Outcome::Stopped { states } => {
            let why = limit.text().to_owned();
            (Verdict::NotExhausted, states, Some(why), None)
        }
        Outcome::Broken {
            actions,
            violation,
            states,
        } => {
            let text = text(&actions, &violation);
            (Verdict::Broken, states, Some(violation), Some(text))
        }
    };
    Finding {
        verdict,
        states,
        what,
        text,
    }
}

/// How each state was reached: its predecessor and the step from there, or `None` for the first.
struct Ways<A>(Vec<Option<(usize, A)>>);

impl<A: Copy> Ways<A> {
    fn add(&mut self, from: usize, action: A) -> usize {
        self.0.push(Some((from, action)));
        self.0.len() - 1
    }

    fn to(&self, mut state: usize) -> Vec<A> {
        let mut actions = Vec::new();
        while let Some((from, action)) = self.0[state] {
            actions.push(action);
            state = from;
        }
        actions.reverse();
        actions
    }
}

/// A hash by which values are identified.
pub fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = Xxh3::new();
    value.hash(&mut hasher);
    hasher.digest128()
}

/// A value that most copies of a state share, with its fingerprint.
#[derive(Clone, Debug)]
pub struct Shared<T> {
    value: Arc<T>,
    fingerprint: u128,
}

impl<T: Clone + Hash> Shared<T> {
    /// A value and its fingerprint.
    pub fn new(value: T) -> Self {
        Shared {
            fingerprint: fingerprint(&value),
            value: Arc::new(value),
        }
    }

    /// Changes the value, in this copy alone.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(Arc::make_mut(&mut self.value));
        self.fingerprint = fingerprint(&*self.value);
        result
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fingerprint.hash(hasher);
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two counters that may be raised up to 9. Their sum must stay below a limit.
    #[derive(Clone, Hash)]
    struct Counters {
        counts: [u8; 2],
        limit: u8,
    }

    impl Space for Counters {
        type Action = usize;

        fn actions(&self) -> Vec<usize> {
            (0..2).filter(|&which| self.counts[which] < 9).collect()
        }

        fn apply(&mut self, which: usize) -> Result<(), String> {
            self.counts[which] += 1;
            Ok(())
        }

        fn check(&self) -> Result<(), String> {
            let sum = self.counts[0] + self.counts[1];
            if sum < self.limit {
                return Ok(());
            }
            Err(format!("the sum is {sum}"))
        }

        fn fingerprint(&self) -> u128 {
            fingerprint(self)
        }
    }

    fn counters(limit: u8) -> Counters {
        Counters {
            counts: [0, 0],
            limit,
        }
    }

    #[test]
    fn all_states_are_visited_once() {
        let outcome = search(counters(99), &mut |_| true);
        assert_eq!(outcome, Outcome::Holds { states: 100 });
    }

    #[test]
    fn a_violation_comes_with_a_shortest_way() {
        let outcome = search(counters(3), &mut |_| true);
        let violation = "the sum is 3".to_owned();
        let states = 1 + 2 + 3 + 1;
        let actions = vec![0, 0, 0];
        assert_eq!(
            outcome,
            Outcome::Broken {
                actions,
                violation,
                states
            }
        );
    }

    #[test]
    fn the_first_state_is_checked_too() {
        let outcome = search(counters(0), &mut |_| true);
        let violation = "the sum is 0".to_owned();
        assert_eq!(
            outcome,
            Outcome::Broken {
                actions: Vec::new(),
                violation,
                states: 1
            }
        );
    }

    /// A chain of states.
    #[derive(Clone, Hash)]
    struct Chain(u32);

    impl Space for Chain {
        type Action = ();

        fn actions(&self) -> Vec<()> {
            vec![(); usize::from(self.0 < 5000)]
        }

        fn apply(&mut self, (): ()) -> Result<(), String> {
            self.0 += 1;
            Ok(())
        }

        fn check(&self) -> Result<(), String> {
            Ok(())
        }

        fn fingerprint(&self) -> u128 {
            self.0.into()
        }
    }

    #[test]
    fn the_watcher_hears_of_the_depth_and_may_stop_the_search() {
        let mut seen = Vec::new();
        let outcome = search(Chain(0), &mut |progress| {
            seen.push((progress.states, progress.depth));
            progress.states < 2048
        });
        assert_eq!(outcome, Outcome::Stopped { states: 2048 });
        assert_eq!(seen, [(1024, 1023), (2048, 2047)]);
    }
}
