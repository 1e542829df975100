//! §7 and §8: initialization, and recovery of nodes that lost their state.

use soloist_algorithms::raymond::{AS_PUBLISHED, DUPLICATES, INITIALIZE, Raymond, SECOND_WAIT};
use soloist_algorithms::{Channels, Variant};

use super::claim;
use super::rules::on_all_trees;
use crate::tools::{Run, Search, Searched, finding, scenario};
use crate::{Claim, Finding, Verdict};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§7",
            "INITIALIZE messages, N-1 in all, set up the tree; a node that has received one may request before the others have",
            initialize,
        ),
        claim(
            "§8.1 to §8.3",
            "a node that lost its state rebuilds it from what its neighbours advise",
            recovers,
        ),
        claim(
            "§8, §8.6",
            "neighbours continue as usual meanwhile: REQUEST, PRIVILEGE and ADVISE may overtake each other",
            recovers_in_any_order,
        ),
        claim(
            "§8.6",
            "a request that is queued twice after a recovery does no harm: the algorithm corrects itself",
            duplicates,
        ),
        claim(
            "§8.7",
            "a node may fail again during its recovery; outdated advice is recognised by an identifier",
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
            "every interleaving of INITIALIZE with two requests per node, all trees of 2 to 4 nodes: {}; {nodes} nodes \
             send {sent}",
            searched.text()
        ),
        command,
    )
}

/// Lines on which nodes crash, with the initial position of the privilege: all trees of two and
/// three nodes.
const LINES: [(usize, usize); 3] = [(2, 0), (3, 0), (3, 1)];

/// Searches all lines. Returns the result of the first that is not well, or else of the last.
fn crashes(variants: &[Variant], channels: Channels, most: u8) -> (Searched, String) {
    let mut last = (Searched::Well, String::new());
    for (nodes, home) in LINES {
        let search = Search::<Raymond>::of(&vec![1; nodes])
            .shape("line")
            .home(home)
            .variants(variants)
            .channels(channels)
            .crashes(most);
        last = (search.run(), search.command());
        if !last.0.is_well() {
            break;
        }
    }
    last
}

fn of(
    printed: &str,
    published: (Searched, String),
    repaired: (Searched, String),
    evidence: &str,
) -> Finding {
    Finding {
        verdict: Verdict::of(published.0.is_well(), repaired.0.is_well()),
        found: format!(
            "every interleaving on lines of 2 and 3 nodes, one request per node; {printed}: {} (`{}`); repaired: {}",
            published.0.text(),
            published.1,
            repaired.0.text()
        ),
        evidence: scenario(evidence),
        decided_by: None,
    }
}

/// The conclusions of (3) and (4) in §8.1 are interchanged; §8.3 has them right.
fn recovers() -> Finding {
    of(
        "one crash, by §8.1 (3) and (4), whose conclusions are interchanged",
        crashes(&[AS_PUBLISHED], Channels::Fifo, 1),
        crashes(&[], Channels::Fifo, 1),
        "raymond-recovery-as-published",
    )
}

/// The repair is a second wait, until the messages sent before the ADVISEs have arrived, too.
fn recovers_in_any_order() -> Finding {
    of(
        "one crash, as printed, with §8.3 for §8.1",
        crashes(&[], Channels::Any, 1),
        crashes(&[SECOND_WAIT], Channels::Any, 1),
        "raymond-recovery-two-tokens",
    )
}

/// The repair queues such a request only once.
fn duplicates() -> Finding {
    of(
        "two crashes, as printed, with §8.3 for §8.1",
        crashes(&[DUPLICATES], Channels::Fifo, 2),
        crashes(&[], Channels::Fifo, 2),
        "raymond-recovery-endless",
    )
}

/// Reads the advice as §8.3 does.
fn fails_again() -> Finding {
    let (searched, command) = crashes(&[], Channels::Fifo, 2);
    finding(
        searched.is_well(),
        format!(
            "every interleaving on lines of 2 and 3 nodes, two crashes, one after the other or during a recovery, with \
             §8.3 for §8.1: {}",
            searched.text()
        ),
        command,
    )
}

fn several_down() -> Finding {
    let (searched, command) = crashes(&[], Channels::Fifo, 2);
    let together = Search::<Raymond>::of(&[1, 1])
        .shape("line")
        .channels(Channels::Fifo)
        .crashes(2)
        .neighbours();
    finding(
        searched.is_well(),
        format!(
            "every interleaving on lines of 2 and 3 nodes, two crashes, never of neighbours together: {}. Where neighbours \
             are down together, outside the promise: {} (`{}`)",
            searched.text(),
            together.run().text(),
            together.command()
        ),
        command,
    )
}
