//! The mesh of Chaudhuri and Karaata 1998, section 2, full and ragged.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::iter::successors;

use soloist_algorithms::NodeId;
use soloist_algorithms::shape::{Mesh, NODES_MAX, Shape, ShapeError};

/// All meshes up to 4 x 4 x 4, with every number of nodes that fits.
fn small_meshes() -> impl Iterator<Item = Mesh> {
    let forms = (1..=4).flat_map(|p| (1..=4).flat_map(move |q| (1..=4).map(move |r| (p, q, r))));
    forms.flat_map(|(p, q, r)| {
        let form = format!("{p}x{q}x{r}");
        (1..=p * q * r).map(move |nodes| Mesh::parse(&form, nodes).unwrap())
    })
}

fn nodes(mesh: &Mesh) -> impl Iterator<Item = NodeId> + use<> {
    NodeId::all(mesh.nodes())
}

/// All nodes from a node's next hop to its head.
fn way_up(mesh: &Mesh, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    successors(mesh.towards_head(node), |&next| mesh.towards_head(next))
}

#[test]
fn each_node_has_its_own_place() {
    for mesh in small_meshes() {
        for node in nodes(&mesh) {
            let at = mesh.coordinates(node);
            assert_eq!(mesh.node_at(at.row, at.column, at.plane), Some(node));
            assert_eq!(mesh.plane(node), at.plane);
        }
        let places = (0..6).flat_map(|i| (0..6).flat_map(move |j| (0..6).map(move |k| (i, j, k))));
        let taken = places.filter(|&(i, j, k)| mesh.node_at(i, j, k).is_some());
        assert_eq!(taken.count(), mesh.nodes(), "{mesh}");
    }
}

/// Section 2.2: REQUEST goes from (x,y,k) to (x-1,y,k), or to (0,y-1,k) if x = 0. PERMIT returns
/// the same way. In a mesh that is not full, every node on the way exists too.
#[test]
fn the_path_to_the_head_is_symmetric() {
    for mesh in small_meshes() {
        for node in nodes(&mesh) {
            let at = mesh.coordinates(node);
            let mut below = node;
            for next in way_up(&mesh, node) {
                let (from, to) = (mesh.coordinates(below), mesh.coordinates(next));
                if from.row == 0 {
                    assert_eq!((to.row, to.column + 1), (0, from.column));
                } else {
                    assert_eq!((to.row + 1, to.column), (from.row, from.column));
                }
                assert_eq!(mesh.towards_member(next, node), Some(below), "{mesh}");
                below = next;
            }
            assert_eq!(way_up(&mesh, node).count(), at.row + at.column, "{mesh}");
            assert_eq!(Some(below), mesh.head(at.plane));
        }
    }
}

/// PERMIT has a next hop exactly at the nodes on its way, except the last.
#[test]
fn only_nodes_above_a_member_have_a_path_to_it() {
    for mesh in small_meshes() {
        for member in nodes(&mesh) {
            let above: HashSet<_> = way_up(&mesh, member).collect();
            for node in nodes(&mesh) {
                let on_the_way = above.contains(&node);
                assert_eq!(mesh.towards_member(node, member).is_some(), on_the_way);
            }
        }
    }
}

/// The links in use form a tree: there are n - 1 of them, they work in both directions, and they
/// connect all nodes.
#[test]
fn links_make_a_spanning_tree() {
    for mesh in small_meshes() {
        let links: HashSet<_> = nodes(&mesh)
            .flat_map(|node| mesh.neighbours(node).map(move |other| (node, other)))
            .collect();
        assert!(links.iter().all(|&(a, b)| links.contains(&(b, a))));
        assert_eq!(links.len(), 2 * mesh.links(), "{mesh}");

        let mut reached = HashSet::from([NodeId::new(0)]);
        let mut stack = vec![NodeId::new(0)];
        while let Some(node) = stack.pop() {
            stack.extend(mesh.neighbours(node).filter(|&next| reached.insert(next)));
        }
        assert_eq!(reached.len(), mesh.nodes(), "{mesh}");
    }
}

