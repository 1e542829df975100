//! Figures that are replayed, the pattern of messages, and what the proofs state.

use std::collections::BTreeMap;
use std::sync::Arc;

use soloist_algorithms::raymond::{DUPLICATES, GREEDY, PIGGYBACK, Raymond, RaymondMessage};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Channels, NodeId, Shape, Snapshot, Variant, VariantSet};
use soloist_lab::search::{Bounds, Crashes, ENDLESS, Limits, always};

use super::claim;
use crate::tools::{Run, finding, is_replayed, scenario};
use crate::{Claim, Finding, Verdict};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§2, Figs. 1 to 3",
            "HOLDER variables point to the privilege; on its way from E to A they turn",
            figures_1_to_3,
        ),
        claim(
            "§3.5, Fig. 4",
            "the messages on an edge follow a pattern of four; only a REQUEST may overtake the PRIVILEGE sent before it",
            pattern,
        ),
        claim(
            "§4.3",
            "each action of the privileged node lowers the vector of positions in the queues",
            vector,
        ),
        claim(
            "§5",
            "on a line the mean distance between two nodes is (N+1)/3",
            mean_distance_on_a_line,
        ),
        claim(
            "§5.1, Fig. 7",
            "saturated, the privilege goes 1 2 5 2 6 2 1 4 9 4 10 4 1 3 8 3 7 3, over each edge exactly twice",
            figure_7,
        ),
        claim(
            "§6.1",
            "only nonleaves send a REQUEST with a PRIVILEGE",
            only_nonleaves,
        ),
        claim(
            "§6.2",
            "greedy has little effect under light demand",
            greedy_alone,
        ),
        claim(
            "§6.2",
            "greedy: in Fig. 7, saturated, a leaf waits three times as long as a nonleaf",
            greedy_waits,
        ),
        claim(
            "§6.2",
            "greedy: a neighbour at the head of the queue is overtaken by self at most once",
            overtaken_once,
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
            "a delay that is long enough also tells outdated advice (the first way)",
            long_delay,
        ),
    ]
}

fn figures_1_to_3() -> Finding {
    let text = include_str!("../../scenarios/raymond-figures-1-to-3.txt");
    finding(
        is_replayed(text) && text.contains("A enters"),
        "the walk-through of §2 on the tree of Fig. 1, with all states of the figures, happens as told".to_owned(),
        scenario("raymond-figures-1-to-3"),
    )
}

fn figure_7() -> Finding {
    let text = include_str!("../../scenarios/raymond-figure-7.txt");
    let mut edges: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in text.lines() {
        let sent = line
            .strip_suffix(" PRIVILEGE")
            .and_then(|line| line.split_once(" -> "));
        if let Some((from, to)) = sent {
            *edges.entry((from.min(to), from.max(to))).or_default() += 1;
        }
    }
    let twice = edges.values().filter(|&&times| times == 2).count();
    finding(
        is_replayed(text) && twice == 9 && edges.len() == 9,
        format!(
            "replayed in this order: {twice} of 9 edges are used exactly twice, and all ten nodes enter"
        ),
        scenario("raymond-figure-7"),
    )
}

/// Bounds with endless requests on this tree.
fn endless(form: &str, nodes: usize, variants: &[Variant]) -> Bounds<Tree> {
    let tree = Tree::parse(form, nodes).expect("a tree");
    Bounds {
        shape: Arc::new(tree),
        variants: variants
            .iter()
            .fold(VariantSet::default(), |set, v| set.with(*v)),
        ..Bounds::of::<Raymond>(&vec![ENDLESS; nodes])
    }
}

const TREES: [(&str, usize); 4] = [("line", 3), ("line", 4), ("star:3", 4), ("star:4", 5)];

/// The pattern has one message in flight on an edge, or a PRIVILEGE and the REQUEST after it.
fn pattern() -> Finding {
    let follows = |cluster: &dyn Snapshot<Raymond>| {
        let mut sent: BTreeMap<(NodeId, NodeId), Vec<(NodeId, bool)>> = BTreeMap::new();
        cluster.for_each_envelope(&mut |from, to, message| {
            let is_request = *message == RaymondMessage::Request;
            sent.entry((from.min(to), from.max(to)))
                .or_default()
                .push((from, is_request));
        });
        sent.values().all(|messages| match messages[..] {
            [_] => true,
            [one, other] => one.0 == other.0 && one.1 != other.1,
            _ => false,
        })
    };
    let holds = TREES
        .iter()
        .all(|(form, nodes)| always(&endless(form, *nodes, &[]), follows));
    finding(
        holds,
        "in every state of trees of 3 to 5 nodes, requests without end, messages in any order: on each edge one message is in flight, or \
         a PRIVILEGE and a REQUEST of the same sender"
            .to_owned(),
        "soloist lab check --algorithm raymond --nodes 5 --requests endless --shape star:4".to_owned(),
    )
}

/// The three effects that the paper lists, in its notation.
fn vector() -> Finding {
    finding(
        true,
        "by inspection: each of the three effects replaces the vector by a proper prefix, or lowers its last position before it appends \
         one; both are lower in lexicographic order, and length and positions are at most N, so that the order is well-founded. (For \
         M_k = 1 the paper says that P_(k-1) is at the end of the queue; it is at the head.) That nobody starves is also searched"
            .to_owned(),
        "soloist lab check --algorithm raymond --nodes 4 --requests endless --shape line".to_owned(),
    )
}

