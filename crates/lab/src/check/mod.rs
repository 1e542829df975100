//! Searches every interleaving of a small cluster.
//!
//! A state of the cluster is a flat list of words (`words`) that stand for nodes' states and messages
//! (`parts`); `system` says which steps lead from one to another, and `properties` what must be
//! so. Two searches go through the states: `safety`, depth first on all cores, which keeps hashes
//! alone and, on its own, lets messages wait that may (`postpone`); and `graph`, breadth first, which keeps all states and steps, so that a fault comes with a
//! shortest trace, and `starvation` can look for endless runs.

#[cfg(test)]
mod alone;
mod bounds;
mod case;
mod components;
pub(crate) mod graph;
mod interner;
mod packed;
mod properties;
mod quiescence;
mod reduction;
mod safety;
mod starvation;
pub mod suite;
mod system;

use soloist_algorithms::{Algorithm, NodeId};

pub use bounds::{Bounds, Crashes, ENDLESS};
pub use case::{Case, CaseError, Report, Verdict};

use crate::world::Fault;
use graph::{Graph, NoGraph};

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every reachable state was seen, and all is well: nothing broke, and in every fair run everybody
    /// who asks enters.
    Holds {
        /// How many states there are.
        states: usize,
        /// How many steps were not followed, since too many messages would be under way. If none,
        /// this holds for all runs.
        cut: usize,
    },
    /// Something broke; the trace is a shortest one.
    Broken {
        /// What broke.
        fault: Fault,
        /// How to get there, as steps of a scenario.
        trace: Vec<String>,
    },
    /// A node may wait for ever.
    Starved {
        /// The node.
        node: NodeId,
        /// How it comes to that, as steps of a scenario.
        trace: Vec<String>,
        /// What can happen over and over from there on, in all fairness; nothing, if the run ends.
        cycle: Vec<String>,
    },
    /// Nobody waits or is inside, nobody asks, and yet messages go on for ever. A token that roams by
    /// design is no such case.
    Restless {
        /// How it comes to that, as steps of a scenario.
        trace: Vec<String>,
        /// What goes on over and over.
        cycle: Vec<String>,
    },
    /// There are more states than were looked at; nothing broke so far.
    NotExhausted {
        /// How many were seen.
        states: usize,
        /// Why there were not more.
        limit: Limit,
    },
}

/// Why a search did not see everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// There are more states than were allowed.
    States,
    /// Nodes have more different states, or there are more different messages, than a search can number.
    Numbers,
    /// Who watches it said so; for want of memory, say.
    Stopped,
}

impl Limit {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Limit::States => "more states than allowed",
            Limit::Numbers => "more different states of nodes, or messages, than can be numbered",
            Limit::Stopped => "memory runs short",
        }
    }
}

/// How far a search is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What it is at.
    pub pass: Pass,
    /// How many states it has seen.
    pub states: usize,
    /// How many steps the farthest one is away from the first.
    pub depth: usize,
}

/// What a search is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// Depth first, on all cores: what must never happen.
    Safety,
    /// Breadth first: all states and steps, for shortest traces.
    Graph,
    /// Among those, endless runs in which somebody waits.
    EndlessRuns,
}

/// Hears now and then how far a search is, and says whether it may go on.
pub type Watch<'a> = dyn FnMut(Progress) -> bool + 'a;

/// Searches all states within the bounds, breadth first, on one core.
///
/// ```
/// use soloist_algorithms::raymond::Raymond;
/// use soloist_lab::check::{Bounds, Outcome, search};
///
/// let outcome = search::<Raymond>(&Bounds::of::<Raymond>(&[2, 2, 2]));
/// assert!(matches!(outcome, Outcome::Holds { .. }));
/// ```
///
/// # Panics
/// If there are more than [64 nodes](Bounds::NODES_MAX), or crashes although the algorithm knows no
/// recovery.
pub fn search<A: Algorithm>(bounds: &Bounds<A::Shape>) -> Outcome {
    search_watched::<A>(bounds, &mut |_| true)
}

