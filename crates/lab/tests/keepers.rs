//! Exhaustive search of the keepers' model: machines that crash and return with their old disks or
//! re-imaged, half-done promotions, and recovery.
//!
//! Each rule can be broken, and the search then finds the failure that the rule prevents.

use soloist_lab::epochs::text::replay;
use soloist_lab::keepers::check::{Case, Preset, Report, STUCK};
use soloist_lab::keepers::setup::{Setup, Variant};
use soloist_lab::search::Verdict;

fn search(setup: Setup) -> Report {
    let case = Case {
        setup,
        states_max: usize::MAX,
        ..Case::new(Preset::ReplacedKeeper)
    };
    case.run(&mut |_| true).unwrap()
}

/// Searches to the end, and compares the number of states if it is known.
fn holds(what: &str, setup: Setup, states: Option<usize>) {
    let report = search(setup);
    let text = report.text.unwrap_or_default();
    assert_eq!(report.verdict, Verdict::Holds, "{what}:\n{text}");
    println!("{what}: {} states", report.states);
    if let Some(states) = states {
        assert_eq!(report.states, states, "{what}");
    }
}

/// Three first keepers and one more node. One keeper is down and may return; one may be replaced.
fn replacement() -> Setup {
    let mut setup = Preset::ReplacedKeeper.setup();
    setup.budget.reimages = 0;
    setup
}

#[test]
#[ignore = "a minute: 547,154 states"]
fn replaced_keepers_that_return_make_no_second_cluster() {
    let setup = Preset::ReplacedKeeper.setup();
    holds("replaced keepers", setup, Some(547_154));
}

#[test]
#[ignore = "minutes, and gigabytes of memory"]
fn replaced_keepers_and_partitions_long() {
    let mut setup = Preset::ReplacedKeeper.setup();
    setup.partitions = true;
    holds("replaced keepers and partitions", setup, None);
}

/// A demoted node is promoted again, while the keeper that was down knows only of its first
/// promotion.
#[test]
fn a_node_that_is_promoted_again_ignores_requests_for_its_old_id() {
    let setup = Setup {
        checks_progress: false,
        ..Preset::SecondPromotion.setup()
    };
    holds("second promotion", setup, Some(59_680));
}

#[test]
#[ignore = "minutes"]
fn a_node_that_is_promoted_again_while_another_crashes_long() {
    let mut setup = Preset::SecondPromotion.setup();
    setup.budget.crashes = 1;
    holds("second promotion and a crash", setup, None);
}

#[test]
fn first_keepers_form_a_cluster_though_one_is_reimaged() {
    holds("bootstrap", Preset::Bootstrap.setup(), Some(86_048));
}

#[test]
fn a_sole_keeper_that_was_replaced_founds_no_cluster_that_members_join() {
    holds("sole keeper", Preset::SoleKeeper.setup(), Some(10_130));
}

#[test]
fn machines_of_an_earlier_generation_return_after_recovery() {
    holds("recovery", Preset::Recovery.setup(), Some(41_763));
}

#[test]
#[ignore = "minutes"]
fn recovery_and_re_imaged_machines_long() {
    let mut setup = Preset::Recovery.setup();
    setup.budget.crashes = 3;
    setup.budget.reimages = 1;
    holds("recovery and re-imaged machines", setup, None);
}

/// Every rule is needed: without it, the search finds two clusters, or one that is stuck.
#[test]
fn every_rule_is_needed() {
    for variant in Variant::ALL {
        let (setup, is_stuck) = match variant {
            Variant::EmptyStoreVotes => (Preset::ReplacedKeeper.setup(), false),
            Variant::RefuseUnknown
            | Variant::SetAsideUncommitted
            | Variant::LeadersRemoveThemselves => (replacement(), true),
            Variant::IdsFromNames => (Preset::SecondPromotion.setup(), false),
            Variant::IgnoreSuccessors => (Preset::Recovery.setup(), false),
        };
        let report = search(Setup {
            variants: [variant].into_iter().collect(),
            checks_progress: is_stuck,
            ..setup
        });
        let (violation, text) = (report.what.unwrap(), report.text.unwrap());
        println!("{}: {violation}\n{text}", variant.name());
        let expected = match is_stuck {
            true => Verdict::Deadlock,
            false => Verdict::Broken,
        };
        assert_eq!(report.verdict, expected, "{variant:?}:\n{text}");
        assert_eq!(violation == STUCK, is_stuck, "{variant:?}");
        // The text shows the violation again.
        let fault = format!("FAULT {violation}");
        assert_eq!(text.lines().last(), Some(&*fault), "{variant:?}:\n{text}");
        assert_eq!(replay(&text).unwrap(), text, "{variant:?}");
    }
}

/// The steps of a text, without its transcript.
fn steps(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("> ")).collect()
}

/// The two texts differ in one rule only. With it, the keeper that returns gets no vote. Without
/// it, the same steps make a second cluster.
#[test]
fn a_keeper_that_returns_leads_again_only_if_empty_stores_vote() {
    let returns = include_str!("scenarios/epochs-keeper-returns.txt");
    let broken = include_str!("scenarios/epochs-keeper-returns-empty-store-votes.txt");
    assert_eq!(steps(returns), steps(broken));
    let has_variant = |text: &str| text.contains("\nvariant empty-store-votes\n");
    assert!(!has_variant(returns) && has_variant(broken));
    let faults = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("FAULT"))
            .count()
    };
    assert_eq!(faults(returns), 0);
    assert!(faults(broken) > 0);
    assert!(broken.contains("\nFAULT n3 leads without what was agreed on\n"));
}
