//! Every interleaving of two or three lock tables in which a lock is idle as soon as it is unused:
//! when each node requests and releases, which message arrives next, when a node checks its idle
//! locks, and when the epoch changes.
//!
//! No two clients are inside together, fences rise, no request waits forever, and no correct
//! message is refused. And from each state in which the lock is unused, it is forgotten everywhere.

mod model;

use soloist_algorithms::Choice;
use soloist_core::Mutant;
use soloist_lab::breadth_first::{self, Outcome};

use model::{Action, Case, State};

fn search(choice: Choice, case: Case, planted: Option<Mutant>) -> Outcome<Action> {
    breadth_first::search(State::new(choice, case, planted), &mut |_| true)
}

const fn case(requests: &'static [u8], changes: u8, home: u64) -> Case {
    Case {
        requests,
        changes,
        home,
        begins_late: false,
        collides: None,
    }
}

const fn late(requests: &'static [u8], changes: u8, home: u64) -> Case {
    Case {
        begins_late: true,
        ..case(requests, changes, home)
    }
}

/// In the next epoch, the holder of another lock counts as inside this one.
const fn colliding(requests: &'static [u8], home: u64, holder: usize) -> Case {
    Case {
        collides: Some(holder),
        ..case(requests, 1, home)
    }
}

/// Returns the number of states.
fn search_all(choice: Choice, cases: &[Case]) -> usize {
    let mut all = 0;
    for &case in cases {
        #[expect(clippy::disallowed_methods, reason = "prints how long a search took")]
        let begin = std::time::Instant::now();
        match search(choice, case, None) {
            Outcome::Holds { states } => {
                let seconds = begin.elapsed().as_secs_f64();
                println!("{}, {case:?}: {states} states, {seconds:.1} s", choice.name);
                all += states;
            }
            Outcome::Broken {
                actions, violation, ..
            } => panic!("{}, {case:?}: {violation}, after {actions:?}", choice.name),
            Outcome::Stopped { .. } => unreachable!("nothing stops it"),
        }
    }
    all
}

/// Searches that take seconds.
const SHORT: [Case; 7] = [
    case(&[2, 2], 0, 0),
    case(&[2, 1], 1, 0),
    case(&[1, 1], 1, 1),
    case(&[0, 1, 1], 0, 0),
    case(&[0, 0, 2], 0, 0),
    case(&[0, 1, 0], 1, 0),
    case(&[0, 1, 0], 1, 2),
];

/// With very many locks, most begin their epoch late.
const LATE: [Case; 3] = [
    late(&[1, 1], 1, 0),
    late(&[1, 1], 1, 1),
    late(&[0, 1, 0], 1, 2),
];

/// With names of the same hash.
const COLLIDING: [Case; 5] = [
    colliding(&[1, 1], 0, 0),
    colliding(&[1, 1], 1, 0),
    colliding(&[0, 2], 1, 0),
    colliding(&[0, 1, 1], 1, 0),
    colliding(&[1, 1, 0], 2, 0),
];

/// Searches that take minutes with some algorithms.
const LONG: [Case; 10] = [
    late(&[2, 1], 1, 0),
    late(&[0, 1, 1], 1, 0),
    case(&[3, 3], 0, 0),
    case(&[2, 2], 1, 0),
    case(&[1, 1], 2, 0),
    case(&[1, 1, 1], 0, 0),
    case(&[1, 1, 1], 0, 1),
    case(&[1, 1, 1], 0, 2),
    case(&[0, 1, 1], 1, 0),
    case(&[1, 1, 0], 1, 1),
];

#[test]
fn all_interleavings_of_forgetting_are_safe() {
    let choices = Choice::all();
    let states: usize = choices.map(|choice| search_all(choice, &SHORT)).sum();
    println!("{states} states in all");
}

#[test]
fn all_interleavings_of_locks_that_begin_late_are_safe() {
    let choices = Choice::all();
    let states: usize = choices.map(|choice| search_all(choice, &LATE)).sum();
    println!("{states} states in all");
}

/// A node that counts as inside because of another lock leaves as soon as it hears of this one. So
/// every request is served as well, with all algorithms but two.
#[test]
fn all_interleavings_of_names_with_the_same_hash_are_safe() {
    let choices = Choice::all();
    let states: usize = choices.map(|choice| search_all(choice, &COLLIDING)).sum();
    println!("{states} states in all");
}

/// An algorithm with a token whose state machines are forgotten together, and one with permissions.
#[test]
fn all_interleavings_of_three_that_forget_together_are_safe() {
    for name in ["naimi-trehel", "singhal-dynamic"] {
        let choice = Choice::parse(name, "").unwrap();
        search_all(choice, &[case(&[1, 1, 1], 0, 0), case(&[0, 1, 1], 1, 0)]);
    }
}

#[test]
#[ignore = "takes many minutes"]
fn more_interleavings_of_forgetting_are_safe() {
    let choices = Choice::all();
    let states: usize = choices.map(|choice| search_all(choice, &LONG)).sum();
    println!("{states} states in all");
}

/// Planted faults, each with a search that shows it.
const SHOWN: [(Mutant, &str, Case); 6] = [
    (
        Mutant::ForgetUnbalanced,
        "suzuki-kasami",
        case(&[1, 1], 0, 0),
    ),
    (Mutant::ForgetUnbalanced, "raymond", case(&[1, 1, 0], 0, 0)),
    (Mutant::ForgetNotByAll, "raymond", case(&[0, 1, 1], 1, 0)),
    (
        Mutant::OfferNotWithdrawn,
        "naimi-trehel",
        case(&[1, 1], 0, 0),
    ),
    (
        Mutant::OfferNotWithdrawn,
        "singhal-dynamic",
        case(&[1, 1], 0, 0),
    ),
    (Mutant::FenceForgotten, "naimi-trehel", case(&[1, 1], 0, 0)),
];

#[test]
fn mutants_of_forgetting_are_caught_by_the_search() {
    for (mutant, algorithm, case) in SHOWN {
        let choice = Choice::parse(algorithm, "").unwrap();
        let Outcome::Broken {
            actions, violation, ..
        } = search(choice, case, Some(mutant))
        else {
            panic!("{mutant:?} with {algorithm}");
        };
        let length = actions.len();
        println!("{mutant:?}: {algorithm}, {length} actions: {violation}");
    }
}
