//! §8.2, §8.4, §8.6 and §8.7: what a recovered node concludes from advice, and in which order it
//! serves its neighbours.

use std::sync::Arc;

use soloist_algorithms::raymond::{COUNTERS, DUPLICATES, GREEDY, Raymond, RaymondMessage};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Channels, Kind, NodeId, Shape, Snapshot, Variant, VariantSet};
use soloist_lab::search::{Bounds, Crashes, ENDLESS, Limits, always, search};

use super::claim;
use crate::tools::{Search, Searched, examined_again, finding};
use crate::{Claim, Finding, Verdict};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§8.2",
            "HOLDER is not X for at most one neighbour of X",
            at_most_one_dissents,
        ),
        claim(
            "§8.4",
            "if X fails again and again, the loss of order in its queue could starve a neighbour",
            loss_of_order,
        ),
        claim(
            "§8.4",
            "a queue rebuilt in the order of PRIVILEGEs received prevents starvation",
            order_of_privileges,
        ),
        claim(
            "§8.6",
            "with duplicates, a queue has each neighbour at most twice",
            at_most_twice,
        ),
        claim(
            "§8.7",
            "a long enough delay also identifies outdated advice (the first way)",
            long_delay,
        ),
    ]
}

/// Bounds of a tree on which nodes crash, over FIFO channels.
fn crashing(form: &str, requests: &[u8], variants: &[Variant], crashes: Crashes) -> Bounds<Tree> {
    let none = VariantSet::default();
    Bounds {
        shape: Arc::new(Tree::parse(form, requests.len()).expect("a tree")),
        variants: variants.iter().fold(none, |set, v| set.with(*v)),
        limits: Limits {
            crashes,
            states_max: 1_000_000,
            ..Limits::new(Channels::Fifo)
        },
        ..Bounds::of::<Raymond>(requests)
    }
}

fn few(most: u8) -> Crashes {
    Crashes {
        most,
        ..Crashes::default()
    }
}

fn at_most_one_dissents() -> Finding {
    let trees: [(&str, &[u8], u8); 3] = [
        ("line", &[1; 3], 2),
        ("line", &[1; 4], 1),
        ("star:3", &[1; 4], 1),
    ];
    let holds = trees.iter().all(|&(form, requests, crashes)| {
        let tree = Tree::parse(form, requests.len()).expect("a tree");
        let agree = |cluster: &dyn Snapshot<Raymond>| {
            NodeId::all(cluster.len()).all(|x| {
                let holders = tree.neighbours(x).iter().map(|y| cluster.node(*y).holder());
                holders.flatten().filter(|holder| *holder != x).count() <= 1
            })
        };
        always(&crashing(form, requests, &[], few(crashes)), agree)
    });
    finding(
        holds,
        "in every state of lines of 3 and 4 nodes and of a star of 4, one request each, two crashes on the line of 3 and one on \
         the others, of the neighbours that know their HOLDER"
            .to_owned(),
        examined_again(Kind::Raymond, "§8.2"),
    )
}

/// A line whose middle node, or all of the given nodes, crash again and again.
fn endless(variants: &[Variant], crashing: &[u32]) -> Search<Raymond> {
    Search::<Raymond>::of(&[ENDLESS; 3])
        .shape("line")
        .variants(variants)
        .channels(Channels::Fifo)
        .crashes(ENDLESS)
        .crash_only(crashing)
}

fn loss_of_order() -> Finding {
    let search = endless(&[], &[1]);
    let searched = search.run();
    finding(
        searched == Searched::Starved,
        format!(
            "a line Y - X - Z, endless requests, and X crashes again each time it has recovered: {}. This is the default rotation, which \
             stands in for the counters: the queue starts at another neighbour for each incarnation, and a choice of the moments of the \
             crashes is also a choice of the incarnations",
            searched.text()
        ),
        search.command(),
    )
}

