//! Figures that show a run, as replays of scenarios.

use soloist_algorithms::Kind;
use soloist_lab::scenario::replay as play;

use super::{Content, Item, Make, Part, Replayed, Reproduced};
use crate::neamatollahi::as_told;
use crate::tools::{is_replayed, scenario};
use crate::{Finding, Verdict};

/// Name and text of a scenario.
pub(super) type Scenario = (&'static str, &'static str);

const fn figure(
    paper: Kind,
    labels: &'static [&'static str],
    title: &'static str,
    scenarios: &'static [Scenario],
) -> Item {
    Item {
        paper,
        part: Part::Figure,
        labels,
        title,
        make: Make::Replay(scenarios),
    }
}

pub(super) fn items() -> Vec<Item> {
    [lodha_kshemkalyani().as_slice(), others().as_slice()].concat()
}

fn others() -> [Item; 8] {
    [
        figure(
            Kind::Raymond,
            &["1", "2", "3"],
            "a tree, its HOLDER edges, and how they turn when the privilege moves",
            &[(
                "raymond-figures-1-to-3",
                include_str!("../../scenarios/raymond-figures-1-to-3.txt"),
            )],
        ),
        figure(
            Kind::Raymond,
            &["4"],
            "the messages on an edge: only a REQUEST may overtake a PRIVILEGE",
            &[(
                "raymond-overtaking",
                include_str!("../../scenarios/raymond-overtaking.txt"),
            )],
        ),
        figure(
            Kind::Raymond,
            &["7"],
            "the path of the privilege in a saturated tree of ten nodes",
            &[(
                "raymond-figure-7",
                include_str!("../../scenarios/raymond-figure-7.txt"),
            )],
        ),
        figure(
            Kind::Maekawa,
            &["2", "2a", "2b"],
            "nodes 7, 8 and 11 lock each other in a circle, and a RELINQUISH opens it",
            &[(
                "maekawa-circular-locking",
                include_str!("../../scenarios/maekawa-circular-locking.txt"),
            )],
        ),
        figure(
            Kind::ChaudhuriKaraata,
            &["2", "3"],
            "the first colours of the tokens of 27 nodes, and how the colours change",
            &[(
                "chaudhuri-karaata-colours",
                include_str!("../../scenarios/chaudhuri-karaata-colours.txt"),
            )],
        ),
        Item {
            make: Make::ReplayByBoth(&(
                "neamatollahi-figure-1",
                include_str!("../../scenarios/neamatollahi-figure-1.txt"),
            )),
            ..figure(
                Kind::Neamatollahi,
                &["1"],
                "a request goes round its row, and the token round the row where it meets it",
                &[],
            )
        },
        figure(
            Kind::Neamatollahi,
            &["2"],
            "the rules as printed: the token never reads one row, and its node waits forever",
            &[(
                "neamatollahi-unread-row-as-published",
                include_str!("../../scenarios/neamatollahi-unread-row-as-published.txt"),
            )],
        ),
        Item {
            make: Make::ReplayByBoth(&(
                "neamatollahi-3.4",
                include_str!("../../scenarios/neamatollahi-3.4.txt"),
            )),
            ..figure(
                Kind::Neamatollahi,
                &["3"],
                "the scenario of §3.4 on a torus of 25 nodes",
                &[],
            )
        },
    ]
}

