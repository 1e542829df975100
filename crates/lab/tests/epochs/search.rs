//! Every interleaving of two or three nodes, with a few faults: a crash, a member that is cut off,
//! slow messages, a deposed leader that does not know it.
//!
//! Time advances in steps. Leases are renewed immediately in each step, unless the node is slow or
//! cut off. Everything else arrives at any time, in the order of its link or connection.

use soloist_algorithms::Choice;
use soloist_core::{Mutant, Tuning};

use soloist_lab::epochs::budget::Budget;
use soloist_lab::epochs::check::{self, Report};
use soloist_lab::epochs::text::replay_tuned;
use soloist_lab::search::Verdict;

fn search(algorithm: &str, case: &Case, tuning: Tuning) -> Report {
    let case = check::Case {
        choice: Choice::parse(algorithm, "").unwrap(),
        nodes: case.nodes,
        budget: case.budget,
        states_max: usize::MAX,
        tuning,
    };
    case.run(&mut |_| true)
}

/// A search: the number of nodes, and what may happen to them.
struct Case {
    what: &'static str,
    nodes: usize,
    budget: Budget,
    /// Number of states with each of [`ALGORITHMS`], where it is known.
    states: Option<[usize; 2]>,
}

const NO_FAULTS: Budget = Budget {
    steps: 1,
    requests: 2,
    crashes: 0,
    cuts: 0,
    heals: 0,
    stalls: 0,
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
    states: Some([47_047, 120_085]),
};

const CRASH: Case = Case {
    what: "crash",
    nodes: 3,
    budget: Budget {
        steps: 4,
        crashes: 1,
        ..NO_FAULTS
    },
    states: Some([19_431, 43_540]),
};

const CUT: Case = Case {
    what: "cut",
    nodes: 3,
    budget: Budget {
        steps: 4,
        cuts: 1,
        ..NO_FAULTS
    },
    states: Some([22_618, 64_047]),
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
    states: Some([61_872, 164_810]),
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
    states: Some([111_929, 257_720]),
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
    states: Some([148_639, 339_150]),
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
    states: Some([93_738, 256_081]),
};

/// A node's lease expires before it checks the clock.
const STALL: Case = Case {
    what: "stall",
    nodes: 2,
    budget: Budget {
        steps: 5,
        stalls: 1,
        ..NO_FAULTS
    },
    states: Some([26_939, 70_530]),
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
    states: None,
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
    states: Some([138_784, 201_940]),
};

const DEPOSED_AND_RIVALS: Case = Case {
    what: "deposed leader and rivals",
    nodes: 2,
    budget: Budget {
        requests: 2,
        ..DEPOSED.budget
    },
    states: Some([94_006, 212_675]),
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
    states: Some([215_834, 603_964]),
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
    STALL,
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
        states: None,
        ..CUT
    },
    Case {
        nodes: 3,
        states: None,
        ..SLOW_AND_CUT
    },
    Case {
        nodes: 3,
        states: None,
        ..DEPOSED_AND_RIVALS
    },
];

/// A token-based algorithm and a permission-based one.
const ALGORITHMS: [&str; 2] = ["naimi-trehel", "maekawa"];

fn search_all(cases: &[Case]) {
    for case in cases {
        for (index, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let Case { what, nodes, .. } = case;
            #[expect(clippy::disallowed_methods, reason = "prints how long a search took")]
            let begin = std::time::Instant::now();
            let report = search(algorithm, case, Tuning::default());
            let (seconds, states) = (begin.elapsed().as_secs_f64(), report.states);
            let text = report.text.unwrap_or_default();
            assert_eq!(
                report.verdict,
                Verdict::Holds,
                "{algorithm}, {what}:\n{text}"
            );
            println!("{algorithm}, {what}, {nodes} nodes: {states} states, {seconds:.1} s");
            if let Some(expected) = case.states {
                assert_eq!(states, expected[index], "{algorithm}, {what}");
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
const SHOWN: [(Mutant, Case); 14] = [
    (Mutant::NoFreeze, CHANGE),
    (Mutant::AnyEpoch, CHANGE),
    (Mutant::GrantUnconfirmed, ASTRAY),
    (Mutant::NewLeaderDoesNotWait, ASTRAY),
    (Mutant::ReleaseForgotten, CHANGE),
    (Mutant::LeaseFromAnswer, SLOW_AND_CUT),
    (Mutant::LapseUnnoticed, STALL),
    (Mutant::HoldsNotReported, CHANGE),
    (Mutant::InstallTooEarly, CHANGE),
    (Mutant::EarlyDropped, CHANGE),
    (Mutant::FenceWithoutEpoch, CHANGE),
    (Mutant::EvictAtOnce, APART),
    (Mutant::LeaveWhilePromised, STOP),
    (Mutant::StuckUnnoticed, DEPOSED_AND_RIVALS),
];

#[test]
fn mutants_of_the_epochs_are_caught_by_the_search() {
    for (mutant, case) in SHOWN {
        let tuning = Tuning::plant(mutant);
        let mut reports = ALGORITHMS
            .into_iter()
            .map(|algorithm| search(algorithm, &case, tuning));
        let found = reports.find(|report| report.verdict == Verdict::Broken);
        let Report {
            algorithm,
            what,
            text,
            ..
        } = found.unwrap_or_else(|| panic!("{mutant:?}"));
        let (violation, text) = (what.unwrap(), text.unwrap());
        let steps = text.lines().filter(|line| line.starts_with("> ")).count();
        println!(
            "{mutant:?}: {algorithm}, {}, {steps} steps: {violation}",
            case.what
        );
        // The text shows the violation again.
        let fault = format!("FAULT {violation}");
        assert_eq!(text.lines().last(), Some(&*fault), "{mutant:?}:\n{text}");
        assert_eq!(replay_tuned(&text, tuning).unwrap(), text, "{mutant:?}");
    }
}
