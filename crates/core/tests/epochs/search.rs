//! Every interleaving of two or three nodes, with a few faults: a crash, a member that is cut off,
//! slow messages, a deposed leader that does not know it.
//!
//! Time advances in steps. Leases are renewed immediately in each step, unless the node is slow or
//! cut off. Everything else arrives at any time, in the order of its link or connection.

use std::collections::{HashSet, VecDeque};

use soloist_algorithms::Choice;
use soloist_core::Mutant;

use crate::budget::Budget;
use crate::state::{Action, State};
use crate::witness::Violation;

/// A path to a violation.
struct Counterexample {
    actions: Vec<Action>,
    violation: Violation,
}

/// Visits all states within the budget, breadth first. Returns their number, or the shortest path
/// to a violation.
fn search(choice: Choice, nodes: usize, budget: Budget) -> Result<usize, Counterexample> {
    let first = State::new(choice, nodes, budget);
    let mut seen = HashSet::from([first.fingerprint()]);
    // Each state's predecessor, and the action that led from there.
    let mut ways: Vec<Option<(usize, Action)>> = vec![None];
    let mut open = VecDeque::from([(0, first)]);
    while let Some((number, state)) = open.pop_front() {
        let actions = state.actions();
        for action in actions.iter().copied() {
            let mut next = state.clone();
            let violated = next.apply(action).err();
            if violated.is_none() && !seen.insert(next.fingerprint()) {
                continue;
            }
            ways.push(Some((number, action)));
            let completes = || next.is_at_rest().then(|| next.clone().completes().err());
            let violated = violated.or_else(|| completes().flatten());
            if let Some(violation) = violated {
                let actions = way_to(&ways, ways.len() - 1);
                return Err(Counterexample { actions, violation });
            }
            open.push_back((ways.len() - 1, next));
        }
    }
    Ok(ways.len())
}

fn way_to(ways: &[Option<(usize, Action)>], mut state: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some((before, action)) = ways[state] {
        actions.push(action);
        state = before;
    }
    actions.reverse();
    actions
}

/// A search: the number of nodes, and what may happen to them.
struct Case {
    what: &'static str,
    nodes: usize,
    budget: Budget,
}

const NO_FAULTS: Budget = Budget {
    steps: 1,
    requests: 2,
    crashes: 0,
    cuts: 0,
    heals: 0,
    sleeps: 0,
    slow: 0,
    elections: 0,
    suspicions: 0,
    complaints: 0,
    stops: 0,
};

const CHANGE: Case = Case {
    what: "change",
    nodes: 3,
    budget: Budget {
        suspicions: 1,
        ..NO_FAULTS
    },
};

const CRASH: Case = Case {
    what: "crash",
    nodes: 3,
    budget: Budget {
        steps: 4,
        crashes: 1,
        ..NO_FAULTS
    },
};

const CUT: Case = Case {
    what: "cut",
    nodes: 3,
    budget: Budget {
        steps: 4,
        cuts: 1,
        ..NO_FAULTS
    },
};

/// Two members cannot reach each other, although both reach the keepers.
const APART: Case = Case {
    what: "apart",
    nodes: 3,
    budget: Budget {
        steps: 6,
        complaints: 1,
        ..NO_FAULTS
    },
};

/// A node stops in an orderly way, whether or not its client holds the lock.
const STOP: Case = Case {
    what: "stop",
    nodes: 2,
    budget: Budget {
        steps: 3,
        stops: 1,
        ..NO_FAULTS
    },
};

/// The epoch changes while the node drains.
const STOP_IN_CHANGE: Case = Case {
    what: "stop in a change",
    nodes: 2,
    budget: Budget {
        suspicions: 1,
        stops: 1,
        ..NO_FAULTS
    },
};

const SLOW_AND_CUT: Case = Case {
    what: "slow and cut",
    nodes: 2,
    budget: Budget {
        steps: 5,
        slow: 1,
        cuts: 1,
        ..NO_FAULTS
    },
};

/// A node's lease expires before it checks the clock.
const SLEEP: Case = Case {
    what: "sleep",
    nodes: 2,
    budget: Budget {
        steps: 5,
        sleeps: 1,
        ..NO_FAULTS
    },
};

/// An epoch begins while another one is not installed yet.
const CRASH_IN_CHANGE: Case = Case {
    what: "crash in a change",
    nodes: 2,
    budget: Budget {
        steps: 4,
        crashes: 1,
        suspicions: 1,
        ..NO_FAULTS
    },
};

