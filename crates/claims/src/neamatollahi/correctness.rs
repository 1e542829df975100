//! Mutual exclusion, progress, the token's path, and the queues.

use std::sync::Arc;

use soloist_algorithms::neamatollahi::{AS_PUBLISHED, Neamatollahi};
use soloist_algorithms::shape::Torus;
use soloist_algorithms::{
    Algorithm, Channels, Effect, NodeId, Outbox, Shape, Start, Value, VariantSet,
};
use soloist_lab::scenario::{ScenarioError, replay};
use soloist_lab::search::{Bounds, ENDLESS, always};
use soloist_lab::world::{Event, World};

use super::square;
use crate::tools::{Both, Search, Searched, proved, scenario};
use crate::watch::tokens;
use crate::{Finding, Verdict};

fn bounds(form: &str, requests: &[u8], variants: VariantSet) -> Bounds<Torus> {
    Bounds {
        shape: Arc::new(Torus::parse(form, requests.len()).expect("a valid torus")),
        variants,
        ..Bounds::of::<Neamatollahi>(requests)
    }
}

pub(super) fn in_any_order() -> Finding {
    let search = || {
        Search::<Neamatollahi>::of(&[1; 4])
            .shape("2x2")
            .channels(Channels::Any)
    };
    let both = Both::search(search, AS_PUBLISHED);
    let in_order = search()
        .channels(Channels::Fifo)
        .variants(&[AS_PUBLISHED])
        .run();
    Finding {
        verdict: both.verdict(Searched::is_well),
        found: format!(
            "2x2, one request each, in any order, {}; the printed rules in order: {}, so order is not what they lack",
            both.text(),
            in_order.text()
        ),
        evidence: search().command(),
        decided_by: None,
    }
}

/// The nodes that the token visits, in order, while there are no requests.
fn idle_path(side: usize, variants: VariantSet, moves: usize) -> Vec<NodeId> {
    let mut world =
        World::<Neamatollahi>::new(&square(side), Start::idle(NodeId::new(0)), variants);
    let mut out = Outbox::new();
    let mut path = vec![NodeId::new(0)];
    world.start(path[0], &mut out).expect("nothing to refuse");
    while path.len() <= moves {
        let effects: Vec<_> = out.drain().collect();
        let [Effect::Send { to, message }] = &effects[..] else {
            unreachable!("an idle token makes one move at a time")
        };
        let event = Event::Deliver {
            from: path[path.len() - 1],
            to: *to,
            message: *message,
        };
        path.push(*to);
        world.apply(event, &mut out).expect("nothing to refuse");
    }
    path
}

pub(super) fn idle_round() -> Finding {
    let side = 3;
    let round = side * (side + 1);
    let torus = square(side);
    // Down a column from row 0 and back to it, then to row 0 of the next column, and so on.
    let told: Vec<NodeId> = (0..=round)
        .map(|step| (step / (side + 1) % side, step % (side + 1) % side))
        .map(|(column, row)| torus.at(row, column))
        .collect();
    let published = idle_path(side, as_published(), round);
    let repaired = idle_path(side, VariantSet::default(), round);
    let text = |path: &[NodeId]| {
        let nodes: Vec<_> = path.iter().map(|node| node.index().to_string()).collect();
        nodes.join(" ")
    };
    Finding {
        verdict: Verdict::of(published == told, repaired == told),
        found: format!(
            "3x3, told: {}; repaired: {}; as printed: {}",
            text(&told),
            if repaired == told {
                "the same".to_owned()
            } else {
                text(&repaired)
            },
            if published == told {
                "the same".to_owned()
            } else {
                text(&published)
            }
        ),
        evidence: scenario("neamatollahi-3.4"),
        decided_by: None,
    }
}

/// Length of a node's Waiting.
fn waiting_len(node: &Neamatollahi) -> usize {
    let mut fields = Vec::new();
    node.fields(&mut fields);
    let waiting = fields.iter().find(|(field, _)| field.name == "Waiting");
    match waiting {
        Some((_, Value::Nodes(nodes))) => nodes.len(),
        _ => panic!("a node has a queue named Waiting"),
    }
}

pub(super) fn queue_of_two() -> Finding {
    let within = |variants, most| {
        always::<Neamatollahi>(&bounds("2x2", &[1; 4], variants), |cluster| {
            NodeId::all(cluster.len()).all(|node| waiting_len(cluster.node(node)) <= most)
        })
    };
    let (published, repaired) = (within(as_published(), 2), within(VariantSet::default(), 2));
    let reached = !within(VariantSet::default(), 1);
    Finding {
        verdict: Verdict::of(published, repaired),
        found: format!(
            "2x2, one request each, in every state: as printed {published}, repaired {repaired}; two are reached: {reached}. The \
             repair also keeps one late request beside the queue while a node is inside"
        ),
        evidence: Search::<Neamatollahi>::of(&[1; 4]).shape("2x2").command(),
        decided_by: None,
    }
}

