//! Quorum systems: every two sets intersect, and the claims of Maekawa 1985, §2 and §3.

use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{NodeId, Shape};

fn made(form: &str, nodes: usize) -> Quorums {
    Quorums::parse(form, nodes).unwrap()
}

fn sets(quorums: &Quorums) -> impl Iterator<Item = (NodeId, &[NodeId])> {
    NodeId::all(quorums.nodes()).map(|node| (node, quorums.set(node)))
}

/// The nodes that two sorted sets have in common.
fn meeting<'a>(one: &'a [NodeId], other: &'a [NodeId]) -> impl Iterator<Item = &'a NodeId> {
    one.iter().filter(|m| other.binary_search(m).is_ok())
}

/// Checks all pairs, and uses nothing that the code under test has computed except the sets.
#[track_caller]
fn verify(quorums: &Quorums) {
    for (node, set) in sets(quorums) {
        assert!(set.is_sorted_by(|a, b| a < b), "{quorums}: set of {node}");
        assert!(set.contains(&node), "{quorums}: {node} not in its set");
        assert!(set.iter().all(|m| m.index() < quorums.nodes()), "{quorums}");
    }
    for (node, set) in sets(quorums) {
        for (other, other_set) in sets(quorums).take(node.index()) {
            let nodes = quorums.nodes();
            let common = meeting(set, other_set).next();
            assert!(common.is_some(), "{quorums} {nodes}: {node} and {other}");
        }
    }
}

/// Checks that every two sets intersect in exactly one node, that all sets have K members, and that
/// every node is in K sets.
#[track_caller]
fn verify_plane(quorums: &Quorums, k: usize) {
    verify(quorums);
    assert_eq!(quorums.nodes(), k * (k - 1) + 1);
    assert_eq!((quorums.k_min(), quorums.k_max()), (k, k));
    assert_eq!((quorums.load_min(), quorums.load_max()), (k, k));
    for (node, set) in sets(quorums) {
        for (other, other_set) in sets(quorums).take(node.index()) {
            assert_eq!(meeting(set, other_set).count(), 1, "{node} and {other}");
        }
    }
}

/// K >= (1 + √(4N - 3)) / 2 for sets of equal size that contain every node equally often (§3: N is
/// at most K(K-1) + 1).
fn k_bound(nodes: usize) -> usize {
    (1..).find(|k| k * (k - 1) + 1 >= nodes).unwrap()
}

/// The sets of Fig. 1, in the order of the nodes to which they belong, with the paper's numbers,
/// which start at 1. The available scan misreads "20" in (d) four times ("108", "$0$", "105", "50")
/// and has lost S_2 of (a). Read as here, every two sets intersect exactly once.
const FIG_1: [&[&[u32]]; 4] = [
    &[&[1, 2], &[2, 3], &[1, 3]],
    &[
        &[1, 2, 3],
        &[2, 4, 6],
        &[3, 5, 6],
        &[1, 4, 5],
        &[2, 5, 7],
        &[1, 6, 7],
        &[3, 4, 7],
    ],
    &[
        &[1, 2, 3, 4],
        &[2, 5, 8, 11],
        &[3, 6, 8, 13],
        &[4, 6, 10, 11],
        &[1, 5, 6, 7],
        &[2, 6, 9, 12],
        &[2, 7, 10, 13],
        &[1, 8, 9, 10],
        &[3, 7, 9, 11],
        &[3, 5, 10, 12],
        &[1, 11, 12, 13],
        &[4, 7, 8, 12],
        &[4, 5, 9, 13],
    ],
    &[
        &[1, 2, 3, 4, 5],
        &[2, 6, 10, 14, 18],
        &[3, 7, 10, 16, 21],
        &[4, 7, 13, 14, 20],
        &[5, 7, 12, 17, 18],
        &[1, 6, 7, 8, 9],
        &[2, 7, 11, 15, 19],
        &[2, 8, 12, 16, 20],
        &[2, 9, 13, 17, 21],
        &[1, 10, 11, 12, 13],
        &[3, 6, 11, 17, 20],
        &[3, 9, 12, 14, 19],
        &[3, 8, 13, 15, 18],
        &[1, 14, 15, 16, 17],
        &[4, 6, 12, 15, 21],
        &[4, 9, 11, 16, 18],
        &[4, 8, 10, 17, 19],
        &[1, 18, 19, 20, 21],
        &[5, 6, 13, 16, 19],
        &[5, 9, 10, 15, 20],
        &[5, 8, 11, 14, 21],
    ],
];