fn lodha_kshemkalyani() -> [Item; 7] {
    let figure =
        |labels, title, scenarios| figure(Kind::LodhaKshemkalyani, labels, title, scenarios);
    [
        figure(
            &["1"],
            "Ricart and Agrawala's rules as printed here: two nodes are inside",
            &[(
                "ricart-agrawala-fig1-as-published",
                include_str!("../../scenarios/ricart-agrawala-fig1-as-published.txt"),
            )],
        ),
        figure(
            &["2"],
            "the rules as printed: two deadlocks, two nodes inside, and a number used twice",
            &[
                (
                    "lodha-kshemkalyani-as-published-late-request",
                    include_str!(
                        "../../scenarios/lodha-kshemkalyani-as-published-late-request.txt"
                    ),
                ),
                (
                    "lodha-kshemkalyani-as-published-slow-flush",
                    include_str!("../../scenarios/lodha-kshemkalyani-as-published-slow-flush.txt"),
                ),
                (
                    "lodha-kshemkalyani-as-published-asks-again",
                    include_str!("../../scenarios/lodha-kshemkalyani-as-published-asks-again.txt"),
                ),
                (
                    "lodha-kshemkalyani-as-published-number-twice",
                    include_str!(
                        "../../scenarios/lodha-kshemkalyani-as-published-number-twice.txt"
                    ),
                ),
            ],
        ),
        figure(
            &["3"],
            "three concurrent requests, by this algorithm and by Ricart and Agrawala's",
            &[
                (
                    "lodha-kshemkalyani-fig3",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig3.txt"),
                ),
                (
                    "lodha-kshemkalyani-fig3-ricart-agrawala",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig3-ricart-agrawala.txt"),
                ),
            ],
        ),
        figure(
            &["4", "4a", "4b", "4c"],
            "what a process knows before and when it enters",
            &[(
                "lodha-kshemkalyani-fig4",
                include_str!("../../scenarios/lodha-kshemkalyani-fig4.txt"),
            )],
        ),
        figure(
            &["5"],
            "what a REQUEST does in each state of its receiver",
            &[
                (
                    "lodha-kshemkalyani-fig5-scenario1",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario1.txt"),
                ),
                (
                    "lodha-kshemkalyani-fig5-scenario2a",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2a.txt"),
                ),
                (
                    "lodha-kshemkalyani-fig5-scenario2b",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2b.txt"),
                ),
                (
                    "lodha-kshemkalyani-fig5-scenario2c",
                    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2c.txt"),
                ),
            ],
        ),
        figure(
            &["6"],
            "one REPLY stands for the replies of several processes",
            &[(
                "lodha-kshemkalyani-fig6",
                include_str!("../../scenarios/lodha-kshemkalyani-fig6.txt"),
            )],
        ),
        figure(
            &["7"],
            "a process receives more than one FLUSH",
            &[(
                "lodha-kshemkalyani-fig7",
                include_str!("../../scenarios/lodha-kshemkalyani-fig7.txt"),
            )],
        ),
    ]
}

/// Replays a scenario of the repaired rules by the printed ones as well.
pub(super) fn replay_by_both(scenario: &Scenario) -> Reproduced {
    let (name, text) = *scenario;
    Reproduced {
        finding: Finding {
            evidence: format!("soloist lab replay --check {}", self::scenario(name)),
            ..as_told(text, name)
        },
        ..replay(&[*scenario])
    }
}

/// Replays all the scenarios. A figure of rules as printed fails by what its scenarios show.
pub(super) fn replay(scenarios: &[Scenario]) -> Reproduced {
    let differs: Vec<_> = scenarios
        .iter()
        .filter(|(_, text)| !is_replayed(text))
        .collect();
    let published = scenarios
        .iter()
        .any(|(name, _)| name.contains("as-published"));
    let steps: usize = scenarios
        .iter()
        .map(|(_, text)| text.lines().filter(|line| line.starts_with("> ")).count())
        .sum();
    let (verdict, found) = match differs.as_slice() {
        [] if published => (
            Verdict::Fails,
            format!("the printed rules fail as the scenarios say, replayed in {steps} steps"),
        ),
        [] => (
            Verdict::Holds,
            format!("happens as told: replayed in {steps} steps, with all messages and states"),
        ),
        [(name, _), ..] => (Verdict::Fails, format!("{name} does not happen as told")),
    };
    let files = scenarios.iter().map(|(name, _)| scenario(name));
    let commands: Vec<_> = files
        .map(|file| format!("soloist lab replay --check {file}"))
        .collect();
    let replayed = scenarios.iter().map(|(name, text)| Replayed {
        file: scenario(name),
        transcript: play(text).unwrap_or_else(|error| format!("{error}\n")),
    });
    Reproduced {
        finding: Finding::new(verdict, found, commands.join(" && ")),
        seeds: None,
        content: Content::Replays(replayed.collect()),
    }
}
