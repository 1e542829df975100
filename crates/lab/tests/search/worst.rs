//! Worst cases over all interleavings, and those that the adversarial scheduler finds.

use std::sync::Arc;

use soloist_algorithms::central::Central;
use soloist_algorithms::le_lann::LeLann;
use soloist_algorithms::maekawa::{AS_PUBLISHED, Maekawa};
use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::shape::{Quorums, Tree};
use soloist_algorithms::{Algorithm, Choice, Shape, VariantSet};
use soloist_lab::adversary::{Found, Hunt};
use soloist_lab::scenario;
use soloist_lab::search::{Aim, Bounds, Case, ENDLESS, Limit, Worst, worst};

fn most<A: Algorithm>(bounds: &Bounds<A::Shape>, aim: Aim) -> Worst {
    worst::<A>(bounds, aim, &mut |_| true)
}

fn line(requests: &[u8]) -> Bounds<Tree> {
    Bounds {
        shape: Arc::new(Tree::parse("line", requests.len()).unwrap()),
        ..Bounds::of::<Raymond>(requests)
    }
}

/// Three requests on a 2x2 grid with sets of three.
fn grid() -> Bounds<Quorums> {
    Bounds {
        shape: Arc::new(Quorums::parse("grid", 4).unwrap()),
        ..Bounds::of::<Maekawa>(&[0, 1, 1, 1])
    }
}

/// Raymond 1989, §5: 2D messages at most. On a line this is reached over and over if the privilege
/// goes from end to end.
#[test]
fn a_line_costs_twice_its_diameter_at_worst_in_the_long_run() {
    let Worst::Ratio {
        messages, entries, ..
    } = most::<Raymond>(&line(&[ENDLESS; 4]), Aim::Messages)
    else {
        panic!("endless requests have a ratio");
    };
    assert_eq!((messages, entries), (6 * entries, entries));
}

/// The coordinator's own entries cost nothing, so a run in which all nodes enter costs less per
/// entry than a lone entry of another node.
#[test]
fn messages_are_counted_per_entry_not_in_total() {
    let central = most::<Central>(&Bounds::of::<Central>(&[2; 4]), Aim::Messages);
    let Worst::Most { most, entries, .. } = central else {
        panic!("all runs end: {central:?}");
    };
    assert_eq!((most, entries), (3, 1));
}

/// As printed, Maekawa's algorithm may deadlock. The messages of requests that are never served are
/// not charged to the entries of others.
#[test]
fn runs_that_leave_a_request_unserved_do_not_count() {
    let with = |variants| Bounds { variants, ..grid() };
    let published = VariantSet::default().with(AS_PUBLISHED);
    let ratio = |bounds| match most::<Maekawa>(&bounds, Aim::Messages) {
        Worst::Most { most, entries, .. } => most as f64 / entries as f64,
        other => panic!("{other:?}"),
    };
    // At most 6(K-1), as by the repaired rules.
    let ratios = [published, VariantSet::default()].map(|variants| ratio(with(variants)));
    assert!(ratios.iter().all(|ratio| *ratio <= 12.0), "{ratios:?}");
    assert!(ratios[0] <= ratios[1], "{ratios:?}");
}

#[test]
fn a_worst_run_replays_with_as_many_messages() {
    let Worst::Most {
        most,
        entries,
        trace,
        ..
    } = most::<Maekawa>(&grid(), Aim::Messages)
    else {
        panic!("all runs end");
    };
    assert_eq!((most, entries), (25, 3));
    let head = "algorithm maekawa\nnodes 4\nshape grid\nchannels fifo\n";
    let steps: String = trace.iter().map(|step| format!("> {step}\n")).collect();
    let transcript = scenario::replay(&format!("{head}{steps}")).unwrap();
    let count = |part: &str| {
        transcript
            .lines()
            .filter(|line| line.contains(part))
            .count()
    };
    assert_eq!((count(" -> "), count(" enters")), (25, 3));
}

#[test]
fn a_token_that_roams_has_no_bound() {
    let bounds = Bounds::of::<LeLann>(&[1, 1, 1]);
    let worst = most::<LeLann>(&bounds, Aim::Messages);
    assert!(matches!(worst, Worst::Unbounded { .. }), "{worst:?}");
}

/// A coordinator serves requests in the order in which they arrive. In Raymond's tree, a request
/// that a neighbour has forwarded may be slow while others enter.
#[test]
fn overtaking_is_bounded_or_not() {
    let central = most::<Central>(&Bounds::of::<Central>(&[ENDLESS; 4]), Aim::Overtaking);
    assert!(
        matches!(central, Worst::Most { most: 0, .. }),
        "{central:?}"
    );
    let tree = most::<Raymond>(&line(&[ENDLESS; 4]), Aim::Overtaking);
    let Worst::Unbounded { cycle, .. } = tree else {
        panic!("{tree:?}");
    };
    assert!(
        cycle.iter().any(|step| step.starts_with("request")),
        "{cycle:?}"
    );
}

#[test]
fn a_search_that_runs_out_knows_nothing() {
    let mut bounds = grid();
    bounds.limits.states_max = 100;
    let worst = most::<Maekawa>(&bounds, Aim::Messages);
    assert!(
        matches!(
            worst,
            Worst::NotExhausted {
                limit: Limit::States,
                ..
            }
        ),
        "{worst:?}"
    );
}

