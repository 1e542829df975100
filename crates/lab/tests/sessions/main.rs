//! Every interleaving of one client with a session, one lock, and a rival on another node: when the
//! client requests, releases and pings, when its connection breaks, when it resumes or moves to the
//! other node, when that one makes the first one end what was left, when the client resumes the
//! session that it has left, when each message arrives, when time passes, and when the node drains
//! or loses its lease. A client moves whatever it has: a request that waits, a hold that it keeps
//! and releases on the first node, or a release that was not acknowledged.
//!
//! The client never works on what the lock protects while the rival is inside. And from each state,
//! once the client has a connection and all messages have arrived, client and nodes agree on what
//! the client holds, and no request waits in vain.

mod client;
mod properties;
mod steps;
mod world;

use soloist_core::Mutant;
use soloist_lab::breadth_first::{self, Outcome};

use steps::Action;
use world::{Case, QUIET, State};

/// No case has more states than this.
const STATES_MAX: usize = 3_000_000;

fn search(case: Case, planted: Option<Mutant>) -> Outcome<Action> {
    breadth_first::search(State::new(case, planted), &mut |progress| {
        progress.states < STATES_MAX
    })
}

fn is_safe(case: Case) {
    match search(case, None) {
        Outcome::Holds { states } => println!("{case:?}: {states} states"),
        Outcome::Broken {
            actions, violation, ..
        } => panic!("{case:?}: {violation}, after {actions:?}"),
        Outcome::Stopped { states } => panic!("{case:?}: more than {states} states"),
    }
}

const EXPIRES: Case = Case { ticks: 3, ..QUIET };
const RESENDS: Case = Case {
    resends_all: true,
    requests: 2,
    ..QUIET
};
const DRAINS: Case = Case {
    drains: 1,
    pings: 1,
    ticks: 2,
    cuts: 0,
    ..QUIET
};
const LAPSES: Case = Case {
    lapses: true,
    ticks: 2,
    ..QUIET
};
const MOVES: Case = Case { moves: 1, ..QUIET };
const RETURNS: Case = Case {
    returns: 1,
    ..MOVES
};
const INTRUDES: Case = Case {
    intrusions: 1,
    cuts: 0,
    ..QUIET
};

#[test]
fn all_interleavings_of_cut_resume_and_expiry_are_safe() {
    is_safe(EXPIRES);
    is_safe(Case {
        pings: 1,
        ticks: 3,
        cuts: 0,
        ..QUIET
    });
    is_safe(Case { cuts: 2, ..QUIET });
}

#[test]
fn all_interleavings_of_a_client_that_sends_everything_again_are_safe() {
    is_safe(RESENDS);
}

#[test]
fn all_interleavings_of_a_node_that_drains_are_safe() {
    is_safe(DRAINS);
    is_safe(Case {
        cuts: 1,
        pings: 0,
        ticks: 1,
        ..DRAINS
    });
}

#[test]
fn all_interleavings_of_a_node_that_loses_its_lease_are_safe() {
    is_safe(LAPSES);
}

#[test]
fn all_interleavings_of_a_client_that_moves_are_safe() {
    is_safe(MOVES);
    is_safe(Case { drains: 1, ..MOVES });
}

#[test]
fn all_interleavings_of_a_client_that_returns_to_the_session_that_it_has_left_are_safe() {
    is_safe(RETURNS);
    is_safe(Case {
        requests: 2,
        ..RETURNS
    });
}

#[test]
fn a_wrong_secret_resumes_nothing() {
    is_safe(INTRUDES);
}

#[test]
#[ignore = "takes many minutes"]
fn more_interleavings_of_sessions_are_safe() {
    is_safe(Case {
        cuts: 2,
        ticks: 4,
        pings: 1,
        requests: 2,
        ..QUIET
    });
    is_safe(Case {
        cuts: 2,
        drains: 1,
        ticks: 3,
        ..QUIET
    });
    is_safe(Case {
        cuts: 2,
        moves: 1,
        ticks: 3,
        ..QUIET
    });
    is_safe(Case {
        ticks: 2,
        ..RETURNS
    });
    is_safe(Case {
        drains: 1,
        ..RETURNS
    });
    is_safe(Case {
        cuts: 2,
        returns: 2,
        ..RETURNS
    });
}

/// Planted faults, each with a search that shows it.
const SHOWN: [(Mutant, Case); 10] = [
    (Mutant::GrantUntold, QUIET),
    (Mutant::EndWhenWritten, DRAINS),
    (Mutant::PromiseFromArrival, EXPIRES),
    (Mutant::RequestTwice, RESENDS),
    (Mutant::AnySecret, INTRUDES),
    (Mutant::GrantLeft, MOVES),
    (Mutant::ReleaseLeft, MOVES),
    (Mutant::KeptHoldEnded, MOVES),
    (Mutant::LeftGrantUsed, RETURNS),
    (Mutant::DrainBeyondHolds, DRAINS),
];

#[test]
fn every_mutant_of_sessions_is_caught_by_the_search() {
    for (mutant, case) in SHOWN {
        let outcome = search(case, Some(mutant));
        let Outcome::Broken {
            actions, violation, ..
        } = outcome
        else {
            panic!("{mutant:?}: {outcome:?}");
        };
        println!("{mutant:?}: {violation}, after {actions:?}");
    }
}