#[test]
fn figure_1_has_sets_that_meet_exactly_once() {
    for (figure, k) in FIG_1.iter().zip(2..) {
        let mut listing = String::from("# node: members\n");
        for (node, set) in figure.iter().enumerate() {
            let members: Vec<_> = set.iter().map(|member| (member - 1).to_string()).collect();
            listing += &format!("{node}: {{{}}}\n", members.join(", "));
        }
        verify_plane(&Quorums::from_listing(&listing, figure.len()).unwrap(), k);
    }
}

/// §3: "a set of S_i's exists if (K-1) is a power of a prime".
#[test]
fn every_prime_power_gives_a_projective_plane() {
    for q in [2, 3, 4, 5, 7, 8, 9, 11, 13] {
        verify_plane(&Quorums::default_for(q * q + q + 1), q + 1);
    }
    for q in [16, 25, 27, 32, 49, 64, 81] {
        let plane = Quorums::default_for(q * q + q + 1);
        assert_eq!((plane.k_min(), plane.k_max()), (q + 1, q + 1));
        assert_eq!((plane.load_min(), plane.load_max()), (q + 1, q + 1));
    }
}

#[test]
fn every_form_works_for_every_number_of_nodes() {
    for nodes in 1..=300 {
        for (form, _) in Quorums::FORMS {
            let quorums = made(form, nodes);
            verify(&quorums);
            assert_eq!(quorums.nodes(), nodes);
            assert_eq!(quorums.to_string(), *form);
        }
    }
}

#[test]
fn sizes_are_what_each_form_promises() {
    for nodes in 1..=300 {
        let bound = k_bound(nodes);
        let root = (nodes as f64).sqrt();

        let singer = made("singer", nodes);
        assert!(singer.k_max() >= bound, "singer for {nodes}");
        // Every two points that fold together make a set smaller by one; this does not hold if
        // three do.
        let orders = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17];
        let points = |q: &usize| q * q + q + 1;
        let q = orders.iter().find(|q| points(q) >= nodes).unwrap();
        if points(q) <= 2 * nodes {
            let members: usize = sets(&singer).map(|(_, set)| set.len()).sum();
            assert_eq!(members, nodes * (q + 1) - (points(q) - nodes), "{nodes}");
            assert!(singer.load_max() <= 2 * (q + 1), "singer for {nodes}");
        }

        let cyclic = made("cyclic", nodes);
        let k = cyclic.k_max();
        assert!(k >= bound, "cyclic for {nodes}");
        assert_eq!(cyclic.k_min(), k, "cyclic for {nodes}");
        assert_eq!((cyclic.load_min(), cyclic.load_max()), (k, k), "{nodes}");
        assert!(k as f64 <= 1.225 * root + 1.5, "cyclic for {nodes}: {k}");

        let grid = made("grid", nodes);
        assert!(grid.k_max() as f64 <= 2.0 * root.ceil() - 1.0, "{nodes}");

        let majority = made("majority", nodes);
        let half = nodes / 2 + 1;
        assert_eq!((majority.k_min(), majority.k_max()), (half, half));
        assert_eq!((majority.load_min(), majority.load_max()), (half, half));
    }
}

/// The rows are 0 1 2, 3 4 5 and 6.
#[test]
fn a_grid_has_rows_and_columns() {
    let grid = made("grid", 7);
    let set = |node| -> Vec<usize> {
        let members = grid.set(NodeId::new(node)).iter();
        members.map(|member| member.index()).collect()
    };
    assert_eq!(set(0), [0, 1, 2, 3, 6]);
    assert_eq!(set(4), [1, 3, 4, 5]);
    assert_eq!(set(6), [0, 3, 6]);
}