fn hunt(nodes: usize, requests: &[u8], tries: u64) -> Found {
    let choice = Choice::parse("maekawa", "").unwrap();
    let case = Case {
        shape: soloist_lab::ShapeSpec::Form("grid".to_owned()),
        requests: requests.to_vec(),
        ..Case::new(choice, nodes, 1)
    };
    let hunt = Hunt {
        case,
        aim: Aim::Messages,
        seed: 1,
        tries,
    };
    hunt.run(&|| ()).unwrap()
}

/// The scheduler never finds more than there is, and here it finds all.
#[test]
fn the_scheduler_finds_the_worst_case_of_a_small_cluster() {
    let found = hunt(4, &[0, 1, 1, 1], 8_000);
    assert_eq!((found.messages, found.entries), (25, 3));
}

/// A run continues after its worst part, and the messages of a request that still waits are charged
/// to no other entry.
#[test]
fn a_hunt_charges_only_the_complete_part_of_a_run() {
    let choice = Choice::parse("central", "").unwrap();
    let hunt = Hunt {
        case: Case::new(choice, 12, 2),
        aim: Aim::Messages,
        seed: 1,
        tries: 400,
    };
    let found = hunt.run(&|| ()).unwrap();
    assert_eq!(found.messages, 3 * found.entries);
    let replayed = scenario::replay(&found.transcript).unwrap();
    let count = |part: &str| replayed.lines().filter(|line| line.contains(part)).count() as u64;
    assert_eq!(count("> request"), found.entries);
    assert_eq!(
        (count(" -> "), count(" enters")),
        (found.messages, found.entries)
    );
}

/// A request may be served, and the next one made, before all its messages have arrived.
#[test]
fn a_hunt_goes_on_while_an_old_request_is_in_flight() {
    let choice = Choice::parse("lodha-kshemkalyani", "").unwrap();
    let hunt = Hunt {
        case: Case::new(choice, 8, 2),
        aim: Aim::Overtaking,
        seed: 1,
        tries: 400,
    };
    let found = hunt.run(&|| ()).unwrap();
    assert_eq!(found.entries, 16);
}

#[test]
fn a_hunt_repeats_and_its_scenario_replays() {
    let found = hunt(9, &[1; 9], 200);
    assert_eq!(found, hunt(9, &[1; 9], 200));
    assert_eq!(
        scenario::replay(&found.transcript).unwrap(),
        found.transcript
    );
    let sent = found
        .transcript
        .lines()
        .filter(|line| line.contains(" -> "));
    assert_eq!(sent.count() as u64, found.messages);
}

/// With as few tries as there can be, except for the runs of single requests.
fn short_hunt(algorithm: &str, form: &str, nodes: usize, requests: u8) -> (Case, Found) {
    let choice = Choice::parse(algorithm, "").unwrap();
    let mut case = Case::new(choice, nodes, requests);
    if !form.is_empty() {
        case.shape = soloist_lab::ShapeSpec::Form(form.to_owned());
    }
    let hunt = Hunt {
        case: case.clone(),
        aim: Aim::Messages,
        seed: 1,
        tries: Hunt::CLIMBS,
    };
    (case, hunt.run(&|| ()).unwrap())
}

/// A bound may be reached by one request of the right node.
#[test]
fn a_hunt_returns_no_less_than_a_lone_request_of_each_node() {
    for (algorithm, form, nodes) in [
        ("chaudhuri-karaata", "3x3x3", 27),
        ("maekawa", "singer", 13),
        ("raymond", "kary:2", 15),
        ("lodha-kshemkalyani", "", 8),
        ("carvalho-roucairol", "", 8),
        ("singhal-dynamic", "", 8),
        ("suzuki-kasami", "", 8),
        ("naimi-trehel", "", 10),
        ("neilsen-mizuno", "line", 9),
        ("central", "", 12),
    ] {
        let (case, found) = short_hunt(algorithm, form, nodes, 1);
        for node in 0..nodes {
            let mut alone = case.clone();
            alone.requests = vec![0; nodes];
            alone.requests[node] = 1;
            let exact = alone.worst(Aim::Messages, &mut |_| true).unwrap();
            let (most, entries) = (exact.most.unwrap(), exact.entries.unwrap());
            assert!(
                found.messages * entries >= most * found.entries,
                "{algorithm}: {} for {}, and {most} for {entries} of node {node}",
                found.messages,
                found.entries
            );
        }
    }
}

/// Chaudhuri, Karaata 1998, Theorem 2: 8(c-1) for a request from the corner farthest from the
/// token. Raymond 1989, §5: 2D, if leaves on both sides of the root take turns, but for the first.
#[test]
fn a_hunt_lets_nodes_take_turns() {
    let (_, mesh) = short_hunt("chaudhuri-karaata", "3x3x3", 27, 1);
    assert_eq!((mesh.messages, mesh.entries), (16, 1));
    let replayed = scenario::replay(&mesh.transcript).unwrap();
    assert_eq!(replayed, mesh.transcript);
    let choice = Choice::parse("raymond", "").unwrap();
    let hunt = Hunt {
        case: Case {
            shape: soloist_lab::ShapeSpec::Form("kary:2".to_owned()),
            ..Case::new(choice, 15, 2)
        },
        aim: Aim::Messages,
        seed: 1,
        tries: 2_000,
    };
    let tree = hunt.run(&|| ()).unwrap();
    assert!(
        tree.messages * 16 >= (6 + 15 * 12) * tree.entries,
        "{} for {}",
        tree.messages,
        tree.entries
    );
}
