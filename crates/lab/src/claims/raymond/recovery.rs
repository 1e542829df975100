//! §7 and §8: how it begins, and how nodes that lost their state recover it.

use soloist_algorithms::raymond::{AS_PUBLISHED, DUPLICATES, INITIALIZE, SECOND_WAIT};
use soloist_algorithms::{Channels, Variant, VariantSet};

use super::super::tools::{Run, Search, finding, scenario};
use super::super::{Claim, Finding, Verdict};
use super::claim;
use super::crashes::{Crashes, Ends};
use super::rules::on_all_trees;

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§7",
            "INITIALIZE messages, N-1 in all, set up the tree; who has got one may ask before the others have",
            initialize,
        ),
        claim(
            "§8.1 to §8.3",
            "a node that lost its state rebuilds it from what its neighbours advise",
            recovers,
        ),
        claim(
            "§8, §8.6",
            "neighbours go on as ever meanwhile: REQUEST and PRIVILEGE and ADVISE may overtake each other",
            recovers_in_any_order,
        ),
        claim(
            "§8.6",
            "a request that is queued twice after a recovery does no harm: the algorithm corrects itself",
            duplicates,
        ),
        claim(
            "§8.7",
            "a node may fail again during its recovery; outdated advice is told by an identifier",
            fails_again,
        ),
        claim(
            "§8.8",
            "several nodes may be down together if no two of them are neighbours",
            several_down,
        ),
    ]
}

fn initialize() -> Finding {
    let variants = |search: Search<_>| search.variants(&[INITIALIZE]);
    let (searched, command) = on_all_trees(2, variants, Search::run);
    let nodes = 46;
    let run = Run::of("raymond+initialize", nodes).entries(1000);
    let sent = run.report().measures.messages_by_kind["INITIALIZE"];
    finding(
        searched.is_well() && sent == nodes as u64 - 1,
        format!(
            "every interleaving of INITIALIZE with two requests a node, all trees of 2 to 4 nodes: {}; {nodes} nodes \
             send {sent}",
            searched.text()
        ),
        command,
    )
}

/// How many runs with crashes a claim is examined by.
const RUNS: u64 = 2000;

fn crashes(variants: &[Variant], channels: Channels, crashes: u64, together: bool) -> Ends {
    let none = VariantSet::default();
    let plan = Crashes {
        variants: variants
            .iter()
            .fold(none, |set, &variant| set.with(variant)),
        channels,
        crashes,
        together,
    };
    plan.run(RUNS)
}

fn of(printed: &str, published: &Ends, repaired: &Ends, evidence: &str) -> Finding {
    Finding {
        verdict: Verdict::of(published.all_well(), repaired.all_well()),
        found: format!(
            "random trees of 2 to 7 nodes; {printed}: {}; repaired: {}",
            published.text(),
            repaired.text()
        ),
        evidence: scenario(evidence),
    }
}

/// The conclusions of (3) and (4) in §8.1 are interchanged; §8.3 has them right.
fn recovers() -> Finding {
    let published = crashes(&[AS_PUBLISHED], Channels::Fifo, 1, false);
    let repaired = crashes(&[], Channels::Fifo, 1, false);
    of(
        "by §8.1 (3) and (4), whose conclusions are interchanged",
        &published,
        &repaired,
        "raymond-recovery-as-published",
    )
}

/// The repair is a second wait, until what was sent before the ADVISEs has come too.
fn recovers_in_any_order() -> Finding {
    let published = crashes(&[], Channels::Any, 1, false);
    let repaired = crashes(&[SECOND_WAIT], Channels::Any, 1, false);
    of(
        "as printed, with §8.3 for §8.1",
        &published,
        &repaired,
        "raymond-recovery-two-tokens",
    )
}

/// The repair queues such a request once.
fn duplicates() -> Finding {
    let published = crashes(&[DUPLICATES], Channels::Fifo, 2, false);
    let repaired = crashes(&[], Channels::Fifo, 2, false);
    of(
        "as printed, with §8.3 for §8.1, up to two crashes",
        &published,
        &repaired,
        "raymond-recovery-endless",
    )
}

/// By §8.3's reading of the advice.
fn fails_again() -> Finding {
    let ends = crashes(&[], Channels::Fifo, 3, false);
    finding(
        ends.all_well(),
        format!(
            "random trees of 2 to 7 nodes, up to three crashes one after the other or during a recovery: {}",
            ends.text()
        ),
        scenario("raymond-recovery-twice"),
    )
}

fn several_down() -> Finding {
    let ends = crashes(&[], Channels::Fifo, 4, true);
    finding(
        ends.all_well(),
        format!(
            "random trees of 2 to 7 nodes, up to four crashes, never of neighbours together: {}",
            ends.text()
        ),
        scenario("raymond-recovery-apart"),
    )
}
