//! The gallery, and runs of the simulator.

use std::collections::{BTreeMap, BTreeSet};

use soloist_algorithms::{Channels, Choice};
use soloist_lab::play::{Comparison, Exhibit, Run, compare, exhibit, gallery, run, scenario_of};
use soloist_lab::simulate::{Load, Setup, simulate};

/// What each tour of a fault ends with. `None` if the fault is a count, or a run without end.
const FAULTS: [(&str, Option<&str>); 22] = [
    ("fault-c1", Some("deadlock")),
    ("fault-c2", Some("deadlock")),
    ("fault-c3", Some("invariant")),
    ("fault-c4", None),
    ("fault-l1", Some("deadlock")),
    ("fault-l2", Some("two-inside")),
    ("fault-l3", Some("deadlock")),
    ("fault-l4", Some("order")),
    ("fault-l5", Some("two-inside")),
    ("fault-l6", None),
    ("fault-m1", Some("deadlock")),
    ("fault-m2", Some("two-inside")),
    ("fault-m3", None),
    ("fault-m4", Some("deadlock")),
    ("fault-n1", None),
    ("fault-n2", None),
    ("fault-n3", None),
    ("fault-r1", Some("deadlock")),
    ("fault-r2", Some("two-inside")),
    ("fault-r3", None),
    ("fault-r4", None),
    ("fault-r5", None),
];

#[test]
fn tours_ask_questions_and_end_with_their_fault() {
    let tours = gallery();
    let is_tour = |e: &&Exhibit| e.group == "tours" || e.name.starts_with("fault-");
    let tours = tours.iter().filter(is_tour);
    let mut count = 0;
    for tour in tours {
        let text = exhibit(&tour.name).unwrap();
        let run = run(&text, 0).unwrap();
        let questions = run.steps.iter().filter(|step| step.ask.is_some()).count();
        let captions = run
            .steps
            .iter()
            .filter(|step| step.caption.is_some())
            .count();
        assert!(
            questions > 0 && captions > 0,
            "{}: {questions}, {captions}",
            tour.name
        );
        assert!(run.intro.is_some(), "{}", tour.name);
        let known = FAULTS.iter().find(|(name, _)| *name == tour.name);
        let expected = known.and_then(|(_, fault)| *fault);
        let fault = run.last_fault().map(|fault| fault.kind);
        assert_eq!(fault, expected, "{}", tour.name);
        count += 1;
    }
    assert_eq!(count, 5 + FAULTS.len());
}

#[test]
fn every_fault_in_the_errata_has_a_tour() {
    let errata = include_str!("../../../../docs/errata.md");
    let headings = errata.lines().filter_map(|line| line.strip_prefix("### "));
    let is_number = |name: &&str| name.len() == 2 && name.ends_with(|c: char| c.is_ascii_digit());
    let mut missing: Vec<&str> = headings.filter(is_number).collect();
    assert!(missing.len() > 15, "{missing:?}");
    missing.retain(|name| exhibit(&format!("fault-{}", name.to_lowercase())).is_none());
    assert!(missing.is_empty(), "no tour shows {missing:?}");
}

#[test]
fn every_run_of_the_gallery_can_be_played() {
    let all = gallery();
    let names: BTreeSet<_> = all.iter().map(|exhibit| &exhibit.name).collect();
    assert_eq!(names.len(), all.len(), "a name is used twice");
    for piece in &all {
        let text = exhibit(&piece.name).unwrap();
        let run = run(&text, 0).unwrap_or_else(|error| panic!("{}: {error}", piece.name));
        assert!(run.count > 3, "{}", piece.name);
        assert!(piece.sentence.ends_with('.'), "{}", piece.name);
        let entries = run.steps.iter().filter(|step| step.enter).count();
        if piece.group.ends_with("load") {
            assert_eq!((entries, run.last_fault()), (12, None), "{}", piece.name);
            let times: Vec<f64> = run.steps.iter().map(|step| step.time).collect();
            assert!(
                times.is_sorted() && times[times.len() - 1] > 2.0,
                "{times:?}"
            );
        }
    }
    assert_eq!(exhibit("no-such-run"), None);
}

fn simulated(setup: &Setup) -> Run {
    let text = scenario_of(setup).unwrap();
    let run = run(&text, 0).unwrap();
    assert_eq!(run.last_fault(), None, "{text}");
    assert_eq!(run.ended, Some("all requests are served"), "{text}");
    run
}

