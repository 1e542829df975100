//! Several hundred runs with every parameter derived from the seed: no violations, and every
//! request is served.

use rayon::prelude::*;
use soloist_algorithms::{Algorithm, Channels, Choice, Kind, VariantSet, raymond};
use soloist_lab::simulate::{Crashes, Report, Setup, simulate};
use soloist_lab::swarm::{self, Among};

const RUNS: u64 = 600;

#[test]
fn every_run_is_safe_and_serves_everybody() {
    (0..RUNS).into_par_iter().for_each(|seed| {
        let setup = swarm::setup(seed);
        let report = simulate(&setup, &mut |_| ()).expect("a valid shape");
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

/// A load so low that a restless token circulates thousands of times between two requests is not a
/// fault. Nor is a hold that outlasts thousands of demands.
#[test]
fn a_healthy_run_is_neither_shortened_nor_abandoned() {
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

/// The demand is five times what can be served, so response times grow.
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
fn a_measurement_that_times_out_is_an_error() {
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

fn raymond(variants: &str) -> Choice {
    Choice::parse("raymond", variants).unwrap()
}

fn report(setup: &Setup) -> Report {
    simulate(setup, &mut |_| ()).expect("a valid setup")
}

/// Raymond 1989, §8: nodes crash under every load, over both kinds of channels. Each request still
/// ends in exactly one entry.
#[test]
fn crashed_nodes_recover_and_everybody_is_served() {
    let runs: Vec<(Setup, Report)> = (0..RUNS)
        .into_par_iter()
        .map(|seed| swarm::setup_among(Among::Kind(Kind::Raymond), seed))
        .filter(|setup| setup.crashes.is_some())
        .map(|setup| (setup.clone(), report(&setup)))
        .collect();
    for (setup, report) in &runs {
        let command = swarm::command(setup);
        assert!(report.is_well(), "{report:#?}\n{command}");
        assert_eq!(report.measures.entries, setup.entries, "{command}");
    }
    assert!(runs.len() as u64 > RUNS / 4, "{} runs", runs.len());
    let crashed: Vec<_> = runs.iter().filter(|run| run.1.crashes > 0).collect();
    assert!(crashed.len() * 2 > runs.len(), "{} crashed", crashed.len());
    for channels in ["fifo", "any"] {
        for load in ["light", "heavy", "burst", "poisson", "think"] {
            let fits = |report: &Report| {
                report.channels == channels && report.load.starts_with(load) && report.crashes > 1
            };
            assert!(
                crashed.iter().any(|run| fits(&run.1)),
                "no crashes over {channels} under {load} load"
            );
        }
    }
}

/// Crashes in quick succession, for half of the run, with a request waiting at every node.
#[test]
fn many_crashes_in_a_row_are_survived() {
    for (variants, channels) in [
        ("", Channels::Fifo),
        ("piggyback,greedy", Channels::Fifo),
        ("second-wait", Channels::Any),
        ("second-wait,initialize", Channels::Any),
    ] {
        let setup = Setup {
            crashes: Some("0.1:0".parse().unwrap()),
            channels: Some(channels),
            entries: 2_000,
            ..Setup::new(raymond(variants), 15)
        };
        let report = report(&setup);
        assert!(report.is_well(), "{variants}: {report:#?}");
        assert_eq!(report.measures.entries, 2_000);
        assert!(report.crashes > 500, "{variants}: {}", report.crashes);
    }
}

/// The swarm crashes nodes only if recovery is promised.
#[test]
fn seeded_runs_keep_the_promises() {
    for seed in 0..RUNS {
        let setup = swarm::setup(seed);
        let variants = setup.choice.variants;
        let promised = raymond::Raymond::recovers(variants, setup.channels.unwrap());
        let recovers = setup.choice.kind == Kind::Raymond && promised;
        assert_eq!(setup.crashes.is_some(), recovers, "{seed}");
    }
    let promise = raymond::Raymond::recovers;
    let none = VariantSet::default();
    assert!(promise(none, Channels::Fifo) && !promise(none, Channels::Any));
    assert!(promise(none.with(raymond::SECOND_WAIT), Channels::Any));
    assert!(!promise(none.with(raymond::DUPLICATES), Channels::Fifo));
    assert!(!promise(none.with(raymond::AS_PUBLISHED), Channels::Fifo));
}

/// Without the second wait, recovery uses FIFO channels by default. If messages may overtake each
/// other, random runs reveal two tokens.
#[test]
fn crashes_in_any_order_need_the_second_wait() {
    let crashes: Crashes = "5:0".parse().unwrap();
    let setup = |variants: &str, channels| Setup {
        crashes: Some(crashes),
        channels,
        entries: 2_000,
        ..Setup::new(raymond(variants), 7)
    };
    assert_eq!(report(&setup("", None)).channels, "fifo");
    assert_eq!(report(&setup("second-wait", None)).channels, "any");
    let caught = (0..100).into_par_iter().find_any(|&seed| {
        let setup = Setup {
            seed,
            ..setup("", Some(Channels::Any))
        };
        report(&setup).violations > 0
    });
    assert!(caught.is_some(), "an overtaken PRIVILEGE was not caught");
}

#[test]
fn crashes_need_an_algorithm_that_recovers() {
    for choice in Choice::all().filter(|choice| choice.name != "raymond") {
        let setup = Setup {
            crashes: Some("100".parse().unwrap()),
            ..Setup::new(choice, 4)
        };
        let error = simulate(&setup, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains(choice.kind.info().name), "{error}");
        assert!(error.contains("use raymond"), "{error}");
    }
}

/// A swarm that cannot fail proves nothing: the same kind of runs must catch the rules as printed.
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
            setup.crashes = None;
            !simulate(&setup, &mut |_| ()).unwrap().is_well()
        });
        assert!(caught.is_some(), "{name} as published was not caught");
    }
    for variants in ["as-published", "duplicates", "duplicates,second-wait"] {
        let among = Among::Choice(raymond(variants));
        let caught = (0..400)
            .into_par_iter()
            .map(|seed| report(&swarm::setup_among(among, seed)))
            .find_any(|report| report.crashes > 0 && !report.is_well());
        assert!(caught.is_some(), "raymond's {variants} was not caught");
    }
}

/// The totals are correct whatever the order in which the cores take the runs, also if stopped
/// early.
#[test]
fn a_swarm_sums_its_runs() {
    let swarm = swarm::run(Among::All, 100, 150, &|| true, &|| ()).unwrap();
    assert_eq!((swarm.seed, swarm.runs), (100, 150));
    assert!(swarm.is_well());
    assert_eq!(swarm.algorithms.len(), Kind::ALL.len());
    let reports: Vec<Report> = (100..250).map(|seed| report(&swarm::setup(seed))).collect();
    let total = swarm.total();
    let sum = |what: fn(&Report) -> u64| reports.iter().map(what).sum::<u64>();
    assert_eq!(total.runs, 150);
    assert_eq!(total.entries, sum(|report| report.measures.entries));
    assert_eq!(total.messages, sum(|report| report.measures.messages));
    assert_eq!(total.crashes, sum(|report| report.crashes));
    assert!(total.crashes > 0);

    let calls = std::cell::Cell::new(0);
    let twice = || calls.replace(calls.get() + 1) < 2;
    let cut_short = swarm::run(Among::All, 100, 150, &twice, &|| ()).unwrap();
    assert!(cut_short.runs > 0 && cut_short.runs < 150);
    let as_many = swarm::run(Among::All, 100, cut_short.runs, &|| true, &|| ()).unwrap();
    assert_eq!(cut_short, as_many);
}

#[test]
fn a_seed_means_the_same_run_bit_for_bit() {
    let crashing = (0..20).map(|seed| swarm::setup_among(Among::Kind(Kind::Raymond), seed));
    for setup in (0..20).map(swarm::setup).chain(crashing) {
        let reports = [(); 2].map(|()| simulate(&setup, &mut |_| ()).unwrap());
        assert_eq!(reports[0], reports[1]);
    }
}
