//! Replications: windows, warm-up, intervals, precision, and pairs.

use soloist_algorithms::Choice;
use soloist_lab::ShapeSpec;
use soloist_lab::replicate::{Plan, Replicated, replicate, warm_up};
use soloist_lab::simulate::{Measures, Setup, simulate};

fn setup(algorithm: &str, nodes: usize, load: &str) -> Setup {
    Setup {
        load: load.parse().unwrap(),
        entries: if load == "burst" { nodes as u64 } else { 1000 },
        ..Setup::new(Choice::parse(algorithm, "").unwrap(), nodes)
    }
}

fn run(setup: &Setup, plan: &Plan) -> Replicated {
    replicate(setup, plan, &|| ()).unwrap()
}

const STRICT: Plan = Plan {
    seeds: 20,
    precision: None,
    level: Plan::VERDICT_LEVEL,
    warm_up: None,
};

/// Raymond 1989, section 5: on a line, 2(N²-1)/3N messages on average under light load.
#[test]
fn the_interval_contains_an_average_that_is_known() {
    let setup = Setup {
        shape: ShapeSpec::Form("line".to_owned()),
        ..setup("raymond", 20, "light")
    };
    let messages = run(&setup, &STRICT).report.measures.messages_per_entry;
    let expected = 2.0 * 399.0 / 60.0;
    assert!(messages.contains(expected), "{messages}, not {expected}");
    assert!(messages.relative_half_width() < 0.05, "{messages}");
    assert!(messages.half_width > 0.0);
}

/// Raymond 1989, section 5.1: saturated, 4(N-1)/N messages per entry. The start and the end of a
/// run are not saturated, so this is exact only inside a window.
#[test]
fn a_window_has_neither_the_start_nor_the_end_of_a_run() {
    let setup = Setup {
        delay: "constant".parse().unwrap(),
        hold: "2".parse().unwrap(),
        ..setup("raymond", 10, "heavy")
    };
    let exact = 3.6;
    let windows = run(&setup, &Plan::default()).report.measures;
    assert_eq!(windows.messages_per_entry.mean, exact);
    assert_eq!(windows.messages_per_entry.half_width, 0.0);
    assert_eq!(windows.entries, 1000);
    let whole = simulate(&setup, &mut |_| ()).unwrap().measures;
    assert_ne!(whole.messages_per_entry, exact);
}

#[test]
fn every_replication_measures_the_same_number_of_entries() {
    for load in ["light", "heavy", "poisson:0.2", "think:20"] {
        let replicated = run(&setup("naimi-trehel", 6, load), &Plan::default());
        assert!(replicated.is_well(), "{load}");
        assert_eq!(replicated.replications, 10);
        assert!(
            replicated
                .singles
                .iter()
                .all(|single| single.entries == 1000)
        );
        let figures = &replicated.report.measures;
        assert_eq!(figures.fairness.max_overtaken.sample, 10_000);
        assert_eq!(figures.response_time.max.sample, 10_000);
        assert_eq!(figures.node_load.max.sample, 60);
        let kinds = &figures.messages_by_kind_per_entry;
        let sum: f64 = kinds.values().map(|kind| kind.mean).sum();
        let messages = figures.messages_per_entry.mean;
        assert!((sum - messages).abs() < 1e-9, "{load}: {sum}, {messages}");
    }
}

#[test]
fn a_burst_is_measured_whole() {
    let replicated = run(&setup("ricart-agrawala", 9, "burst"), &Plan::default());
    assert_eq!(replicated.warm_up, None);
    let figures = &replicated.report.measures;
    assert_eq!(figures.entries, 9);
    assert_eq!(figures.messages_per_entry.to_string(), "16 ± 0");
}

#[test]
fn a_steady_load_passes_the_check_of_its_warm_up() {
    for algorithm in ["raymond", "naimi-trehel", "maekawa"] {
        for load in ["light", "heavy", "think:20", "poisson:0.2"] {
            let replicated = run(&setup(algorithm, 13, load), &Plan::default());
            let found = replicated.warm_up.unwrap();
            assert_eq!(found.entries, warm_up(13));
            let doubled = found.doubled.unwrap();
            assert!(doubled.settled, "{algorithm} under {load}: {found:?}");
            assert_eq!(replicated.warnings(), Vec::<String>::new());
        }
    }
}

/// Demand that exceeds what can be served has no steady state: waiting times grow forever.
#[test]
fn an_overload_fails_the_check_of_its_warm_up() {
    let replicated = run(&setup("raymond", 8, "poisson:2"), &Plan::default());
    let warm_up = replicated.warm_up.unwrap();
    assert!(!warm_up.doubled.unwrap().settled, "{warm_up:?}");
    let warning = replicated.warnings().join("\n");
    assert!(warning.starts_with("not steady after"), "{warning}");
}

