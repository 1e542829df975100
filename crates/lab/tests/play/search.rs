//! Searches from where a scenario ends.

use soloist_algorithms::{Channels, Choice, NodeId};
use soloist_lab::ShapeSpec;
use soloist_lab::play::{Progress, Search, SearchLimits, run, search};
use soloist_lab::scenario::replay;
use soloist_lab::search::{Case, Verdict};

/// Maekawa's deadlock as published, by `lab check`.
fn maekawas_deadlock() -> String {
    let choice = Choice::parse("maekawa", "as-published").unwrap();
    let mut case = Case::new(choice, 4, 1);
    case.shape = ShapeSpec::Form("grid".to_owned());
    let report = case.run(&mut |_| true).unwrap();
    assert_eq!(report.verdict, Verdict::Deadlock);
    report.transcript.unwrap()
}

#[test]
fn search_from_an_early_state_finds_a_shortest_way_to_the_known_deadlock() {
    let whole = maekawas_deadlock();
    let steps = run(&whole, 0).unwrap().steps;
    let length = steps.len();
    for back in (3..length).step_by(3) {
        let before = steps[length - back].line - 1;
        let kept: Vec<&str> = whole.lines().take(before).collect();
        let text = kept.join("\n") + "\n";
        let found = search(&text, SearchLimits::default(), &mut |_| true).unwrap();
        let Search::Found { text, steps, fault } = found else {
            panic!("{back} steps before the deadlock: {found:?}");
        };
        assert_eq!((steps, fault.kind), (back, "deadlock"));
        let played = run(&text, 0).unwrap();
        assert_eq!((played.count, played.ended), (length, Some("deadlock")));
        assert_eq!(replay(&text).unwrap(), text);
    }
}

#[test]
fn search_from_a_state_of_a_correct_algorithm_visits_every_state() {
    let text = "algorithm raymond\nnodes 4\n> request 1\n> deliver 1 0\n";
    let limits = SearchLimits::default();
    let found = search(text, limits, &mut |_| true).unwrap();
    assert!(
        matches!(found, Search::Nothing { complete: true, .. }),
        "{found:?}"
    );
}

#[test]
fn a_search_that_is_stopped_says_how_far_it_got() {
    let text = "algorithm maekawa\nnodes 7\n> request 0\n";
    let limits = SearchLimits {
        states: 2000,
        ..SearchLimits::default()
    };
    let Search::Nothing {
        depth,
        states,
        complete,
        reason,
    } = search(text, limits, &mut |_| true).unwrap()
    else {
        panic!("a repaired algorithm is without a fault");
    };
    assert!(
        !complete && depth > 2 && states > 1000,
        "{depth} steps, {states} states"
    );
    assert_eq!(reason, Some("more states than allowed"));
    let progress = &mut |progress: Progress| progress.states < 500;
    let stopped = search(text, SearchLimits::default(), progress).unwrap();
    assert!(
        matches!(
            stopped,
            Search::Nothing {
                complete: false,
                ..
            }
        ),
        "{stopped:?}"
    );
}

#[test]
fn quotas_of_requests_count_from_here() {
    // P0 has requested once before. One more request has the same number: see docs/errata.md, L4.
    let head = "algorithm lodha-kshemkalyani\nvariant as-published\nnames P0 P1\n";
    let once = "> request P0\n> run\n> release P0\n";
    let limits = SearchLimits::default();
    let found = search(&format!("{head}{once}"), limits, &mut |_| true).unwrap();
    assert!(
        matches!(found, Search::Found { ref fault, .. } if fault.kind == "order"),
        "{found:?}"
    );
    let none = SearchLimits {
        requests: 0,
        ..limits
    };
    let found = search(&format!("{head}{once}"), none, &mut |_| true).unwrap();
    assert!(
        matches!(found, Search::Nothing { complete: true, .. }),
        "{found:?}"
    );
}

#[test]
fn search_finds_starvation_as_a_cycle() {
    let choice = Choice::parse("neamatollahi", "as-published").unwrap();
    let mut case = Case::new(choice, 4, 1);
    case.limits.channels = Channels::Fifo;
    case.request_only(&[NodeId::new(2), NodeId::new(3)])
        .unwrap();
    let report = case.run(&mut |_| true).unwrap();
    assert_eq!(report.verdict, Verdict::Starvation);
    let head = report.transcript.unwrap();
    let head: String = head
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('>'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let limits = SearchLimits {
        states: 1_000_000,
        ..SearchLimits::default()
    };
    let found = search(&head, limits, &mut |_| true).unwrap();
    assert!(
        matches!(found, Search::Found { ref fault, .. } if fault.kind == "starvation"),
        "{found:?}"
    );
}

#[test]
fn a_cluster_that_is_too_large_for_a_search_is_refused() {
    let large = "algorithm central\nnodes 100\n";
    let refused = search(large, SearchLimits::default(), &mut |_| true).unwrap_err();
    assert!(
        refused.to_string().contains("100 nodes are too many"),
        "{refused}"
    );
}
