//! Mutual exclusion, progress and other invariants.

use std::collections::BTreeSet;
use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::{AS_PUBLISHED, ChaudhuriKaraata};
use soloist_algorithms::shape::Mesh;
use soloist_algorithms::{
    Algorithm, Channels, Kind, NodeId, Phase, Shape, Value, Variant, VariantSet,
};
use soloist_lab::search::{Bounds, ENDLESS, always, for_each_step};

use super::as_published;
use crate::tools::{Both, Search, Searched, examined_again, is_replayed, proved, scenario};
use crate::watch::tokens;
use crate::{Finding, Verdict};

fn search(form: &str, requests: &[u8]) -> Search<ChaudhuriKaraata> {
    Search::of(requests).shape(form)
}

/// Bounds for a search of our own, by the printed or the repaired rules.
fn bounds(form: &str, requests: &[u8], variants: VariantSet) -> Bounds<Mesh> {
    let shape = Mesh::parse(form, requests.len()).expect("a mesh with room for all");
    Bounds {
        shape: Arc::new(shape),
        variants,
        ..Bounds::of::<ChaudhuriKaraata>(requests)
    }
}

/// Meshes small enough to be searched by both rules, with the number of requests per node.
const SMALL: [(&str, &[u8]); 6] = [
    ("1x1x2", &[2, 2]),
    ("1x1x3", &[1, 1, 1]),
    ("2x1x2", &[1, 1, 1]),
    ("1x2x2", &[1, 1, 1, 1]),
    ("2x2x1", &[2, 2, 2, 2]),
    ("1x1x4", &[1, 1, 1, 1]),
];

/// Searches all small meshes by the printed and by the repaired rules. If a mesh is not `fine`, the
/// first such mesh is the result. Also returns the command for the result of the printed rules.
fn in_small_meshes(fine: impl Fn(&Searched) -> bool) -> (Both, String) {
    let worst = |variants: &[Variant]| {
        let mut last = (Searched::Well, String::new());
        for (form, requests) in SMALL {
            let search = search(form, requests).variants(variants);
            let searched = search.run();
            let ill = !fine(&searched);
            if last.0.is_well() || ill {
                last = (searched, search.command());
            }
            if ill {
                break;
            }
        }
        last
    };
    let (published, command) = worst(&[AS_PUBLISHED]);
    let (repaired, _) = worst(&[]);
    let both = Both {
        published,
        repaired,
    };
    (both, command)
}

fn small_meshes_text(both: &Both) -> String {
    let forms = SMALL.map(|(form, _)| form).join(", ");
    format!("{}; every interleaving of the meshes {forms}", both.text())
}

pub(super) fn any_mesh() -> Finding {
    let (both, command) = in_small_meshes(Searched::is_well);
    Finding {
        verdict: both.verdict(Searched::is_well),
        found: small_meshes_text(&both),
        evidence: command,
        decided_by: None,
    }
}

pub(super) fn one_privileged_plane() -> Finding {
    let so = |variants| {
        SMALL.iter().all(|(form, requests)| {
            always::<ChaudhuriKaraata>(&bounds(form, requests, variants), |cluster| {
                tokens(cluster) == 1
            })
        })
    };
    let (published, repaired) = (so(as_published()), so(VariantSet::default()));
    let forms = SMALL.map(|(form, _)| form).join(", ");
    let found = format!(
        "exactly one green or yellow token at a head, or one PERMIT between heads, in every state of the meshes {forms}: \
         as printed {published}, repaired {repaired}"
    );
    Finding {
        verdict: Verdict::of(published, repaired),
        found,
        evidence: search("1x1x4", &[1; 4]).command(),
        decided_by: None,
    }
}