pub(super) fn figure_1() -> Finding {
    let text = include_str!("../../scenarios/neamatollahi-figure-1.txt");
    as_told(text, "neamatollahi-figure-1")
}

pub(super) fn walk_through() -> Finding {
    let text = include_str!("../../scenarios/neamatollahi-3.4.txt");
    as_told(text, "neamatollahi-3.4")
}

/// Replays a scenario of the repaired rules by both rules.
pub(crate) fn as_told(text: &str, name: &str) -> Finding {
    let printed = text.replace(
        "algorithm neamatollahi\n",
        "algorithm neamatollahi\nvariant as-published\n",
    );
    let published = replay(&printed);
    let is_told = published
        .as_ref()
        .is_ok_and(|replayed| *replayed == printed);
    let departs = match published {
        Ok(replayed) => replayed
            .lines()
            .zip(printed.lines())
            .position(|(got, told)| got != told),
        Err(ScenarioError::Line { line, .. }) => Some(line - 1),
        Err(_) => None,
    };
    let departs = departs.and_then(|line| printed.lines().nth(line));
    let repaired = replay(text).is_ok_and(|replayed| replayed == text);
    Finding {
        verdict: Verdict::of(is_told, repaired),
        found: format!(
            "repaired: as told, step by step: {repaired}; as printed it departs from the text at the step '{}'",
            departs.unwrap_or("none").trim_start_matches("> ")
        ),
        evidence: scenario(name),
        decided_by: None,
    }
}

pub(super) fn one_token() -> Finding {
    let so = |variants| {
        always::<Neamatollahi>(&bounds("2x2", &[1; 4], variants), |cluster| {
            tokens(cluster) == 1
        })
    };
    let (published, repaired) = (so(as_published()), so(VariantSet::default()));
    Finding {
        verdict: Verdict::of(published, repaired),
        found: format!(
            "2x2, one request each, in every state: as printed {published}, repaired {repaired}"
        ),
        evidence: Search::<Neamatollahi>::of(&[1; 4]).shape("2x2").command(),
        decided_by: None,
    }
}

pub(super) fn safety() -> Finding {
    let search = || Search::<Neamatollahi>::of(&[1; 4]).shape("2x2");
    let both = Both::search(search, AS_PUBLISHED);
    Finding {
        verdict: both.verdict(Searched::is_safe),
        found: format!(
            "2x2, one request each, never two inside in any interleaving: as printed {}, repaired {}; both {}",
            both.published.is_safe(),
            both.repaired.is_safe(),
            proved("neamatollahi_mutual_exclusion")
        ),
        evidence: search().command(),
        decided_by: None,
    }
}

pub(super) fn no_deadlock() -> Finding {
    let search = || Search::<Neamatollahi>::of(&[1; 4]).shape("2x2");
    let both = Both::search(search, AS_PUBLISHED);
    let wide = || Search::<Neamatollahi>::of(&[0, 0, 0, 1, 1, 1, 0, 0, 0]).shape("3x3");
    let repaired_wide = wide().run();
    let text = |searched: &Searched| match searched {
        Searched::Starved => "the token moves forever and a waiting node never enters".to_owned(),
        other => other.text(),
    };
    Finding {
        verdict: Verdict::of(
            both.published.is_well(),
            both.repaired.is_well() && repaired_wide.is_well(),
        ),
        found: format!(
            "2x2, one request each: as printed: {}; repaired: {}, and on 3x3 with a row of requests: {}",
            text(&both.published),
            text(&both.repaired),
            text(&repaired_wide)
        ),
        evidence: search().variants(&[AS_PUBLISHED]).command(),
        decided_by: None,
    }
}

/// Without order, messages could accumulate without bound, so channels are FIFO here.
pub(super) fn no_starvation() -> Finding {
    let endless = |form, nodes| {
        let search = Search::<Neamatollahi>::of(&vec![ENDLESS; nodes]).shape(form);
        search.channels(Channels::Fifo)
    };
    let published = endless("2x2", 4).variants(&[AS_PUBLISHED]);
    let starved = published.run();
    let toruses = [("1x2", 2), ("2x1", 2), ("1x3", 3), ("2x2", 4)];
    let fair = toruses
        .iter()
        .all(|(form, nodes)| endless(form, *nodes).run().is_well());
    Finding {
        verdict: Verdict::of(starved.is_well(), fair),
        found: format!(
            "endless requests, weak fairness, channels in order: as printed on 2x2: {}; repaired on 1x2, 2x1, 1x3 and \
             2x2: {}",
            starved.text(),
            if fair {
                "every request is served"
            } else {
                "not all are served"
            }
        ),
        evidence: published.command(),
        decided_by: None,
    }
}

fn as_published() -> VariantSet {
    VariantSet::default().with(AS_PUBLISHED)
}