/// Section 2 counts 13(n^1/3 - 1) links. That equals n - 1 only for n = 27 (and for one node, which
/// has no link).
#[test]
fn the_papers_count_of_links_is_right_for_27_nodes_only() {
    for side in 2..20 {
        let links = Mesh::default_for(side * side * side).links();
        assert_eq!(links == 13 * (side - 1), side == 3, "{side}");
    }
}

#[test]
fn every_plane_has_a_head_and_heads_are_a_line() {
    for mesh in small_meshes() {
        let heads: Vec<_> = nodes(&mesh).filter(|&node| mesh.is_head(node)).collect();
        assert_eq!(heads.len(), mesh.planes());
        for (plane, &head) in heads.iter().enumerate() {
            let below = plane.checked_sub(1).map(|plane| heads[plane]);
            let above = heads.get(plane + 1).copied();
            assert_eq!(mesh.head(plane), Some(head));
            assert_eq!(mesh.heads_beside(head), [below, above]);
            for other in nodes(&mesh) {
                let next = match mesh.plane(other).cmp(&plane) {
                    Ordering::Less => below,
                    Ordering::Equal => None,
                    Ordering::Greater => above,
                };
                assert_eq!(mesh.head_towards(head, other), next);
            }
        }
        assert_eq!(mesh.head(mesh.planes()), None);
        let members = (0..=mesh.planes()).map(|plane| mesh.plane_len(plane));
        assert_eq!(members.sum::<usize>(), mesh.nodes());
    }
}

#[test]
fn the_default_is_the_smallest_cube_with_room() {
    for (nodes, form, planes) in [
        (1, "1x1x1", 1),
        (2, "2x2x2", 1),
        (8, "2x2x2", 2),
        (9, "3x3x3", 1),
        (27, "3x3x3", 3),
        (28, "4x4x4", 2),
        (1_000_000, "100x100x100", 100),
    ] {
        let mesh = Mesh::default_for(nodes);
        assert_eq!((mesh.to_string().as_str(), mesh.planes()), (form, planes));
    }
    assert_eq!(Mesh::default_for(NODES_MAX).to_string(), "256x256x256");
}

#[test]
fn display_and_parse_round_trip() {
    for mesh in small_meshes() {
        assert_eq!(Mesh::parse(&mesh.to_string(), mesh.nodes()).unwrap(), mesh);
    }
}

/// Planes beyond the last node do not exist, however many are requested.
#[test]
fn more_room_than_nodes_is_fine() {
    let mesh = Mesh::parse("2x2x4294967295", 5).unwrap();
    assert_eq!(mesh.planes(), 2);
    assert_eq!((mesh.plane_len(0), mesh.plane_len(1)), (4, 1));
    let vast = Mesh::parse("4294967295x4294967295x4294967295", 5).unwrap();
    assert_eq!((vast.planes(), vast.plane_len(0)), (1, 5));
}

#[test]
fn refusals_say_why() {
    let refusal = |form, nodes| Mesh::parse(form, nodes).unwrap_err().to_string();
    assert_eq!(
        refusal("2x2x2", 9),
        "shape '2x2x2': room for 8 nodes, but there are 9"
    );
    for (form, part) in [
        ("0x2x2", "0"),
        ("2x2x", ""),
        ("2xtwox2", "two"),
        ("2x2x-1", "-1"),
        ("4294967296x1x1", "4294967296"),
    ] {
        assert_eq!(
            refusal(form, 1),
            format!("shape '{form}': '{part}' is not a number from 1 to 4294967295")
        );
    }
    for form in ["", "cube", "3x3", "3x3x3x3"] {
        assert_eq!(
            refusal(form, 1),
            format!("unknown shape '{form}': use PxQxR")
        );
    }
    assert_eq!(Mesh::parse("1x1x1", 0), Err(ShapeError::Nodes(0)));
}

/// No cost grows with the number of nodes: walks in a mesh of a million nodes are fast.
#[test]
fn a_million_nodes_are_fine() {
    let mesh = Mesh::default_for(1_000_000);
    let last_planes = nodes(&mesh).skip(900_000);
    let hops: usize = last_planes.map(|node| way_up(&mesh, node).count()).sum();
    assert_eq!(hops, 100_000 * 99); // (i + j) is 99 on average
}