fn mean_distance_on_a_line() -> Finding {
    let is_exact = |nodes: i64| {
        let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a - b).abs()));
        // The sum over all ordered pairs of different nodes, of which there are N(N-1).
        3 * pairs.sum::<i64>() == (nodes + 1) * nodes * (nodes - 1)
    };
    let exact = (2..=200).filter(|&nodes| is_exact(nodes)).count();
    finding(
        exact == 199,
        format!(
            "counted over all pairs of different nodes: exact for {exact} of the 199 lines of 2 to 200 nodes"
        ),
        "cargo test -p soloist-claims --test claims".to_owned(),
    )
}

fn only_nonleaves() -> Finding {
    let leaf_does_not = |cluster: &dyn Snapshot<Raymond>| {
        let mut well = true;
        cluster.for_each_envelope(&mut |from, _, message| {
            // Node 0 is the centre of a star, and all others are leaves.
            well &= *message != RaymondMessage::PrivilegeRequest || from == NodeId::new(0);
        });
        well
    };
    let stars = [("star:2", 3), ("star:3", 4), ("star:4", 5)];
    let holds = stars
        .iter()
        .all(|(form, nodes)| always(&endless(form, *nodes, &[PIGGYBACK]), leaf_does_not));
    finding(
        holds,
        "in every state of stars of 3 to 5 nodes, requests without end, no leaf has sent both in one message".to_owned(),
        "soloist lab check --algorithm raymond --variant piggyback --nodes 5 --requests endless --shape star:4"
            .to_owned(),
    )
}

fn greedy_alone() -> Finding {
    let run = |name| Run::of(name, 46).shape("star:3").load("light");
    let [plain, greedy] = ["raymond", "raymond+greedy"].map(|name| run(name).report().measures);
    let [one, other] = [&plain, &greedy].map(|m| (m.messages_per_entry, m.response_time.mean));
    finding(
        one == other,
        format!(
            "46 nodes, one request at a time: {:.2} messages and {:.2} delays to enter with greedy, {:.2} and {:.2} without",
            other.0, other.1, one.0, one.1
        ),
        run("raymond+greedy").command(),
    )
}

fn greedy_waits() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "only entries are measured by node: a nonleaf enters three times as often (see above). If all nodes ask again at once, a node's \
         waits and times inside fill its time, which makes its mean wait, and the time inside, three times as long"
            .to_owned(),
        "waiting times by node in the report of a run",
        Run::of("raymond+greedy", 10).shape("star:3").command(),
    )
}

/// The queue of a greedy node: self is at its head, or not in it.
fn overtaken_once() -> Finding {
    let is_first = |cluster: &dyn Snapshot<Raymond>| {
        NodeId::all(cluster.len()).all(|node| {
            let queue = cluster.node(node).request_q();
            queue.iter().skip(1).all(|entry| *entry != node)
        })
    };
    let holds = TREES
        .iter()
        .all(|(form, nodes)| always(&endless(form, *nodes, &[GREEDY]), is_first));
    finding(
        holds,
        "in every state of trees of 3 to 5 nodes, requests without end, self is at the head of its queue or not in it; and when it leaves, \
         the head gets the privilege before self can ask again, so a neighbour at the head is overtaken once at most"
            .to_owned(),
        "soloist lab check --algorithm raymond --variant greedy --nodes 5 --requests endless --shape star:4".to_owned(),
    )
}

fn order_of_privileges() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not built: a rebuilt queue starts with a neighbour that depends on the incarnation. With at most two crashes every interleaving on \
         lines of 2 and 3 nodes serves everybody, with any order. The paper does not say where self goes in the order"
            .to_owned(),
        "counters of PRIVILEGEs in the nodes, and a search with endless crashes of one node in which counters are reduced to their \
         differences",
        "soloist lab check --algorithm raymond --nodes 3 --shape line --crashes 2".to_owned(),
    )
}

fn at_most_twice() -> Finding {
    let twice = |cluster: &dyn Snapshot<Raymond>| {
        NodeId::all(cluster.len()).all(|node| {
            let queue = cluster.node(node).request_q();
            queue
                .iter()
                .all(|one| queue.iter().filter(|other| *other == one).count() <= 2)
        })
    };
    let most = |crashes| {
        let bounds = |nodes: usize| Bounds {
            limits: Limits {
                crashes: Crashes {
                    most: crashes,
                    ..Crashes::default()
                },
                states_max: 1_000_000,
                ..Limits::new(Channels::Fifo)
            },
            requests: vec![1; nodes],
            ..endless("line", nodes, &[DUPLICATES])
        };
        [2, 3].iter().all(|&nodes| always(&bounds(nodes), twice))
    };
    let [one, two] = [1, 2].map(most);
    let found = format!(
        "with duplicates kept, lines of 2 and 3 nodes, one request each, every state: after one crash {}; after two {}",
        if one {
            "never more than twice"
        } else {
            "more than twice"
        },
        if two {
            "never more than twice"
        } else {
            "more than twice"
        }
    );
    finding(
        one && two,
        found,
        "soloist lab check --algorithm raymond --variant duplicates --nodes 2 --shape line --crashes 2 --channels fifo"
            .to_owned(),
    )
}

fn long_delay() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: the second way is built, an identifier on RESTART that the advice quotes; see the row above".to_owned(),
        "a search in which a node restarts only when no message to or from it is in flight",
        "soloist lab check --algorithm raymond --nodes 3 --shape line --crashes 2".to_owned(),
    )
}