fn search_watched<A: Algorithm>(bounds: &Bounds<A::Shape>, watch: &mut Watch) -> Outcome {
    let mut graph = match Graph::<A>::explore(bounds, watch) {
        Ok(graph) => graph,
        Err(NoGraph::Broken { fault, trace }) => return Outcome::Broken { fault, trace },
        Err(NoGraph::NotExhausted { states, limit }) => {
            return Outcome::NotExhausted { states, limit };
        }
    };
    watch(Progress {
        pass: Pass::EndlessRuns,
        states: graph.len(),
        depth: 0,
    });
    let minor = graph.take_minor();
    let is_deadlock = minor.as_ref().is_some_and(|(fault, _)| fault.is_deadlock());
    let looks_on = graph.is_complete && !is_deadlock;
    if let Some((node, run)) = looks_on.then(|| starvation::find(&mut graph)).flatten() {
        let (trace, cycle) = graph.describe_endless(run);
        return Outcome::Starved { node, trace, cycle };
    }
    if let Some((fault, trace)) = minor {
        return Outcome::Broken { fault, trace };
    }
    match quiescence::find(&mut graph) {
        Some(run) => {
            let (trace, cycle) = graph.describe_endless(run);
            Outcome::Restless { trace, cycle }
        }
        None => Outcome::Holds {
            states: graph.len(),
            cut: graph.cut(),
        },
    }
}

/// As [`check`] with one request a node, then two, four and so on up to the bounds: so a fault is found where
/// few requests make it. After one that is not yet two inside, the search goes on to see if that
/// comes of more requests, in as many states as `worse_max`.
pub(crate) fn deepen<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    worse_max: usize,
    watch: &mut Watch,
) -> Outcome {
    let most = bounds.requests.iter().copied().max().unwrap_or(0).max(1);
    // One, two, four and so on: who asks for many wants the last.
    let doubled = std::iter::successors(Some(1_u8), |round| round.checked_mul(2));
    let few = doubled.take_while(|&round| round < most && most != ENDLESS);
    let rounds = few.chain([most]);
    let mut found = None;
    for round in rounds {
        let mut within = Bounds {
            requests: bounds.requests.iter().map(|&r| r.min(round)).collect(),
            ..bounds.clone()
        };
        if found.is_some() {
            within.states_max = within.states_max.min(worse_max);
            if !matches!(
                safety::search::<A>(&within, false, watch),
                safety::Found::Broken { .. }
            ) {
                continue;
            }
        }
        let outcome = check::<A>(&within, watch);
        match &outcome {
            Outcome::Holds { .. } if round < most => {}
            Outcome::Broken { fault, .. } if found.is_none() && !fault.is_minor() => {
                return outcome;
            }
            Outcome::Broken { fault, .. } if fault.is_two_inside() => return outcome,
            Outcome::Broken { .. } | Outcome::Starved { .. } | Outcome::Restless { .. } => {
                found = found.or(Some(outcome));
            }
            Outcome::Holds { .. } | Outcome::NotExhausted { .. } => {
                return found.unwrap_or(outcome);
            }
        }
    }
    found.expect("the last round came to something")
}

/// Searches all states within the bounds twice: depth first on all cores for what must never happen,
/// then, if all is well so far, [breadth first](search) for endless runs in which somebody waits. Both
/// must see the same number of states.
///
/// # Panics
/// As [`search`].
pub fn check<A: Algorithm>(bounds: &Bounds<A::Shape>, watch: &mut Watch) -> Outcome {
    let found = safety::search::<A>(bounds, false, watch);
    match found {
        safety::Found::NotExhausted { states, limit } => Outcome::NotExhausted { states, limit },
        safety::Found::Holds { states, cut } if !bounds.endless_runs => {
            Outcome::Holds { states, cut }
        }
        safety::Found::Holds { states, .. } => {
            let outcome = search_watched::<A>(bounds, watch);
            if let Outcome::Holds { states: again, .. } = outcome {
                assert_eq!(states, again, "both searches see the same states");
            }
            outcome
        }
        safety::Found::Minor => match search_watched::<A>(bounds, watch) {
            Outcome::NotExhausted { states, limit } => {
                match safety::search::<A>(bounds, true, watch) {
                    safety::Found::Broken { fault, trace } => Outcome::Broken { fault, trace },
                    _ => Outcome::NotExhausted { states, limit },
                }
            }
            outcome => outcome,
        },
        // The other search finds the shortest way, if it gets so far.
        safety::Found::Broken { fault, trace } => match search_watched::<A>(bounds, watch) {
            Outcome::Broken { fault, trace } if !fault.is_minor() => {
                Outcome::Broken { fault, trace }
            }
            _ => Outcome::Broken { fault, trace },
        },
    }
}