fn order_of_privileges() -> Finding {
    let line = endless(&[COUNTERS], &[1]);
    let star = crashing(
        "star:3",
        &[0, ENDLESS, ENDLESS, ENDLESS],
        &[COUNTERS],
        Crashes {
            nodes: Some(1),
            gap_max: 1,
            ..few(ENDLESS)
        },
    );
    let [line_says, self_first, neighbour] = [
        line.run(),
        endless(&[COUNTERS, GREEDY], &[1]).run(),
        endless(&[COUNTERS], &[0, 1]).run(),
    ];
    let star_says = Searched::from(search::<Raymond>(&star));
    let found = format!(
        "X crashes again each time it has recovered; counters are reduced to their differences. A line Y - X - Z: {}; a star of \
         three around X: {}. The paper does not say where X itself goes. Behind the neighbours that advised, as in these two, \
         each overtaking raises the count of the neighbour that overtakes and not that of the one that waits. Before \
         them (variant greedy), where X crashes inside and requests again while it recovers: {}. And if a neighbour that counts crashes as \
         well, its count starts over: {}",
        line_says.text(),
        star_says.text(),
        self_first.text(),
        neighbour.text()
    );
    let is_so = line_says.is_well() && star_says.is_well();
    let depends = self_first == Searched::Starved && neighbour == Searched::Starved;
    assert!(is_so && depends, "{found}");
    Finding::open(
        Verdict::DependsOnReading,
        found,
        "where X itself goes in the order, and whether counts survive a crash of the node that has them",
        line.command(),
    )
}

fn at_most_twice() -> Finding {
    let twice = |cluster: &dyn Snapshot<Raymond>| {
        NodeId::all(cluster.len()).all(|node| {
            let queue = cluster.node(node).request_q();
            let often = |one| queue.iter().filter(|other| *other == one).count();
            queue.iter().all(|one| often(one) <= 2)
        })
    };
    let most = |crashes| {
        let bounds = |nodes: usize| crashing("line", &vec![1; nodes], &[DUPLICATES], few(crashes));
        [2, 3].iter().all(|&nodes| always(&bounds(nodes), twice))
    };
    let text = |is_so| match is_so {
        true => "never more than twice",
        false => "more than twice",
    };
    let [one, two] = [1, 2].map(most);
    finding(
        one && two,
        format!(
            "with duplicates kept, lines of 2 and 3 nodes, one request each, every state: after one crash {}; after two {}",
            text(one),
            text(two)
        ),
        examined_again(Kind::Raymond, "§8.6"),
    )
}

/// Whether no advice for an earlier incarnation is in flight once RESTART was sent. Each neighbour
/// has a RESTART or an ADVISE of the current incarnation in flight when it was.
fn none_outdated(cluster: &dyn Snapshot<Raymond>) -> bool {
    let (mut current, mut outdated) = (Vec::new(), Vec::new());
    cluster.for_each_envelope(&mut |from, to, message| {
        let (node, incarnation) = match *message {
            RaymondMessage::Restart(incarnation) => (from, incarnation),
            RaymondMessage::Advise(incarnation, _) => (to, incarnation),
            _ => return,
        };
        match cluster.node(node).incarnation() == Some(incarnation) {
            true => current.push(node),
            false => outdated.push(node),
        }
    });
    !outdated.iter().any(|node| current.contains(node))
}

fn long_delay() -> Finding {
    let trees: [(&str, &[u8], u8); 3] = [
        ("line", &[1; 2], 3),
        ("line", &[1; 3], 2),
        ("star:3", &[0, 1, 1, 1], 2),
    ];
    let never = |long_wait| {
        trees.iter().all(|&(form, requests, most)| {
            let crashes = Crashes {
                long_wait,
                ..few(most)
            };
            always(&crashing(form, requests, &[], crashes), none_outdated)
        })
    };
    let [long, short] = [true, false].map(never);
    let text = |never| match never {
        true => "never",
        false => "sometimes",
    };
    finding(
        long && !short,
        format!(
            "if the wait before RESTART lasts until no message to the node is in flight either, outdated advice is {} in flight after \
             RESTART, so that no identifier is needed; with a wait only for what the node has sent: {}. Every state of lines of 2 and 3 \
             nodes and of a star of 4, up to three crashes",
            text(long),
            text(short)
        ),
        examined_again(Kind::Raymond, "§8.7"),
    )
}
