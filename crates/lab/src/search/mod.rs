//! Model checker: searches every interleaving of a small cluster.
//!
//! A state of the cluster is a flat list of 32-bit words (`packed`) that stand for interned node
//! states and messages (`interner`). Only `stepper` knows the algorithm's type. `system` defines
//! the steps between states, and `properties` what must hold. Two searches explore the states, in
//! the order that `plan` defines:
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
mod describe;
mod failures;
mod follow;
mod graph;
mod interner;
mod packed;
mod plan;
mod properties;
mod questions;
mod quiescence;
mod reduction;
mod report;
mod safety;
mod starvation;
mod stepper;
pub mod suite;
mod system;
mod worst;

use soloist_algorithms::{Algorithm, NodeId};

pub use bounds::{Bounds, Crashes, ENDLESS, Limits};
pub use case::{Case, CaseError};
pub(crate) use follow::{Enabled, Follower, FromHere, Trouble};
pub use questions::{always, for_each_step};
pub use report::{Report, Setting, Verdict, WorstReport, WorstVerdict};

pub use worst::{Aim, Worst};

use crate::world::Fault;
use plan::Plan;

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every reachable state was visited and everything holds: no property is violated, and in
    /// every fair run every node that requests enters.
    Holds {
        /// Number of states.
        states: usize,
        /// Number of transitions: steps from a state to a state, also to itself.
        transitions: usize,
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
    /// Steps that put too many messages in flight were not followed.
    Messages,
    /// The watcher stopped the search, for example because memory is short.
    Stopped,
}

impl Limit {
    /// Text for users.
    pub fn text(self) -> &'static str {
        match self {
            Limit::States => "more states than allowed",
            Limit::Numbers => "more different states of nodes, or messages, than can be numbered",
            Limit::Messages => "more messages in flight than allowed",
            Limit::Stopped => "memory is running out",
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
/// use soloist_lab::search::{Bounds, Outcome, search};
///
/// let outcome = search::<Raymond>(&Bounds::of::<Raymond>(&[2, 2, 2]));
/// assert!(matches!(outcome, Outcome::Holds { .. }));
/// ```
///
/// # Panics
/// If there are more than [`Limits::NODES_MAX`] nodes, or crashes although the algorithm does not
/// support recovery.
pub fn search<A: Algorithm>(bounds: &Bounds<A::Shape>) -> Outcome {
    Plan::of::<A>(bounds).search(&mut |_| true)
}

/// Searches all states within the bounds twice: first on all cores for safety violations
/// (depth-first if all runs end), then, if there are none, [breadth-first](search) for endless runs
/// in which a node waits. Both searches must visit the same number of states.
///
/// # Panics
/// As [`search`].
pub fn check<A: Algorithm>(bounds: &Bounds<A::Shape>, watch: &mut Watch) -> Outcome {
    Plan::of::<A>(bounds).check(watch)
}

/// The worst case over all runs within the bounds. Properties are not checked. Messages are counted
/// per entry: a node that requests alone costs a coordinator three.
///
/// ```
/// use soloist_algorithms::central::Central;
/// use soloist_lab::search::{Aim, Bounds, Worst, worst};
///
/// let bounds = Bounds::of::<Central>(&[2, 1, 2]);
/// let worst = worst::<Central>(&bounds, Aim::Messages, &mut |_| true);
/// assert!(matches!(worst, Worst::Most { most: 3, entries: 1, .. }));
/// ```
///
/// # Panics
/// As [`search`].
pub fn worst<A: Algorithm>(bounds: &Bounds<A::Shape>, aim: Aim, watch: &mut Watch) -> Worst {
    worst::find(&Plan::of::<A>(bounds), aim, watch)
}
