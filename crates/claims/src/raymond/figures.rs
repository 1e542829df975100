//! Figures that are replayed, the pattern of messages, and what the proofs state.

use std::collections::BTreeMap;
use std::sync::Arc;

use soloist_algorithms::raymond::{GREEDY, PIGGYBACK, Raymond, RaymondMessage};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Kind, NodeId, Shape, Snapshot, Variant, VariantSet};
use soloist_lab::search::{Bounds, ENDLESS, always};
use soloist_lab::simulate::Measures;

use super::claim;
use crate::tools::{Run, examined_again, finding, is_replayed, scenario};
use crate::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§2, Figs. 1 to 3",
            "HOLDER variables point to the privilege, and turn as it moves from E to A",
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
            "greedy: a neighbour at the head of the queue is overtaken by self at most once",
            overtaken_once,
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
        "in every state of trees of 3 to 5 nodes, endless requests, messages in any order: on each edge one message is in flight, or \
         a PRIVILEGE and a REQUEST of the same sender"
            .to_owned(),
        examined_again(Kind::Raymond, "§3.5, Fig. 4"),
    )
}

/// All vectors of up to this many positions, each from 1 to that.
fn vectors(most: u8) -> Vec<Vec<u8>> {
    let longer = |vectors: &Vec<Vec<u8>>| {
        let add = |vector: &Vec<u8>| -> Vec<_> {
            let position = |position| [vector.as_slice(), &[position]].concat();
            (1..=most).map(position).collect()
        };
        vectors.iter().flat_map(add).collect()
    };
    let by_length = std::iter::successors(Some(vec![Vec::new()]), |vectors| Some(longer(vectors)));
    by_length.take(usize::from(most) + 1).flatten().collect()
}

/// The three effects that the paper lists, in its notation.
fn vector() -> Finding {
    let most = 5;
    let lower = vectors(most).iter().all(|vector| {
        let Some((&last, rest)) = vector.split_last() else {
            return true;
        };
        if last == 1 {
            return rest < vector.as_slice();
        }
        let less = [rest, &[last - 1]].concat();
        let longer = (1..=most).map(|position| [less.as_slice(), &[position]].concat());
        less < *vector && longer.into_iter().all(|longer| longer < *vector)
    });
    finding(
        lower,
        "of all vectors of up to 5 positions from 1 to 5, and by inspection of any: each of the three effects replaces the vector by a proper prefix, or lowers its last position before it appends \
         one; both are lower in lexicographic order, and length and positions are at most N, so that the order is well-founded. (For \
         M_k = 1 the paper says that P_(k-1) is at the end of the queue; it is at the head.) That no node starves is also searched (§4.3 above)"
            .to_owned(),
        examined_again(Kind::Raymond, "§4.3"),
    )
}

/// The sum of the distances of all ordered pairs of different nodes of a line.
pub(crate) fn distances_on_a_line(nodes: i64) -> i64 {
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a - b).abs()));
    pairs.sum()
}

fn mean_distance_on_a_line() -> Finding {
    let is_exact = |nodes: i64| {
        // There are N(N-1) such pairs.
        3 * distances_on_a_line(nodes) == (nodes + 1) * nodes * (nodes - 1)
    };
    let exact = (2..=200).filter(|&nodes| is_exact(nodes)).count();
    finding(
        exact == 199,
        format!(
            "counted over all pairs of different nodes: exact for {exact} of the 199 lines of 2 to 200 nodes"
        ),
        examined_again(Kind::Raymond, "§5"),
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
        "in every state of stars of 3 to 5 nodes, endless requests, no leaf has sent both in one message".to_owned(),
        examined_again(Kind::Raymond, "§6.1"),
    )
}

fn greedy_alone() -> Finding {
    let run = |name| Run::of(name, 46).shape("star:3").load("light");
    let [plain, greedy] = ["raymond", "raymond+greedy"].map(|name| run(name).replicated());
    let measures: [fn(&Measures) -> f64; 2] = [
        |measures| measures.messages_per_entry,
        |measures| measures.response_time.mean,
    ];
    let [messages, delay] = measures.map(|measure| greedy.difference(&plain, measure));
    let is_none = [messages, delay]
        .iter()
        .all(|d| d.low() == 0.0 && d.high() == 0.0);
    finding(
        is_none,
        format!(
            "46 nodes, one request at a time, in pairs of runs with the same demand: greedy changes the messages per entry by {messages} of {} and \
             the delay to enter by {delay} of {}",
            plain.estimate(measures[0]),
            plain.estimate(measures[1])
        ),
        "soloist lab compare --algorithms raymond,raymond+greedy --nodes 46 --shape star:3 --load light --entries 1000 --warm-up 500 --level 99.9%"
            .to_owned(),
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
        "in every state of trees of 3 to 5 nodes, endless requests, self is at the head of its queue or not in it; and when it leaves, \
         the head gets the privilege before self can request again, so a neighbour at the head is overtaken once at most"
            .to_owned(),
        examined_again(Kind::Raymond, "§6.2"),
    )
}