#[test]
fn a_run_with_crashes_is_played_as_it_was_simulated() {
    let setup = Setup {
        crashes: Some("10:3".parse().unwrap()),
        entries: 30,
        ..Setup::new(Choice::parse("raymond", "").unwrap(), 7)
    };
    let report = simulate(&setup, &mut |_| ()).unwrap();
    let run = simulated(&setup);
    let count = |action| {
        run.steps
            .iter()
            .filter(|step| step.action == action)
            .count()
    };
    let crashes = usize::try_from(report.crashes).unwrap();
    assert!(crashes > 2, "{crashes} crashes");
    assert_eq!((count("crash"), count("restart")), (crashes, crashes));
    let entries = run.steps.iter().filter(|step| step.enter).count();
    assert_eq!(entries, 30);
    let often = Setup {
        crashes: Some("0.5:3".parse().unwrap()),
        ..setup
    };
    let refused = scenario_of(&often).unwrap_err().to_string();
    assert!(
        refused.contains("a search can judge at most 15"),
        "{refused}"
    );
}

#[test]
fn messages_overtake_each_other_in_a_played_run() {
    let setup = Setup {
        channels: Some(Channels::Any),
        delay: "exponential:1".parse().unwrap(),
        load: Load::Heavy,
        entries: 40,
        ..Setup::new(Choice::parse("ricart-agrawala", "").unwrap(), 4)
    };
    let run = simulated(&setup);
    let mut latest = BTreeMap::new();
    let sent = run.steps.iter().flat_map(|step| &step.sends);
    let sent: Vec<_> = run.flight.iter().chain(sent).collect();
    let overtaken = run.steps.iter().filter_map(|step| step.got).filter(|&id| {
        let link = (sent[id].from, sent[id].to);
        let before = latest.insert(link, id);
        before.is_some_and(|before| before > id)
    });
    assert!(overtaken.count() > 0);
}

#[test]
fn compared_algorithms_have_the_same_demands() {
    let comparison = Comparison {
        algorithms: ["raymond".to_owned(), "maekawa".to_owned()],
        nodes: 7,
        load: "poisson:0.05".to_owned(),
        entries: 10,
        seed: 3,
    };
    let runs = compare(&comparison).unwrap().runs;
    let demands = runs.each_ref().map(|run| {
        let requests = run.steps.iter().filter(|step| step.action == "request");
        let mut nodes: Vec<usize> = requests.map(|step| step.node).collect();
        nodes.sort_unstable();
        nodes
    });
    assert_eq!(demands[0].len(), 10);
    assert_eq!(demands[0], demands[1]);
    let closed = Comparison {
        load: "heavy".to_owned(),
        ..comparison
    };
    let refused = compare(&closed).unwrap_err().to_string();
    assert!(
        refused.contains("compare with burst or poisson:RATE"),
        "{refused}"
    );
}

#[test]
fn every_step_is_told_in_a_sentence() {
    let told = |text: &str| -> Vec<String> {
        let steps = run(text, 0).unwrap().steps.into_iter();
        steps.map(|step| step.told).collect()
    };
    let central = told("algorithm central\nnames A B C\n> request B\n> run\n");
    assert_eq!(central[0], "B requests and sends REQUEST to A.");
    assert!(
        central[1].starts_with("A gets REQUEST from B and sends "),
        "{central:?}"
    );
    assert!(central[2].ends_with(" from A and enters."), "{central:?}");
    let all = told("algorithm ricart-agrawala\nnames A B C\n> request B\n");
    assert_eq!(all, ["B requests and sends REQUEST to all others."]);

    // In all runs of the gallery.
    let mut kinds = ["is now", "nothing changes", "sends nothing", "crashes"].map(|kind| (kind, 0));
    for Exhibit { name, .. } in gallery() {
        let played = run(&exhibit(&name).unwrap(), 0).unwrap();
        for step in &played.steps {
            let told = &step.told;
            assert!(
                told.ends_with('.') && !told.contains("  "),
                "{name}: {told}"
            );
            assert!(
                told.starts_with(&played.names[step.node]) || step.action == "lose",
                "{told}"
            );
            for (kind, count) in &mut kinds {
                *count += usize::from(told.contains(*kind));
            }
        }
    }
    assert!(kinds.iter().all(|(_, count)| *count > 0), "{kinds:?}");
}

#[test]
fn the_picture_of_a_run_shows_something() {
    for Exhibit { name, picture, .. } in gallery() {
        let nodes = picture.plan.nodes.len();
        assert_eq!(picture.phases.len(), nodes, "{name}");
        let is_idle = picture.phases.iter().all(|phase| *phase == "idle");
        assert!(!is_idle || nodes == 1, "{name}");
        assert!(picture.tokens.iter().all(|node| *node < nodes), "{name}");
    }
    let all = gallery();
    let inside = |name: &str| {
        let exhibit = all.iter().find(|exhibit| exhibit.name == name).unwrap();
        let phases = exhibit.picture.phases.iter();
        phases.filter(|phase| **phase == "inside").count()
    };
    assert_eq!((inside("raymond-heavy"), inside("fault-l2")), (1, 2));
}