/// One more than the bound where no cover is that small.
#[test]
fn small_cyclic_quorums_are_the_smallest_there_are() {
    let is_above = |nodes| matches!(nodes, 20 | 29 | 30 | 38 | 40..=43 | 52..=56 | 66..=72);
    for nodes in 1..=73 {
        let expected = k_bound(nodes) + usize::from(is_above(nodes));
        assert_eq!(made("cyclic", nodes).k_max(), expected, "for {nodes}");
    }
}

/// Fig. 1a is the plane of 7 points folded to 3.
#[test]
fn three_nodes_make_a_triangle() {
    verify_plane(&Quorums::default_for(3), 2);
}

#[test]
fn folded_planes_stay_near_the_root() {
    let sample: Vec<usize> = (20..10_000).step_by(97).collect();
    let ratio = |&nodes: &usize| {
        let quorums = Quorums::default_for(nodes);
        let members: usize = sets(&quorums).map(|(_, set)| set.len()).sum();
        members as f64 / nodes as f64 / (nodes as f64).sqrt()
    };
    let mean = sample.iter().map(ratio).sum::<f64>() / sample.len() as f64;
    assert!((1.0..1.06).contains(&mean), "mean K / √N is {mean}");
}

#[test]
fn large_clusters_are_made() {
    for (form, nodes) in [
        ("singer", 1_000_000),
        ("cyclic", 1_000_000),
        ("grid", 1_000_000),
        ("majority", 10_000),
    ] {
        let quorums = made(form, nodes);
        let (first, last) = (NodeId::new(0), NodeId::from_index(nodes - 1));
        let common = meeting(quorums.set(first), quorums.set(last)).next();
        assert!(common.is_some(), "{form}");
    }
    let refused = Quorums::parse("majority", 100_000).unwrap_err();
    assert!(refused.to_string().contains("65536"), "{refused}");
}

#[test]
fn a_large_listing_is_verified() {
    let nodes = 1000;
    for form in ["singer", "grid", "majority"] {
        let quorums = made(form, nodes);
        let mut listing = String::new();
        for (node, set) in sets(&quorums) {
            let members: Vec<_> = set.iter().map(|member| member.to_string()).collect();
            listing += &format!("{node}: {}\n", members.join(" "));
        }
        let listed = Quorums::from_listing(&listing, nodes).unwrap();
        assert!(sets(&listed).eq(sets(&quorums)));
    }
}

#[test]
fn impossible_listings_are_refused() {
    for (listing, nodes, reason) in [
        (
            "0: 0 1\n1: 1 2\n2: 2",
            3,
            "the sets of node 0 and node 2 do not meet",
        ),
        ("0: 0 1\n2: 0 2", 3, "node 1 has no set"),
        ("0: 0\n0: 0", 1, "line 2: a second set for node 0"),
        ("0: 0 1\n1: 0", 2, "line 2: node 1 is not in its own set"),
        (
            "0: 0 2\n1: 0 1",
            2,
            "line 1: '2' is not a node; nodes are 0 to 1",
        ),
        ("0: 0 -1", 1, "'-1' is not a node"),
        ("0: 0 99999999999", 1, "is not a node"),
        ("0: 0 0", 1, "the set of node 0 has 0 twice"),
        ("# nothing", 1, "node 0 has no set"),
        ("0 1", 2, "line 1: '0 1' is not a set"),
        ("{0}", 1, "is not a set"),
        ("0:", 1, "node 0 is not in its own set"),
        ("", 0, "0 nodes"),
    ] {
        let refused = Quorums::from_listing(listing, nodes).unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
    }
}

#[test]
fn impossible_forms_are_refused() {
    let refused = Quorums::parse("star", 3).unwrap_err().to_string();
    assert!(
        refused.contains("singer, cyclic, grid, majority"),
        "{refused}"
    );
    assert!(Quorums::parse("grid", 0).is_err());
}