/// Time does not advance here: members contact a leader as soon as they find it.
const DEPOSED: Case = Case {
    what: "deposed leader",
    nodes: 3,
    budget: Budget {
        steps: 0,
        requests: 1,
        suspicions: 1,
        elections: 1,
        ..NO_FAULTS
    },
};

const DEPOSED_AND_RIVALS: Case = Case {
    what: "deposed leader and rivals",
    nodes: 2,
    budget: Budget {
        requests: 2,
        ..DEPOSED.budget
    },
};

/// Runs until the leases of the earlier leader have almost expired.
const ASTRAY: Case = Case {
    what: "astray",
    nodes: 2,
    budget: Budget {
        steps: 3,
        elections: 1,
        ..NO_FAULTS
    },
};

/// Searches that take seconds.
const SHORT: [Case; 11] = [
    CHANGE,
    CRASH,
    CUT,
    APART,
    STOP,
    STOP_IN_CHANGE,
    SLOW_AND_CUT,
    SLEEP,
    DEPOSED,
    DEPOSED_AND_RIVALS,
    ASTRAY,
];

/// Searches that take minutes.
const LONG: [Case; 4] = [
    CRASH_IN_CHANGE,
    Case {
        what: "cut for a while",
        budget: Budget {
            heals: 1,
            ..CUT.budget
        },
        ..CUT
    },
    Case {
        nodes: 3,
        ..SLOW_AND_CUT
    },
    Case {
        nodes: 3,
        ..DEPOSED_AND_RIVALS
    },
];

/// A token-based algorithm and a permission-based one.
const ALGORITHMS: [&str; 2] = ["naimi-trehel", "maekawa"];

fn search_all(cases: &[Case]) {
    for Case {
        what,
        nodes,
        budget,
    } in cases
    {
        for algorithm in ALGORITHMS {
            let choice = Choice::parse(algorithm, "").unwrap();
            #[expect(clippy::disallowed_methods, reason = "prints how long a search took")]
            let begin = std::time::Instant::now();
            match search(choice, *nodes, *budget) {
                Ok(states) => {
                    let seconds = begin.elapsed().as_secs_f64();
                    println!("{algorithm}, {what}, {nodes} nodes: {states} states, {seconds:.1} s");
                }
                Err(Counterexample { actions, violation }) => {
                    panic!("{algorithm}, {what}: {violation}, after {actions:?}")
                }
            }
        }
    }
}

#[test]
fn all_interleavings_with_a_fault_are_safe_and_everybody_is_served_after_it() {
    search_all(&SHORT);
}

#[test]
#[ignore = "takes many minutes"]
fn all_interleavings_with_more_time_are_safe() {
    search_all(&LONG);
}

/// Planted faults, each with a search that shows it.
const SHOWN: [(Mutant, Case); 13] = [
    (Mutant::NoFreeze, CHANGE),
    (Mutant::AnyEpoch, CHANGE),
    (Mutant::GrantUnconfirmed, ASTRAY),
    (Mutant::NewLeaderDoesNotWait, ASTRAY),
    (Mutant::ReleaseForgotten, CHANGE),
    (Mutant::LeaseFromAnswer, SLOW_AND_CUT),
    (Mutant::LapseUnnoticed, SLEEP),
    (Mutant::HoldsNotReported, CHANGE),
    (Mutant::InstallTooEarly, CHANGE),
    (Mutant::EarlyDropped, CHANGE),
    (Mutant::FenceWithoutEpoch, CHANGE),
    (Mutant::EvictAtOnce, APART),
    (Mutant::LeaveWhilePromised, STOP),
];

#[test]
fn mutants_of_the_epochs_are_caught_by_the_search() {
    for (mutant, case) in SHOWN {
        Mutant::plant(Some(mutant));
        let mut found = ALGORITHMS.into_iter().filter_map(|algorithm| {
            let choice = Choice::parse(algorithm, "").unwrap();
            let found = search(choice, case.nodes, case.budget).err()?;
            Some((algorithm, found))
        });
        let (algorithm, found) = found.next().unwrap_or_else(|| panic!("{mutant:?}"));
        let (what, length) = (case.what, found.actions.len());
        println!(
            "{mutant:?}: {algorithm}, {what}, {length} actions: {}",
            found.violation
        );
    }
}
