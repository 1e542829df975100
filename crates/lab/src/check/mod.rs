//! Model checker: searches every interleaving of a small cluster.
//!
//! A state of the cluster is a flat list of 32-bit words (`packed`) that stand for interned node
//! states and messages (`interner`). `system` defines the steps between states, and `properties`
//! what must hold. Two searches explore the states:
//! - `safety` runs on all cores, depth-first if all runs end, and keeps only hashes. If endless
//!   runs are not searched for, it applies partial-order reduction (`reduction`) where that is
//!   sound.
//! - `graph` runs breadth-first and keeps all states and steps. A fault comes with a shortest
//!   trace, and `starvation` and `quiescence` can search for endless runs.

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

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every reachable state was visited and everything holds: no property is violated, and in
    /// every fair run every node that requests enters.
    Holds {
        /// Number of states.
        states: usize,
        /// Number of steps that were not followed because too many messages would be in flight. If
        /// 0, the result holds for all runs.
        cut: usize,
    },
    /// A property is violated. The trace is a shortest one, unless only the first pass
    /// ([`Pass::Safety`]) got as far as the violation.
    Broken {
        /// The violation.
        fault: Fault,
        /// The way to it, as steps of a scenario.
        trace: Vec<String>,
    },
    /// A node may wait forever.
    Starved {
        /// The node.
        node: NodeId,
        /// The way to the endless run, as steps of a scenario.
        trace: Vec<String>,
        /// The steps that can repeat forever in a fair run. Empty if the run ends.
        cycle: Vec<String>,
    },
    /// Messages continue forever although no node waits, is inside or requests. A token that roams
    /// by design does not count.
    Restless {
        /// The way to the endless run, as steps of a scenario.
        trace: Vec<String>,
        /// The steps that repeat.
        cycle: Vec<String>,
    },
    /// The search stopped before it had visited all states; no violation so far.
    NotExhausted {
        /// Number of states visited.
        states: usize,
        /// Why the search stopped.
        limit: Limit,
    },
}

/// Why a search did not visit all states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The limit on the number of states was reached.
    States,
    /// There are more distinct node states or messages than the interner can number.
    Numbers,
    /// The watcher stopped the search, for example because memory is short.
    Stopped,
}

impl Limit {
    /// Text for users.
    pub fn text(self) -> &'static str {
        match self {
            Limit::States => "more states than allowed",
            Limit::Numbers => "more different states of nodes, or messages, than can be numbered",
            Limit::Stopped => "memory runs short",
        }
    }
}

/// Progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The current pass.
    pub pass: Pass,
    /// Number of states visited.
    pub states: usize,
    /// Distance of the farthest state from the first one, in steps.
    pub depth: usize,
}

/// A pass of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// On all cores, depth-first if all runs end: safety properties.
    Safety,
    /// Breadth-first: all states and steps, for shortest traces.
    Graph,
    /// Searches the graph for endless runs in which a node waits.
    EndlessRuns,
}

/// Called with the progress from time to time; returns whether to continue.
pub type Watch<'a> = dyn FnMut(Progress) -> bool + 'a;

/// Searches all states within the bounds, breadth-first, on one core.
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
/// If there are more than [64 nodes](Bounds::NODES_MAX), or crashes although the algorithm does not
/// support recovery.
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

/// Like [`check`], with one request per node, then two, four and so on up to the bounds, so that a
/// fault is found with few requests. After a minor fault, starvation or unrest, the search
/// continues with more requests to see whether they lead to two nodes inside, in at most
/// `worse_max` states per round.
pub(crate) fn deepen<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    worse_max: usize,
    watch: &mut Watch,
) -> Outcome {
    let most = bounds.requests.iter().copied().max().unwrap_or(0).max(1);
    // Doubling skips most rounds: a caller that allows many requests wants the last one.
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

/// Searches all states within the bounds twice: first on all cores for safety violations
/// (depth-first if all runs end), then, if there are none, [breadth-first](search) for endless runs
/// in which a node waits. Both searches must visit the same number of states.
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
        // The breadth-first search finds a shortest trace, if it gets that far.
        safety::Found::Broken { fault, trace } => match search_watched::<A>(bounds, watch) {
            Outcome::Broken { fault, trace } if !fault.is_minor() => {
                Outcome::Broken { fault, trace }
            }
            _ => Outcome::Broken { fault, trace },
        },
    }
}