/// Whether the printed rules need FIFO channels on the meshes on which they are correct with them.
pub(super) fn order_needed() -> Finding {
    let run = |(form, requests): (&str, &[u8]), channels, variants: &[_]| {
        let search = search(form, requests).variants(variants);
        search.channels(channels).run().is_well()
    };
    let printed = |mesh, channels| run(mesh, channels, &[AS_PUBLISHED]);
    let in_order = SMALL
        .into_iter()
        .filter(|mesh| printed(*mesh, Channels::Fifo));
    let (well, ill): (Vec<_>, Vec<_>) = in_order.partition(|mesh| printed(*mesh, Channels::Any));
    let repaired = SMALL
        .into_iter()
        .filter(|mesh| run(*mesh, Channels::Any, &[]));
    let repaired = repaired.count();
    let forms = |meshes: &[(&str, _)]| {
        meshes
            .iter()
            .map(|(f, _)| *f)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = format!(
        "of the small meshes where the printed rules hold in order, they hold in any \
         order on {}, and break on {}; the repaired rules hold in any order on {repaired} of {} meshes",
        forms(&well),
        if ill.is_empty() {
            "none".to_owned()
        } else {
            forms(&ill)
        },
        SMALL.len()
    );
    let needed = match repaired == SMALL.len() {
        true => "not needed by the repaired rules as far as searched",
        false => "needed by the repaired rules too",
    };
    Finding::open(
        Verdict::Assumption,
        format!("{needed}: {found}"),
        "of the repaired rules, searches of larger meshes or a proof",
        search("1x1x4", &[1; 4]).channels(Channels::Any).command(),
    )
}

/// The colour of a head's token.
fn colour(head: &ChaudhuriKaraata) -> Option<&'static str> {
    let mut fields = Vec::new();
    head.fields(&mut fields);
    let token = fields.iter().find(|(field, _)| field.name == "token");
    match token {
        Some((_, Value::Text(colour))) => Some(colour),
        _ => None,
    }
}

/// Changes of the colour of a head's token in one step, over all steps of the small meshes. `None`
/// if a node refuses a message: a head takes a PERMIT for itself only with a red token, and a
/// RELEASE only with a yellow one.
fn changes(variants: VariantSet) -> Option<BTreeSet<(&'static str, &'static str)>> {
    let mut changes = BTreeSet::new();
    for (form, requests) in SMALL {
        let is_well = for_each_step::<ChaudhuriKaraata>(
            &bounds(form, requests, variants),
            |before, after| {
                let pairs = NodeId::all(before.len())
                    .map(|node| (colour(before.node(node)), colour(after.node(node))));
                let pairs = pairs.filter_map(|(before, after)| before.zip(after));
                changes.extend(pairs.filter(|(before, after)| before != after));
            },
        );
        if !is_well {
            return None;
        }
    }
    Some(changes)
}

/// The arrows of Fig. 3, and what a step does that takes two of them: P3 and P4 set the token to
/// green before they call grant_permission.
const ARROWS: [(&str, &str); 4] = [
    ("GREEN", "RED"),
    ("GREEN", "YELLOW"),
    ("RED", "GREEN"),
    ("YELLOW", "GREEN"),
];
const TWO_ARROWS: [(&str, &str); 2] = [("RED", "YELLOW"), ("YELLOW", "RED")];

pub(super) fn colours() -> Finding {
    let text = include_str!("../../scenarios/chaudhuri-karaata-colours.txt");
    let replayed = is_replayed(text);
    let searched = [as_published(), VariantSet::default()].map(changes);
    // Each arrow is taken, alone or as the first or second half of two, and nothing else is.
    let is_so = |changes: &Option<BTreeSet<(&'static str, &'static str)>>| {
        changes.as_ref().is_some_and(|changes| {
            let taken: BTreeSet<_> = changes
                .iter()
                .flat_map(|change| match TWO_ARROWS.contains(change) {
                    true => vec![(change.0, "GREEN"), ("GREEN", change.1)],
                    false => vec![*change],
                })
                .collect();
            taken == BTreeSet::from(ARROWS)
        })
    };
    let shown = |changes: &Option<BTreeSet<(&str, &str)>>| match changes {
        None => "a message is refused".to_owned(),
        Some(changes) => {
            let texts = changes.iter().map(|(from, to)| format!("{from} to {to}"));
            texts.collect::<Vec<_>>().join(", ").to_lowercase()
        }
    };
    let forms = SMALL.map(|(form, _)| form).join(", ");
    let same = match searched[0] == searched[1] {
        true => "by both rules".to_owned(),
        false => format!("repaired; as printed {}", shown(&searched[0])),
    };
    let found = format!(
        "in every step of the meshes {forms}, a head gets a PERMIT for itself only while its token is red and a RELEASE only while it is yellow; \
         the changes in one step are {} ({same}). A step from red to yellow or from yellow to red takes two arrows: P3 and P4 set the token to \
         green before they call grant_permission. A run of 27 nodes that shows the colours is replayed: {replayed}",
        shown(&searched[1])
    );
    Finding::new(
        Verdict::of(
            is_so(&searched[0]) && replayed,
            is_so(&searched[1]) && replayed,
        ),
        found,
        examined_again(Kind::ChaudhuriKaraata, "§2.1"),
    )
}

