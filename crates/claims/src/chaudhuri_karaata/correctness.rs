//! Mutual exclusion, progress and other invariants.

use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::{AS_PUBLISHED, ChaudhuriKaraata};
use soloist_algorithms::shape::Mesh;
use soloist_algorithms::{Algorithm, Channels, NodeId, Phase, Shape, Variant, VariantSet};
use soloist_lab::scenario::replay;
use soloist_lab::search::{Bounds, ENDLESS, always};

use super::as_published;
use crate::tools::{Both, Search, Searched, finding, proved, scenario};
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

pub(super) fn colours() -> Finding {
    let text = include_str!("../../scenarios/chaudhuri-karaata-colours.txt");
    let replayed = replay(text);
    let so = replayed.is_ok_and(|replayed| replayed == text);
    let colour = |head: &str| {
        let line = head.split("token=").nth(1)?;
        line.split(' ').next().map(str::to_owned)
    };
    let mut of_head: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("(0,0,0): "))
        .filter_map(colour)
        .collect();
    of_head.dedup();
    let found = format!(
        "the colours of node (0,0,0) in the replayed run of 27 nodes: {}",
        of_head.join(", ").to_lowercase()
    );
    let allowed = [
        ("GREEN", "YELLOW"),
        ("YELLOW", "GREEN"),
        ("GREEN", "RED"),
        ("RED", "GREEN"),
    ];
    let steps = of_head.windows(2);
    let so = so
        && steps
            .into_iter()
            .all(|pair| allowed.contains(&(&pair[0], &pair[1])));
    finding(so, found, scenario("chaudhuri-karaata-colours"))
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
            "everybody enters"
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
pub(super) fn queue_length() -> Finding {
    let both = Both::search(|| search("1x1x3", &[0, 4, 4]), AS_PUBLISHED);
    let found = format!(
        "planes 1 and 2 of 1x1x3 ask four times each: {}; copies of requests pile up at a head that asks for nothing",
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
