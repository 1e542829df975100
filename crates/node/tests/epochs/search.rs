//! Every interleaving of three nodes, with a few faults: a crash, a member that is cut off, words that are slow, a
//! leader that is deposed and does not know it.
//!
//! Time goes in steps. Leases are renewed at once in each step, unless the node is slow or cut off; everything else
//! arrives at any time: frames of a link in order, words between members and leaders in any.

use std::collections::{HashSet, VecDeque};

use soloist_algorithms::Choice;
use soloist_node::Mutant;

use crate::state::{Action, Budget, State, Violation};

/// A way to something that must not be.
struct Counterexample {
    actions: Vec<Action>,
    violation: Violation,
}

/// All states within the budget; or the shortest way to a violation.
fn search(
    choice: Choice,
    nodes: usize,
    budget: Budget,
    most: usize,
) -> Result<usize, Counterexample> {
    let first = State::new(choice, nodes, budget);
    let mut seen = HashSet::from([first.fingerprint()]);
    // Each state's predecessor and how it came from there.
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
            // Every way goes on to its last step.
            let completes = || next.is_last_step().then(|| next.clone().completes().err());
            let violated = violated.or_else(|| completes().flatten());
            if let Some(violation) = violated {
                let actions = way_to(&ways, ways.len() - 1);
                return Err(Counterexample { actions, violation });
            }
            assert!(
                ways.len() < most,
                "{}: more than {most} states",
                choice.name
            );
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

const NO_FAULTS: Budget = Budget {
    steps: 1,
    requests: 2,
    crashes: 0,
    cuts: 0,
    slow: 0,
    elections: 0,
    astray: 0,
    suspicions: 0,
};

/// What can go wrong with how many nodes, in searches of seconds.
const SHORT: [(&str, usize, Budget); 4] = [
    (
        "change",
        3,
        Budget {
            suspicions: 1,
            ..NO_FAULTS
        },
    ),
    (
        "crash",
        3,
        Budget {
            steps: 4,
            crashes: 1,
            ..NO_FAULTS
        },
    ),
    (
        "cut",
        3,
        Budget {
            steps: 4,
            cuts: 1,
            ..NO_FAULTS
        },
    ),
    // With three nodes this takes minutes.
    (
        "change and election",
        2,
        Budget {
            requests: 1,
            suspicions: 1,
            elections: 1,
            ..NO_FAULTS
        },
    ),
];

/// In searches of minutes.
const LONG: [(&str, usize, Budget); 3] = [
    (
        "change and election",
        3,
        Budget {
            requests: 1,
            suspicions: 1,
            elections: 1,
            ..NO_FAULTS
        },
    ),
    (
        "astray",
        3,
        Budget {
            steps: 4,
            requests: 1,
            elections: 1,
            astray: 1,
            ..NO_FAULTS
        },
    ),
    (
        "slow and cut",
        3,
        Budget {
            steps: 5,
            slow: 1,
            cuts: 1,
            ..NO_FAULTS
        },
    ),
];

/// A token algorithm and one with permissions.
const ALGORITHMS: [&str; 2] = ["naimi-trehel", "maekawa"];

fn search_all(budgets: &[(&str, usize, Budget)]) {
    for (what, nodes, budget) in budgets {
        for algorithm in ALGORITHMS {
            let choice = Choice::parse(algorithm, "").unwrap();
            let begin = std::time::Instant::now();
            match search(choice, *nodes, *budget, 10_000_000) {
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
fn all_interleavings_with_slow_words_and_elections_are_safe() {
    search_all(&LONG);
}

/// Planted faults that the short searches show.
pub const CAUGHT: [Mutant; 8] = [
    Mutant::NoFreeze,
    Mutant::AnyEpoch,
    Mutant::ReleaseForgotten,
    Mutant::LapseUnnoticed,
    Mutant::HoldsNotReported,
    Mutant::InstallTooEarly,
    Mutant::EarlyDropped,
    Mutant::FenceWithoutEpoch,
];

#[test]
fn mutants_of_the_epochs_are_caught_by_the_search() {
    for mutant in CAUGHT {
        Mutant::plant(Some(mutant));
        let cases = SHORT.iter();
        let cases = cases.flat_map(|case| ALGORITHMS.map(|algorithm| (algorithm, case)));
        let mut cases = cases.filter_map(|(algorithm, (what, nodes, budget))| {
            let choice = Choice::parse(algorithm, "").unwrap();
            let found = search(choice, *nodes, *budget, 10_000_000).err()?;
            Some((algorithm, *what, found))
        });
        let (algorithm, what, found) = cases.next().unwrap_or_else(|| panic!("{mutant:?}"));
        let length = found.actions.len();
        println!(
            "{mutant:?}: {algorithm}, {what}, {length} actions: {}",
            found.violation
        );
    }
}
