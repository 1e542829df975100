//! Several hundred runs, every parameter from the seed: nothing that must not happen, nobody unserved.

use rayon::prelude::*;
use soloist_algorithms::Choice;
use soloist_lab::simulate::{Setup, simulate};
use soloist_lab::swarm;

const RUNS: u64 = 600;

#[test]
fn every_run_is_safe_and_serves_everybody() {
    (0..RUNS).into_par_iter().for_each(|seed| {
        let setup = swarm::setup(seed);
        let report = simulate(&setup, &mut |_| ()).expect("a possible shape");
        let command = swarm::command(&setup);
        assert!(
            report.is_well(),
            "{} violations ({:?}), {} unserved; repeat it with\n{command}",
            report.violations,
            report.first_violation,
            report.unserved
        );
        assert_eq!(report.measures.entries, setup.entries, "{command}");
    });
}

/// A load so thin that a restless token goes round thousands of times between two requests is no fault;
/// nor is a stay inside that outlasts thousands of demands.
#[test]
fn a_run_is_neither_cut_short_nor_given_up_while_all_is_well() {
    for (algorithm, load, hold) in [
        ("le-lann", "poisson:0.00001", "1"),
        ("le-lann", "think:100000", "1"),
        ("neamatollahi", "poisson:0.00001", "1"),
        ("central", "poisson:1000", "1000"),
    ] {
        let setup = Setup {
            load: load.parse().unwrap(),
            hold: hold.parse().unwrap(),
            entries: 200,
            ..Setup::new(Choice::parse(algorithm, "").unwrap(), 4)
        };
        let report = simulate(&setup, &mut |_| ()).unwrap();
        assert!(report.is_well(), "{report:#?}");
        assert_eq!(report.measures.entries, 200, "{algorithm} {load}");
    }
}

/// Five times as much demand as can be served: who wants in waits ever longer.
#[test]
fn response_times_count_from_the_demand() {
    let setup = Setup {
        load: "poisson:5".parse().unwrap(),
        entries: 1000,
        ..Setup::new(Choice::parse("central", "").unwrap(), 1)
    };
    let report = simulate(&setup, &mut |_| ()).unwrap();
    assert!(report.measures.response_time.max > 700.0, "{report:#?}");
}

#[test]
fn time_that_runs_out_is_an_error_not_a_figure() {
    let setup = Setup {
        hold: "1e9".parse().unwrap(),
        entries: 100_000,
        load: "heavy".parse().unwrap(),
        ..swarm::setup(5)
    };
    let error = simulate(&setup, &mut |_| ()).unwrap_err();
    assert!(
        error.to_string().contains("virtual time ran out"),
        "{error}"
    );
}

/// A swarm that could not fail would prove nothing: printed rules are caught by the same means.
#[test]
fn the_same_runs_catch_the_printed_rules() {
    for name in [
        "maekawa",
        "lodha-kshemkalyani",
        "chaudhuri-karaata",
        "neamatollahi",
    ] {
        let choice = Choice::parse(name, "as-published").unwrap();
        let caught = (0..400).into_par_iter().find_any(|&seed| {
            let mut setup = swarm::setup(seed);
            setup.choice = choice;
            setup.shape = Default::default();
            setup.channels = None;
            !simulate(&setup, &mut |_| ()).unwrap().is_well()
        });
        assert!(caught.is_some(), "{name} as published was not caught");
    }
}

#[test]
fn a_seed_means_the_same_run_bit_for_bit() {
    for seed in 0..20 {
        let setup = swarm::setup(seed);
        let reports = [(); 2].map(|()| simulate(&setup, &mut |_| ()).unwrap());
        assert_eq!(reports[0], reports[1]);
    }
}