/// All nodes request at the start, so the first of them wait less than all later ones.
#[test]
fn a_warm_up_that_is_too_short_fails_its_check() {
    let short = Plan {
        warm_up: Some(8),
        ..Plan::default()
    };
    let setup = Setup {
        entries: 16,
        ..setup("central", 64, "heavy")
    };
    let found = run(&setup, &short).warm_up.unwrap();
    assert!(!found.doubled.unwrap().settled, "{found:?}");
}

/// Twice nothing is nothing: the two windows are the same, and their agreement says nothing.
#[test]
fn without_a_warm_up_nothing_says_that_the_load_is_steady() {
    let none = Plan {
        warm_up: Some(0),
        ..Plan::default()
    };
    let replicated = run(&setup("central", 64, "heavy"), &none);
    let found = replicated.warm_up.unwrap();
    assert_eq!((found.entries, found.doubled), (0, None));
    let warning = replicated.warnings().join("\n");
    assert!(warning.starts_with("not checked whether"), "{warning}");
}

/// If requests are rare, only some replications have a node that leaves while another waits.
#[test]
fn replications_without_a_hand_over_are_left_out_of_its_delay() {
    let rare = Setup {
        entries: 20,
        delay: "constant".parse().unwrap(),
        ..setup("central", 4, "think:400")
    };
    let runs = [
        rare.clone(),
        Setup {
            hold: "2".parse().unwrap(),
            ..rare
        },
    ];
    let [short, long] = runs.map(|setup| run(&setup, &STRICT));
    let with = |run: &Replicated| {
        run.singles
            .iter()
            .filter(|m| m.sync_delay.count > 0)
            .count()
    };
    assert!((2..20).contains(&with(&short)), "{}", with(&short));
    let figures = &short.report.measures;
    assert_eq!(figures.without_hand_over, 20 - with(&short) as u64);
    let delay = figures.sync_delay.unwrap();
    assert_eq!(delay.mean.replications, with(&short) as u64);
    // A RELEASE and a GRANT, or one of them if the coordinator is the one or the other.
    assert!((1.0..=2.0).contains(&delay.mean.mean), "{delay:?}");
    let pairs = short.singles.iter().zip(&long.singles);
    let pairs = pairs.filter(|(a, b)| a.sync_delay.count.min(b.sync_delay.count) > 0);
    let difference = long.difference_if_any(&short, |m| m.sync_delay.mean_if_any());
    assert_eq!(difference.unwrap().replications, pairs.count() as u64);

    let never = run(&setup("raymond", 9, "light"), &Plan::default());
    let figures = &never.report.measures;
    assert_eq!((figures.sync_delay, figures.without_hand_over), (None, 10));
    let difference = never.difference_if_any(&never, |m| m.sync_delay.mean_if_any());
    assert_eq!(difference, None);
}

#[test]
fn replications_stop_at_the_precision_asked_for() {
    let setup = setup("raymond", 15, "think:30");
    let plan = |precision, seeds| Plan {
        seeds,
        precision: Some(precision),
        ..Plan::default()
    };
    let coarse = run(&setup, &plan(0.1, 1000));
    assert_eq!(coarse.replications, 10, "the minimum");
    let fine = run(&setup, &plan(0.004, 1000));
    let precision = fine.precision.unwrap();
    assert!(precision.reached && precision.got <= 0.004, "{precision:?}");
    assert!((11..1000).contains(&fine.replications), "{precision:?}");
    let capped = run(&setup, &plan(0.000_01, 12));
    assert_eq!(capped.replications, 12);
    assert!(!capped.precision.unwrap().reached);
    let warning = capped.warnings().join("\n");
    assert!(warning.contains("precision not reached"), "{warning}");
}

/// Nodes of both algorithms pause equally long, so most of what differs between seeds does not
/// differ between the algorithms.
#[test]
fn pairs_with_the_same_demand_differ_less_than_strangers() {
    let runs = ["central", "naimi-trehel"].map(|algorithm| {
        let setup = Setup {
            entries: 400,
            delay: "constant".parse().unwrap(),
            ..setup(algorithm, 12, "think:15")
        };
        run(&setup, &STRICT)
    });
    let response = |measures: &Measures| measures.response_time.mean;
    let difference = runs[0].difference(&runs[1], response);
    let strangers: f64 = runs
        .iter()
        .map(|run| run.estimate(response).half_width.powi(2))
        .sum();
    assert!(
        difference.half_width < 0.6 * strangers.sqrt(),
        "{difference}, {}",
        strangers.sqrt()
    );
    let same = runs[0].difference(&runs[0], response);
    assert_eq!((same.mean, same.half_width), (0.0, 0.0));
}

#[test]
fn a_failed_replication_is_named() {
    let choice = Choice::parse("neamatollahi", "as-published").unwrap();
    let setup = Setup {
        load: "light".parse().unwrap(),
        ..Setup::new(choice, 9)
    };
    let replicated = run(&setup, &Plan::default());
    assert!(!replicated.is_well());
    assert!(replicated.failed_seed.is_some());
}
