//! §2, §3, Theorems 1 and 2, and the figures: correctness of the rules.

use soloist_algorithms::lodha_kshemkalyani::{
    AS_PUBLISHED, CLOCK_EVERYWHERE, LodhaKshemkalyani, ONE_REPLY,
};
use soloist_algorithms::ricart_agrawala::{AS_PUBLISHED as AS_DESCRIBED, RicartAgrawala};
use soloist_algorithms::{Channels, Variant, VariantSet};
use soloist_lab::replicate::Estimate;
use soloist_lab::scenario::replay;
use soloist_lab::simulate::Measures;

use super::watch::Watched;
use crate::pairs::more_messages;
use crate::tools::{Both, Run, Search, Searched, finding, proved, scenario};
use crate::{Finding, Verdict};

type Searching = Search<LodhaKshemkalyani>;

pub(super) fn fifo() -> Finding {
    let fifo = Searching::of(&[2, 2]).run();
    let any = Searching::of(&[2, 2]).channels(Channels::Any);
    let searched = any.run();
    finding(
        fifo.is_well() && !searched.is_well(),
        format!(
            "and it needs them: two nodes with two requests each, in order: {}; in any order: {}",
            fifo.text(),
            searched.text()
        ),
        any.command(),
    )
}

pub(super) fn queue() -> Finding {
    let runs = Watched::runs(VariantSet::default());
    let (mut entries, mut strangers, mut oversized) = (0, 0, 0);
    for run in &runs {
        for &(own, other) in &run.queued {
            entries += 1;
            strangers += u32::from(!run.are_concurrent(own, other));
        }
        for own in run.costs.keys() {
            let others = run.queued.iter().filter(|pair| pair.0 == *own).count();
            oversized += u32::from(others as u32 + 1 > run.nodes);
        }
    }
    let is_so = entries > 0 && strangers == 0 && oversized == 0;
    Finding::new(
        // Concurrency is a matter of whole runs, which a search of states does not see.
        match is_so {
            true => Verdict::Withstood,
            false => Verdict::Fails,
        },
        format!(
            "{} random runs of 2 to 9 nodes, four requests each: {entries} entries beside the own one, {strangers} of them \
             not concurrent by Definition 1; more than N in {oversized} queues",
            runs.len()
        ),
        scenario("lodha-kshemkalyani-fig4"),
    )
}

const FIGURE_3: &str = include_str!("../../scenarios/lodha-kshemkalyani-fig3.txt");
const FIGURE_3_RICART_AGRAWALA: &str =
    include_str!("../../scenarios/lodha-kshemkalyani-fig3-ricart-agrawala.txt");
const FIGURE_6: &str = include_str!("../../scenarios/lodha-kshemkalyani-fig6.txt");
const FIGURE_7: &str = include_str!("../../scenarios/lodha-kshemkalyani-fig7.txt");

/// Replays a scenario, and returns the lines of its transcript.
fn happens(text: &str) -> Vec<String> {
    let replayed = replay(text).expect("a scenario that can be replayed");
    replayed.lines().map(str::to_owned).collect()
}

fn sent(lines: &[String], what: &str) -> usize {
    lines
        .iter()
        .filter(|line| line.contains(" -> ") && line.contains(what))
        .count()
}

pub(super) fn figure_3() -> Finding {
    let (ours, theirs) = (happens(FIGURE_3), happens(FIGURE_3_RICART_AGRAWALA));
    let enter = |lines: &[String]| lines.iter().filter(|l| l.ends_with(" enters")).count();
    let (requests, flushes) = (sent(&ours, "REQUEST"), sent(&ours, "FLUSH"));
    let (messages, others) = (sent(&ours, ""), sent(&theirs, ""));
    finding(
        messages == 8 && others == 12 && enter(&ours) == 3 && enter(&theirs) == 3,
        format!(
            "{messages} messages ({requests} REQUESTs, {flushes} FLUSHes) against {others}, a third less"
        ),
        scenario("lodha-kshemkalyani-fig3"),
    )
}

pub(super) fn figure_6() -> Finding {
    let lines = happens(FIGURE_6);
    let last = lines.iter().rposition(|line| line.ends_with(" enters"));
    let last = last.expect("a node enters");
    // The delivery that let the last node enter.
    let before = lines[..last]
        .iter()
        .rposition(|line| line.starts_with("> "));
    let arrived = before.map_or("", |at| lines[at].as_str());
    let flushes = lines
        .iter()
        .filter(|line| line.contains("-> Pk FLUSH"))
        .count();
    finding(
        arrived.starts_with("> deliver Pj Pk") && flushes == 0 && lines[last] == "Pk enters",
        format!(
            "Pk enters on one REPLY from Pj, though Pi too goes before it: it gets {flushes} FLUSHes and nothing from Pi"
        ),
        scenario("lodha-kshemkalyani-fig6"),
    )
}

pub(super) fn figure_7() -> Finding {
    let lines = happens(FIGURE_7);
    let flushes: Vec<_> = (0..lines.len())
        .filter(|&at| lines[at].contains("-> Pk FLUSH"))
        .collect();
    let enters = lines.iter().position(|line| line == "Pk enters");
    let after = enters > flushes.last().copied();
    finding(
        flushes.len() == 2 && after,
        format!(
            "Pk gets {} FLUSHes for one request, from Pj and from Pi, and enters after the second",
            flushes.len()
        ),
        scenario("lodha-kshemkalyani-fig7"),
    )
}