pub(super) fn inside_the_privileged_plane() -> Finding {
    let so = |variants| {
        SMALL.iter().all(|(form, requests)| {
            let bounds = bounds(form, requests, variants);
            let mesh = Arc::clone(&bounds.shape);
            always::<ChaudhuriKaraata>(&bounds, |cluster| {
                let nodes = NodeId::all(cluster.len());
                let mut inside = nodes.filter(|&n| cluster.node(n).phase() == Phase::Inside);
                inside.all(|node| {
                    let head = mesh.head(mesh.plane(node));
                    head.is_some_and(|head| cluster.node(head).has_token())
                })
            })
        })
    };
    let (published, repaired) = (so(as_published()), so(VariantSet::default()));
    Finding {
        verdict: Verdict::of(published, repaired),
        found: format!(
            "in every state of six small meshes the head of a node inside has the green or yellow token: as printed \
             {published}, repaired {repaired}"
        ),
        evidence: search("1x2x2", &[1; 4]).command(),
        decided_by: None,
    }
}

pub(super) fn mutual_exclusion() -> Finding {
    let (both, _) = in_small_meshes(Searched::is_safe);
    let found = format!(
        "never two inside in any interleaving of six small meshes, up to four nodes; as printed: {}, repaired: {}; both {}",
        both.published.is_safe(),
        both.repaired.is_safe(),
        proved("chaudhuri_karaata_mutual_exclusion")
    );
    Finding {
        verdict: both.verdict(Searched::is_safe),
        found,
        evidence: search("1x2x2", &[1; 4]).command(),
        decided_by: None,
    }
}

pub(super) fn no_deadlock() -> Finding {
    let (both, _) = in_small_meshes(Searched::is_well);
    let found = format!(
        "{}; two requests one after the other on three planes are enough: a plane's stale REQUEST is obeyed later",
        small_meshes_text(&both)
    );
    Finding {
        verdict: both.verdict(Searched::is_well),
        found,
        evidence: scenario("chaudhuri-karaata-stale-request-as-published"),
        decided_by: None,
    }
}

/// By the printed rules, queues grow without bound, so endless requests cannot be searched. One
/// request per node is enough for a node to wait forever.
pub(super) fn no_starvation() -> Finding {
    let endless = |form, nodes| search(form, &vec![ENDLESS; nodes]);
    let meshes = [("1x1x2", 2), ("1x1x3", 3), ("2x1x2", 3), ("2x2x1", 4)];
    let once = search("2x1x2", &[1; 3]).variants(&[AS_PUBLISHED]);
    let published = once.run();
    let repaired = meshes.map(|(form, nodes)| endless(form, nodes).run());
    let fair = repaired.iter().all(Searched::is_well);
    let found = format!(
        "as printed on 2x1x2, one request each: {}; repaired on 1x1x2, 1x1x3, 2x1x2 and 2x2x1, endless requests and weak \
         fairness: {}",
        published.text(),
        if fair {
            "every request is served"
        } else {
            "not all are served"
        }
    );
    Finding {
        verdict: Verdict::of(published.is_well(), fair),
        found,
        evidence: scenario("chaudhuri-karaata-forgotten-plane-as-published"),
        decided_by: None,
    }
}

/// The bound is part of the state machine's own invariant, which every search checks.
fn long_queues() -> Both {
    Both::search(|| search("1x1x3", &[0, 4, 4]), AS_PUBLISHED)
}

/// What the search for long queues finds, as printed and repaired.
pub(crate) fn queue_outcomes() -> [String; 2] {
    let both = long_queues();
    [both.published.text(), both.repaired.text()]
}

pub(crate) fn queue_length() -> Finding {
    let both = long_queues();
    let found = format!(
        "planes 1 and 2 of 1x1x3 request four times each: {}; copies of requests accumulate at a head that does not request",
        both.text()
    );
    Finding {
        verdict: both.verdict(Searched::is_safe),
        found,
        evidence: scenario("chaudhuri-karaata-queue-bound-as-published"),
        decided_by: None,
    }
}

pub(super) fn correct() -> Finding {
    let both = Both::search(|| search("1x2x2", &[1; 4]), AS_PUBLISHED);
    Finding::new(
        both.verdict(Searched::is_well),
        format!("as the lemmas do: 1x2x2, one request each, {}", both.text()),
        search("1x2x2", &[1; 4]).variants(&[AS_PUBLISHED]).command(),
    )
}
