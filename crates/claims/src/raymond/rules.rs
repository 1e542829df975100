//! §2 to §4 and §9: nodes' state and messages, and correctness of the rules.

use std::sync::Arc;

use soloist_algorithms::machine::encoded_len;
use soloist_algorithms::raymond::{Raymond, RaymondMessage};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Channels, NodeId, Shape, VariantSet};
use soloist_lab::search::ENDLESS;

use super::claim;
use crate::chance::Cluster;
use crate::tools::{Run, Search, Searched, finding, proved};
use crate::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§2",
            "a node talks to its neighbours in the tree only, over N-1 edges in all, and need not know of others",
            neighbours_only,
        ),
        claim(
            "§3.1, §3.3",
            "a REQUEST_Q has no name twice, so at most one entry more than the node has neighbours",
            queue_bound,
        ),
        claim(
            "§3.5",
            "messages may overtake each other: no sequence numbers are needed",
            any_order,
        ),
        claim("§4.1", "mutual exclusion is assured", mutual_exclusion),
        claim("§4.2", "deadlock is impossible", no_deadlock),
        claim("§4.3", "starvation is impossible", no_starvation),
    ]
}

/// Every tree of two to four nodes.
const TREES: [(&str, usize); 4] = [("line", 2), ("line", 3), ("line", 4), ("star:3", 4)];

/// Searches all of these trees. Returns the result and the command of the first that is not well,
/// or else of the last.
pub(super) fn on_all_trees(
    requests: u8,
    change: impl Fn(Search<Raymond>) -> Search<Raymond>,
    run: impl Fn(&Search<Raymond>) -> Searched,
) -> (Searched, String) {
    let mut command = String::new();
    for (form, nodes) in TREES {
        let search = change(Search::of(&vec![requests; nodes]).shape(form));
        command = search.command();
        let searched = run(&search);
        if !searched.is_well() {
            return (searched, command);
        }
    }
    (Searched::Well, command)
}

/// A node refuses messages from nodes that are not its neighbours, which would be a fault of the
/// run.
fn neighbours_only() -> Finding {
    let mut holds = true;
    for (form, nodes) in [("star:3", 46), ("line", 20), ("random:1", 60)] {
        let tree = Tree::parse(form, nodes).expect("a tree");
        let degrees = NodeId::all(nodes).map(|node| tree.neighbours(node).len());
        holds &= degrees.sum::<usize>() == 2 * (nodes - 1);
        holds &= Run::of("raymond", nodes).shape(form).report().is_well();
    }
    let run = Run::of("raymond", 60).shape("random:1");
    finding(
        holds,
        "a node refuses what comes from no neighbour: 10,000 entries on each of three trees of 20, 46 and 60 nodes \
         without a refusal, over N-1 edges"
            .to_owned(),
        run.command(),
    )
}

/// The search checks after each step that no name is in a queue twice.
fn queue_bound() -> Finding {
    let (searched, command) = on_all_trees(ENDLESS, |search| search, Search::run);
    let (hub, bound) = (longest_queue(8), 9);
    finding(
        searched.is_well() && hub <= bound,
        format!(
            "no name twice in any state of any tree of 2 to 4 nodes, with endless requests ({}); at the centre of \
             a star of 9, at most {hub} entries of {bound} allowed in 200 random runs",
            searched.text()
        ),
        command,
    )
}

/// Length of the longest REQUEST_Q at the centre of a star, in random runs.
fn longest_queue(leaves: usize) -> usize {
    let form = format!("star:{leaves}");
    let star = Arc::new(Tree::parse(&form, leaves + 1).expect("a tree"));
    let mut longest = 0;
    for seed in 0..200 {
        let variants = VariantSet::default();
        let mut cluster = Cluster::<Raymond>::new(&star, variants, Channels::Any, 3, seed);
        while let Some(step) = cluster.step() {
            step.expect("nothing breaks");
            longest = longest.max(cluster.world.node(NodeId::new(0)).request_q().len());
        }
        assert!(cluster.all_served());
    }
    longest
}

fn any_order() -> Finding {
    let any = |search: Search<Raymond>| search.channels(Channels::Any);
    let (searched, command) = on_all_trees(2, any, Search::run);
    finding(
        searched.is_well(),
        format!(
            "every interleaving with messages that overtake each other, two requests per node, all trees of 2 to 4 \
             nodes: {}",
            searched.text()
        ),
        command,
    )
}

fn mutual_exclusion() -> Finding {
    let (searched, command) = on_all_trees(ENDLESS, |search| search, Search::run);
    finding(
        searched.is_safe(),
        format!(
            "every interleaving, endless requests, all trees of 2 to 4 nodes: {}; {}",
            searched.text(),
            proved("raymond_mutual_exclusion")
        ),
        command,
    )
}

fn no_deadlock() -> Finding {
    let (searched, command) = on_all_trees(2, |search| search, Search::run);
    finding(
        searched.is_well(),
        format!(
            "from every state every request can be served, two requests per node, all trees of 2 to 4 nodes: {}",
            searched.text()
        ),
        command,
    )
}

fn no_starvation() -> Finding {
    let (searched, command) = on_all_trees(ENDLESS, |search| search, Search::run);
    finding(
        searched.is_well(),
        format!(
            "in every fair run, endless requests, all trees of 2 to 4 nodes, every request is served: {}",
            searched.text()
        ),
        command,
    )
}

pub(super) fn message_length() -> Finding {
    use RaymondMessage::{Initialize, Privilege, PrivilegeRequest, Request};
    let normal = [Request, Privilege, PrivilegeRequest, Initialize];
    let lengths: Vec<_> = normal.iter().map(encoded_len).collect();
    let bytes = |nodes| {
        let measures = Run::of("raymond", nodes).entries(2000).report().measures;
        measures.bytes_per_entry / measures.messages_per_entry
    };
    let (small, large) = (bytes(10), bytes(1000));
    finding(
        lengths.iter().all(|&length| length == 1) && small == 1.0 && large == 1.0,
        format!(
            "the {} kinds of normal operation take 1 byte each; mean length {small} byte with 10 nodes and {large} with \
             1,000 (the sender is told by the link)",
            normal.len()
        ),
        Run::of("raymond", 1000).entries(2000).command(),
    )
}