/// The figure leaves out that the number seen is updated in all cases; §2.1 has it.
pub(super) fn figure_1() -> Finding {
    let search = || Search::<RicartAgrawala>::of(&[2, 2, 2]);
    let printed = Search::<RicartAgrawala>::of(&[1, 1]).variants(&[AS_DESCRIBED]);
    let (published, repaired) = (printed.run(), search().run());
    Finding::new(
        Verdict::of(published.is_safe(), repaired.is_safe()),
        format!(
            "as the figure has it, two nodes with one request each: {}; with §2.1's update of the number seen in all cases, three nodes with two \
             requests each: {}",
            published.text(),
            repaired.text()
        ),
        scenario("ricart-agrawala-fig1-as-published"),
    )
}

pub(super) fn mutual_exclusion() -> Finding {
    let both = Both::search(|| Searching::of(&[2, 2, 2]), AS_PUBLISHED);
    Finding {
        verdict: both.verdict(|searched| searched.is_safe()),
        found: format!(
            "every interleaving of three nodes with two requests each; {}; repaired, {}",
            both.text(),
            proved("lodha_kshemkalyani_mutual_exclusion")
        ),
        evidence: scenario("lodha-kshemkalyani-as-published-slow-flush"),
        decided_by: None,
    }
}

pub(super) fn order() -> Finding {
    let published = Watched::runs(VariantSet::default().with(AS_PUBLISHED));
    let repaired = Watched::runs(VariantSet::default());
    let disorder = |runs: &[Watched]| runs.iter().filter(|run| !run.in_order()).count();
    let entries: usize = repaired.iter().map(|run| run.entered.len()).sum();
    let counts = [disorder(&published), disorder(&repaired)];
    let twice = Searching::of(&[2, 0]).variants(&[AS_PUBLISHED]).run();
    let searched = Searching::of(&[2, 2, 2]).run();
    let is_so = [
        counts[0] == 0 && twice.is_well(),
        counts[1] == 0 && searched.is_well(),
    ];
    Finding {
        verdict: Verdict::of(is_so[0], is_so[1]),
        found: format!(
            "the order of entries is checked in every search: as printed, two requests of one of two nodes: {}; repaired, three nodes with two \
             requests each: {}. {} random runs of 2 to 9 nodes; as printed, {} of them have an identity twice or entries out of order, since a \
             node's own numbers do not count as seen; repaired, {} (of {entries} entries)",
            twice.text(),
            searched.text(),
            published.len(),
            counts[0],
            counts[1]
        ),
        evidence: scenario("lodha-kshemkalyani-as-published-number-twice"),
        decided_by: None,
    }
}

pub(super) fn liveness() -> Finding {
    let both = Both::search(|| Searching::of(&[1, 1, 1]), AS_PUBLISHED);
    let runs = Watched::runs(VariantSet::default());
    let served = runs.iter().filter(|run| run.well).count();
    let repaired = both.repaired.is_well() && served == runs.len();
    Finding {
        verdict: Verdict::of(both.published.is_well(), repaired),
        found: format!(
            "every interleaving of three nodes with one request each; {}, and every request is served in {served} of {} random \
             runs of 2 to 9 nodes with four requests each",
            both.text(),
            runs.len(),
        ),
        evidence: scenario("lodha-kshemkalyani-as-published-late-request"),
        decided_by: None,
    }
}

/// Searches three nodes with one request each, and three nodes with two requests from each of two.
fn search_variant(variant: Variant) -> (Searched, String) {
    let twice = Searching::of(&[2, 2, 0]).variants(&[variant]).run();
    let search = Searching::of(&[1, 1, 1]).variants(&[variant]);
    let searched = if twice.is_well() { search.run() } else { twice };
    (searched, search.command())
}

/// What a variant changes under heavy load.
struct Change {
    /// Messages per entry without the variant, and how many more there are with it.
    messages: [Estimate; 2],
    /// Bytes per message without the variant, and how many more there are with it.
    length: [Estimate; 2],
}

impl Change {
    /// Compares runs with the same demand.
    fn by(variant: &str) -> Self {
        let with = Run::of(&format!("lodha-kshemkalyani+{variant}"), 16).replicated();
        let without = Run::of("lodha-kshemkalyani", 16).replicated();
        let length = |measures: &Measures| measures.bytes_per_entry / measures.messages_per_entry;
        let messages = without.report.measures.messages_per_entry;
        Change {
            messages: [messages, more_messages(&with, &without)],
            length: [without.estimate(length), with.difference(&without, length)],
        }
    }

    fn text(&self) -> String {
        let [messages, more_messages] = self.messages;
        let [length, longer] = self.length;
        format!(
            "16 nodes under heavy load, in pairs of runs with the same demand: it changes the {messages} messages per entry by {more_messages}, and \
             their mean length of {length} bytes by {longer}"
        )
    }
}

pub(super) fn clock_everywhere() -> Finding {
    let (searched, command) = search_variant(CLOCK_EVERYWHERE);
    finding(
        searched.is_well(),
        format!(
            "every interleaving of three nodes with one request each, or two with two: {}; {}",
            searched.text(),
            Change::by("clock-everywhere").text()
        ),
        command,
    )
}

pub(super) fn one_reply() -> Finding {
    let (searched, _) = search_variant(ONE_REPLY);
    let change = Change::by("one-reply");
    let [fewer, longer] = [change.messages[1], change.length[1]];
    finding(
        searched.is_well() && fewer.high() < 0.0 && longer.low() > 0.0,
        format!(
            "every interleaving of three nodes with one request each, or two with two: {}; {}",
            searched.text(),
            change.text()
        ),
        Run::of("lodha-kshemkalyani+one-reply", 16).steady_command(),
    )
}
