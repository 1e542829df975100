//! Exhaustive search of a small model of the keepers: machines that crash and return with their old
//! disks or re-imaged, half-done promotions, and recovery.
//!
//! Raft is reduced to what matters here: terms, votes, logs of memberships and decisions, and
//! commits by majority. The rules for a node's store are the production code
//! (`soloist_core::keepers`). Each rule can be broken, and the search
//! then finds the failure that the rule prevents.

mod search;
mod state;
mod steps;

use search::{Found, search};
use state::{Budget, Rules, Setup};

fn visit(what: &str, setup: &Setup) {
    match search(setup) {
        Ok(states) => println!("{what}: {states} states"),
        Err(found) => panic!("{what}:\n{found}"),
    }
}

/// Three first keepers and one more node. One keeper is down and may return; one may be replaced.
fn replacement() -> Setup {
    Setup {
        down: Some(2),
        partitions: false,
        budget: Budget {
            promotions: 1,
            demotions: 1,
            crashes: 1,
            elections: 2,
            ..Budget::default()
        },
        ..Setup::default()
    }
}

#[test]
#[ignore = "a minute: 547,154 states"]
fn replaced_keepers_that_return_make_no_second_cluster() {
    let mut setup = replacement();
    setup.budget.reimages = 1;
    visit("replaced keepers", &setup);
}

#[test]
#[ignore = "minutes, and gigabytes of memory"]
fn replaced_keepers_and_partitions_long() {
    let mut setup = replacement();
    setup.partitions = true;
    setup.budget.reimages = 1;
    visit("replaced keepers and partitions", &setup);
}

/// Like [`replacement`], without crashes. A demoted node may be promoted again, while the keeper
/// that was down knows only of its first promotion.
fn second_promotion() -> Setup {
    let mut setup = replacement();
    setup.budget.promotions = 2;
    setup.budget.crashes = 0;
    setup
}

#[test]
fn a_node_that_is_promoted_again_ignores_requests_for_its_old_id() {
    let setup = Setup {
        checks_progress: false,
        ..second_promotion()
    };
    visit("second promotion", &setup);
}

#[test]
#[ignore = "minutes"]
fn a_node_that_is_promoted_again_while_another_crashes_long() {
    let mut setup = second_promotion();
    setup.budget.crashes = 1;
    visit("second promotion and a crash", &setup);
}

#[test]
fn first_keepers_form_a_cluster_though_one_is_reimaged() {
    let setup = Setup {
        nodes: 3,
        starts_founded: false,
        budget: Budget {
            promotions: 3,
            crashes: 1,
            reimages: 1,
            elections: 2,
            ..Budget::default()
        },
        ..Setup::default()
    };
    visit("bootstrap", &setup);
}

#[test]
fn a_sole_keeper_that_was_replaced_founds_no_cluster_that_members_join() {
    let setup = Setup {
        nodes: 3,
        first: 1,
        redeploys: true,
        budget: Budget {
            promotions: 1,
            demotions: 1,
            crashes: 1,
            reimages: 1,
            elections: 3,
            ..Budget::default()
        },
        ..Setup::default()
    };
    visit("sole keeper", &setup);
}

/// The third keeper is down, then the other two, and one of them is recovered.
fn recovery() -> Setup {
    Setup {
        nodes: 3,
        down: Some(2),
        partitions: false,
        budget: Budget {
            crashes: 2,
            recoveries: 1,
            elections: 3,
            ..Budget::default()
        },
        ..Setup::default()
    }
}

#[test]
fn machines_of_an_earlier_generation_return_after_recovery() {
    visit("recovery", &recovery());
}

#[test]
#[ignore = "minutes"]
fn recovery_and_re_imaged_machines_long() {
    let mut setup = recovery();
    setup.budget.crashes = 3;
    setup.budget.reimages = 1;
    visit("recovery and re-imaged machines", &setup);
}

/// Every rule is needed: without it, the search finds two clusters, or one that is stuck.
#[test]
fn every_rule_is_needed() {
    let whole = replacement();
    let mut reimaged = whole.clone();
    reimaged.budget.reimages = 1;
    let rules = Rules::default();
    for (rules, setup, is_stuck) in [
        (
            Rules {
                empty_store_votes: true,
                ..rules
            },
            &reimaged,
            false,
        ),
        (
            Rules {
                refuses_unknown: true,
                ..rules
            },
            &whole,
            true,
        ),
        (
            Rules {
                sets_aside_uncommitted: true,
                ..rules
            },
            &whole,
            true,
        ),
        (
            Rules {
                ignores_successors: true,
                ..rules
            },
            &recovery(),
            false,
        ),
        (
            Rules {
                leaders_remove_themselves: true,
                ..rules
            },
            &whole,
            true,
        ),
        (
            Rules {
                ids_from_names: true,
                ..rules
            },
            &second_promotion(),
            false,
        ),
    ] {
        let setup = Setup {
            rules,
            checks_progress: is_stuck,
            ..setup.clone()
        };
        match search(&setup) {
            Err(Found::Stuck(way)) if is_stuck => println!("{rules:?}\n{way}\n"),
            Err(Found::Forgotten(way)) if !is_stuck => println!("{rules:?}\n{way}\n"),
            other => panic!("{rules:?}: {other:?}"),
        }
    }
}
