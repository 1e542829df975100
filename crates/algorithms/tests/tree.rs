//! Trees: their forms, their geometry, and listings that are refused.

use proptest::prelude::*;
use soloist_algorithms::NodeId;
use soloist_algorithms::shape::{Shape, Tree};

fn node(number: u32) -> NodeId {
    NodeId::new(number)
}

fn tree(form: &str, nodes: usize) -> Tree {
    Tree::parse(form, nodes).unwrap()
}

fn edges(tree: &Tree) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for a in NodeId::all(tree.nodes()) {
        for b in tree.neighbours(a).iter().filter(|b| a < **b) {
            edges.push((a.index(), b.index()));
        }
    }
    edges.sort_unstable();
    edges
}

/// Raymond 1989, Fig. 7, with its nodes 1 to 10 numbered from 0.
#[test]
fn the_default_of_ten_nodes_is_figure_7() {
    let figure = Tree::default_for(10);
    assert_eq!(figure.to_string(), "star:3");
    assert_eq!(
        edges(&figure),
        [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (1, 5),
            (2, 6),
            (2, 7),
            (3, 8),
            (3, 9)
        ]
    );
    assert_eq!(figure.diameter(), 4);
}

#[test]
fn forms_have_their_documented_shape() {
    assert_eq!(edges(&tree("line", 4)), [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(edges(&tree("star:4", 5)), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!(edges(&tree("star:4294967295", 3)), [(0, 1), (0, 2)]);
    assert_eq!(edges(&tree("star:2", 5)), [(0, 1), (0, 2), (1, 3), (2, 4)]);
    let binary = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)];
    assert_eq!(edges(&tree("kary:2", 6)), binary);
    assert_eq!(edges(&tree("kary:1", 4)), edges(&tree("line", 4)));
    for form in ["line", "star:2", "kary:1", "random:0"] {
        assert_eq!(edges(&tree(form, 1)), []);
        assert_eq!(tree(form, 1).diameter(), 0);
        assert_eq!(tree(form, 9).to_string(), form);
    }
}

/// A seed always gives the same tree.
#[test]
fn a_random_tree_is_pinned() {
    let pinned = [(0, 1), (0, 2), (1, 6), (2, 3), (2, 4), (2, 5), (3, 7)];
    assert_eq!(edges(&tree("random:7", 8)), pinned);
    assert_ne!(edges(&tree("random:8", 8)), pinned);
}

#[test]
fn impossible_forms_are_refused() {
    let refusal = |form: &str| Tree::parse(form, 5).unwrap_err().to_string();
    assert_eq!(
        refusal("star:1"),
        "shape 'star:1': K is a number from 2 to 2^32-1"
    );
    assert_eq!(
        refusal("kary:0"),
        "shape 'kary:0': K is a number from 1 to 2^32-1"
    );
    assert_eq!(
        refusal("random:x"),
        "shape 'random:x': SEED is a number from 0 to 2^64-1"
    );
    assert_eq!(
        refusal("star"),
        "unknown shape 'star': use star:K, line, kary:K, random:SEED"
    );
    assert!(Tree::parse("line", 0).is_err());
}

/// Raymond 1989, §5: a star of valency K has the diameter 2 ceil(log_{K-1}((N-1)(K-2)/K + 1)). This
/// holds if every level is full. If only one arm reaches the last level, the diameter is one less.
#[test]
fn stars_have_the_diameter_of_section_5() {
    for k in 3..=6_usize {
        // The number of levels needed for N nodes.
        let (mut levels, mut room, mut rim) = (0_usize, 1, k);
        for nodes in 1..2000 {
            if nodes > room {
                levels += 1;
                room += rim;
                rim *= k - 1;
            }
            let argument = ((nodes - 1) * (k - 2)) as f64 / k as f64 + 1.0;
            let formula = 2.0 * (argument.log((k - 1) as f64) - 1e-9).ceil();
            assert_eq!(formula, 2.0 * levels as f64, "{nodes} nodes, valency {k}");

            let star = tree(&format!("star:{k}"), nodes);
            let diameter = star.diameter();
            assert!((2 * levels).saturating_sub(1) <= diameter && diameter <= 2 * levels);
            if nodes == room {
                assert_eq!(diameter, 2 * levels);
                let valency = |node| star.neighbours(node).len();
                assert!(NodeId::all(nodes).all(|n| nodes == 1 || [1, k].contains(&valency(n))));
            }
        }
    }
}

/// Raymond 1989, §5: the worst topology, with diameter N-1.
#[test]
fn a_line_has_the_diameter_of_section_5() {
    for nodes in 1..20 {
        assert_eq!(tree("line", nodes).diameter(), nodes - 1);
    }
}

#[test]
fn a_listing_makes_the_tree_it_lists() {
    // Raymond 1989, Fig. 1, with A to F as 0 to 5.
    let figure = Tree::from_listing("# Fig. 1\n1-0\n 0 2 # two\n\n0 - 3\n3\t4\n5-3\n", 6).unwrap();
    assert_eq!(edges(&figure), [(0, 1), (0, 2), (0, 3), (3, 4), (3, 5)]);
    assert_eq!(figure.to_string(), "listed");
    // Children with smaller numbers than their parent.
    let hook = Tree::from_listing("0-3\n3-1\n3-2\n1-4", 5).unwrap();
    assert_eq!(hook.neighbours(node(3)), [0, 1, 2].map(node));
    assert_eq!(hook.next_hop(node(2), node(4)), node(3));
    assert_eq!(hook.next_hop(node(3), node(4)), node(1));
    assert_eq!(Tree::from_listing("", 1).unwrap().nodes(), 1);
}

#[test]
fn a_listing_that_is_not_a_tree_is_refused_with_the_reason() {
    let refusal = |text: &str| Tree::from_listing(text, 4).unwrap_err().to_string();
    assert_eq!(
        refusal("0-1\n1-2\n2-0\n2-3"),
        "line 3: the edge 2-0 closes a cycle"
    );
    assert_eq!(refusal("0-1\n1-0"), "line 2: the edge 1-0 closes a cycle");
    assert_eq!(
        refusal("0-1\n2-2"),
        "line 2: the edge 2-2 joins node 2 to itself"
    );
    assert_eq!(
        refusal("0-1\n1-4"),
        "line 2: no node 4: the cluster has 4 nodes, numbered from 0"
    );
    assert_eq!(
        refusal("0-1\n1-2"),
        "node 3 is missing: no edge names it (2 edges; a tree of 4 nodes has 3)"
    );
    assert_eq!(
        refusal("0-1\n2-3"),
        "node 2 cannot be reached from node 0 (2 edges; a tree of 4 nodes has 3)"
    );
    for line in [
        "0",
        "0-1-2",
        "-1 2",
        "a-b",
        "0 1 2",
        "0-99999999999999999999",
    ] {
        assert_eq!(
            refusal(line),
            format!("line 1: '{line}' is not an edge: write two node numbers, as in 0-1")
        );
    }
}

/// A million nodes in any form, including the longest and the widest: neither quadratic nor
/// recursive.
#[test]
fn a_million_nodes_are_fine() {
    let nodes = 1_000_000;
    for form in ["line", "star:3", "star:999999", "kary:2", "random:1"] {
        let tree = tree(form, nodes);
        let (first, last) = (node(0), node(999_999));
        assert!(tree.diameter() >= 2);
        assert!(tree.is_neighbour(last, tree.next_hop(last, first)));
        assert!(tree.is_neighbour(first, tree.next_hop(first, last)));
    }
    let listing: String = (1..nodes).map(|n| format!("{}-{n}\n", n / 2)).collect();
    assert_eq!(Tree::from_listing(&listing, nodes).unwrap().nodes(), nodes);
}

proptest! {
    /// Compares with the plain definitions, evaluated by walking the tree.
    #[test]
    fn geometry_agrees_with_walking(seed in any::<u64>(), nodes in 1_usize..30, shift in 0_usize..30) {
        // Rotates the numbers, so that parents need not be smaller than their children.
        let turn = |n: usize| (n + shift) % nodes;
        let listing: String = edges(&tree(&format!("random:{seed}"), nodes))
            .iter()
            .map(|(a, b)| format!("{}-{}\n", turn(*a), turn(*b)))
            .collect();
        let tree = Tree::from_listing(&listing, nodes).unwrap();
        let mut longest = 0;
        for a in NodeId::all(nodes) {
            for (place, b) in tree.neighbours(a).iter().enumerate() {
                prop_assert_eq!(tree.position(a, *b), Some(place));
            }
            for b in NodeId::all(nodes) {
                prop_assert_eq!(tree.is_neighbour(a, b), tree.neighbours(a).contains(&b));
                prop_assert_eq!(tree.position(a, b).is_some(), tree.is_neighbour(a, b));
                let (mut here, mut steps) = (a, 0);
                while here != b {
                    let next = tree.next_hop(here, b);
                    prop_assert!(tree.is_neighbour(here, next));
                    for via in tree.neighbours(here) {
                        prop_assert_eq!(tree.leads_to(here, *via, b), *via == next);
                    }
                    here = next;
                    steps += 1;
                    prop_assert!(steps < nodes);
                }
                longest = longest.max(steps);
            }
        }
        prop_assert_eq!(tree.diameter(), longest);
    }
}
