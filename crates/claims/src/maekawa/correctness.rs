//! Mutual exclusion, progress, the examples, and the order of messages.

use soloist_algorithms::Channels;
use soloist_algorithms::maekawa::{AS_PUBLISHED, FAILED_BY_MEMBER, Maekawa, PUT_BACK_FIRST};
use soloist_lab::scenario::replay;

use crate::tools::{Both, Search, Searched, proved, scenario};
use crate::{Finding, Verdict};

/// Systems small enough to be searched by both rules, with the number of requests per node.
const SMALL: [(&str, &[u8]); 6] = [
    ("singer", &[2, 2]),
    ("singer", &[1, 1, 1]),
    ("singer", &[2, 2, 0]),
    ("grid", &[1, 1, 1]),
    ("grid", &[0, 1, 1]),
    ("grid", &[2, 0, 2]),
];

/// Whether the printed rules need FIFO channels on the systems on which they are correct with them.
pub(super) fn order_needed() -> Finding {
    let search = |(form, requests): (&str, &[u8]), channels| {
        let search = Search::<Maekawa>::of(requests).shape(form);
        search.channels(channels)
    };
    let printed = |system, channels| search(system, channels).variants(&[AS_PUBLISHED]);
    let in_order = SMALL
        .into_iter()
        .filter(|s| printed(*s, Channels::Fifo).run().is_well());
    let in_order: Vec<_> = in_order.collect();
    let ill = in_order
        .iter()
        .map(|s| printed(*s, Channels::Any))
        .find(|s| !s.run().is_well());
    let repaired = SMALL
        .into_iter()
        .filter(|s| search(*s, Channels::Any).run().is_well());
    let repaired = repaired.count();
    let found = format!(
        "as printed, {} of {} small systems are well in order, and in any order {}; repaired, with the request's number on every \
         message, {repaired} are well in any order. Ye-In Chang's notes on the algorithm (SPDP 1993, doi:10.1109/SPDP.1993.395511) also change \
         it so that order is not needed; we have their abstract only",
        in_order.len(),
        SMALL.len(),
        match &ill {
            None => "all of these too".to_owned(),
            Some(search) => format!("one of these is not: {}", search.run().text()),
        }
    );
    let shown = ill.as_ref().map(Search::command);
    Finding::open(
        Verdict::Assumption,
        found,
        "of the repaired rules, searches of larger systems or a proof; that the printed ones need it is shown",
        shown.unwrap_or_else(|| printed(SMALL[1], Channels::Any).command()),
    )
}

/// The section is not in the text available to us. The repaired rules are searched.
pub(super) fn no_starvation() -> Finding {
    let triangle = Search::<Maekawa>::of(&[3, 3, 3]);
    let plane = Search::<Maekawa>::of(&[0, 1, 1, 1, 1, 0, 0]);
    let found = format!(
        "not examined: our copy of the paper ends in §6.2. Repaired rules, every fair run, three nodes with three requests each: {}; the \
         plane of 7 nodes with four requesters: {}",
        triangle.run().text(),
        plane.run().text()
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "the text of §6.3; of the repaired rules, a proof for any N and any number of requests",
        triangle.command(),
    )
}

/// The nodes that enter in a scenario, in order, by the repaired or the printed rules. `None` if a
/// step is not possible.
fn entries_in(scenario: &str, published: bool) -> Option<String> {
    let text = if published {
        scenario.replace(
            "algorithm maekawa\n",
            "algorithm maekawa\nvariant as-published\n",
        )
    } else {
        scenario.to_owned()
    };
    let replayed = replay(&text).ok()?;
    let entered = replayed
        .lines()
        .filter_map(|line| line.strip_suffix(" enters"));
    Some(entered.collect::<Vec<_>>().join(", "))
}

/// Compares the order of entries in a scenario with this one, by both rules.
fn told(text: &str, order: &str, file: &str) -> Finding {
    let [published, repaired] = [true, false].map(|published| entries_in(text, published));
    let so = |entered: &Option<String>| entered.as_deref() == Some(order);
    let shown = |entered: &Option<String>| entered.clone().unwrap_or_else(|| "it stops".to_owned());
    Finding {
        verdict: Verdict::of(so(&published), so(&repaired)),
        found: format!(
            "replayed on the sets of Fig. 1c, entries in order: as printed {}; repaired {}",
            shown(&published),
            shown(&repaired)
        ),
        evidence: scenario(file),
        decided_by: None,
    }
}

pub(super) fn circular_locking() -> Finding {
    let text = include_str!("../../scenarios/maekawa-circular-locking.txt");
    told(text, "7, 8, 11", "maekawa-circular-locking")
}

pub(super) fn late_request() -> Finding {
    let text = include_str!("../../scenarios/maekawa-late-request.txt");
    told(text, "3, 7, 8, 11", "maekawa-late-request")
}

/// The plane of Fig. 1b, on which nodes 1 and 5 of the paper request twice.
fn figure_1b() -> Search<Maekawa> {
    Search::of(&[2, 0, 0, 0, 2, 0, 0]).listing(&super::sets::listing(1))
}

pub(super) fn mutual_exclusion() -> Finding {
    let both = Both::search(figure_1b, AS_PUBLISHED);
    let other = figure_1b().variants(&[AS_PUBLISHED, PUT_BACK_FIRST]).run();
    let triangle = Search::<Maekawa>::of(&[2, 2, 2]).run();
    Finding::new(
        Verdict::of(
            both.published.is_safe() && other.is_safe(),
            both.repaired.is_safe() && triangle.is_safe(),
        ),
        format!(
            "Fig. 1b, two requests each of nodes 1 and 5, {}; as printed in the other reading of step (4): {}; Fig. 1a, two requests each, \
             repaired: {}; repaired, {}. An INQUIRE that crosses a RELEASE is answered during the next request",
            both.text(),
            other.text(),
            triangle.text(),
            proved("maekawa_mutual_exclusion")
        ),
        scenario("maekawa-stale-inquire-fig1b-as-published"),
    )
}

pub(super) fn no_deadlock() -> Finding {
    let four = || Search::<Maekawa>::of(&[0, 1, 1, 1, 1, 0, 0]).listing(&super::sets::listing(1));
    let both = Both::search(four, AS_PUBLISHED);
    let grid = || Search::<Maekawa>::of(&[1, 1, 1, 1]).shape("grid");
    let by_member = grid().variants(&[FAILED_BY_MEMBER]).run();
    Finding::new(
        both.verdict(Searched::is_well),
        format!(
            "Fig. 1b, one request each of nodes 2, 3, 4 and 5, {}: a request displaced from the first place is told nothing and defers \
             INQUIREs forever (Sanders 1987). A 2x2 grid, repaired: {}; repaired, but a LOCKED takes back the FAILED of the same member, \
             which step (3) does not exclude: {}",
            both.text(),
            grid().run().text(),
            by_member.text()
        ),
        four().variants(&[AS_PUBLISHED]).command(),
    )
}
