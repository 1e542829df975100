//! Where the nodes of a shape are drawn.

use std::f64::consts::TAU;

use soloist_algorithms::shape::{Coordinates, Plan, Quorums};
use soloist_algorithms::{NodeId, Shape as _};

use super::types::Layout;

/// The largest tree that is drawn level by level. A larger one is drawn around its root.
const TIDY_MAX: usize = 64;

/// The smallest grid that has two rows and two columns.
const GRID_MIN: usize = 4;
const GRID_PITCH: f64 = 1.5;

/// The layout of a shape, and its nodes in the order of a space-time diagram with their depths.
pub(super) fn layout(plan: &Plan, nodes: usize) -> (Layout, Vec<(usize, usize)>) {
    let in_order = (0..nodes).map(|node| (node, 0)).collect();
    match plan {
        Plan::Tree(parents) => tree(parents),
        Plan::Ring => {
            let edges = (0..nodes).map(|node| (node, (node + 1) % nodes));
            let edges = edges.filter(|(one, other)| one != other).collect();
            (boxed("ring", circle(nodes), edges), in_order)
        }
        Plan::Torus(rows) => (torus(rows), in_order),
        Plan::Mesh(places, links) => (mesh(places, links), in_order),
        Plan::Quorums(sets) => {
            let indices = |set: &Vec<NodeId>| set.iter().map(|node| node.index()).collect();
            let places = match grid_width(sets) {
                Some(width) => grid(nodes, width),
                None => circle(nodes),
            };
            let layout = Layout {
                sets: Some(sets.iter().map(indices).collect()),
                ..boxed("quorums", places, Vec::new())
            };
            (layout, in_order)
        }
        _ => (boxed("complete", circle(nodes), Vec::new()), in_order),
    }
}

/// Moves the nodes into a box that begins at 0, and rounds coordinates, so that pictures are small
/// and the same on every machine.
fn boxed(kind: &'static str, mut nodes: Vec<(f64, f64)>, edges: Vec<(usize, usize)>) -> Layout {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    let least = |of: fn(&(f64, f64)) -> f64| nodes.iter().map(of).fold(f64::INFINITY, f64::min);
    let (left, top) = (least(|place| place.0), least(|place| place.1));
    for (x, y) in &mut nodes {
        (*x, *y) = (round(*x - left), round(*y - top));
    }
    let most = |of: fn(&(f64, f64)) -> f64| nodes.iter().map(of).fold(0.0, f64::max);
    Layout {
        kind,
        width: most(|place| place.0),
        height: most(|place| place.1),
        nodes,
        edges,
        stubs: Vec::new(),
        sets: None,
    }
}

/// The length of a row, if the sets are those of the shape `grid`.
fn grid_width(sets: &[Vec<NodeId>]) -> Option<usize> {
    let nodes = sets.len();
    let width = (1..=nodes).find(|width| width * width >= nodes)?;
    // The first row and the first column. Most other sets differ here, without a comparison of all.
    let first = (0..nodes).filter(|node| *node < width || node % width == 0);
    if nodes < GRID_MIN || !sets[0].iter().map(|node| node.index()).eq(first) {
        return None;
    }
    let grid = Quorums::parse("grid", nodes).ok()?.plan();
    matches!(grid, Plan::Quorums(all) if all == sets).then_some(width)
}

/// Row by row. Further apart than on a circle, because any two nodes may have an arrow.
fn grid(nodes: usize, width: usize) -> Vec<(f64, f64)> {
    let place = |at: usize| GRID_PITCH * at as f64;
    (0..nodes)
        .map(|node| (place(node % width), place(node / width)))
        .collect()
}

/// Clockwise from the top, about one unit apart.
fn circle(nodes: usize) -> Vec<(f64, f64)> {
    let radius = (nodes as f64 / TAU).max(1.0);
    let place = |node| on_circle(radius, node as f64 / nodes as f64);
    (0..nodes).map(place).collect()
}

/// The place at this part of a full turn.
fn on_circle(radius: f64, turn: f64) -> (f64, f64) {
    let angle = turn * TAU;
    (radius * libm::sin(angle), -radius * libm::cos(angle))
}

fn torus(rows: &[usize]) -> Layout {
    let columns = rows.iter().copied().max().unwrap_or_default();
    let begins: Vec<usize> = rows
        .iter()
        .scan(0, |begin, length| {
            Some(std::mem::replace(begin, *begin + length))
        })
        .collect();
    let (mut nodes, mut edges, mut stubs) = (Vec::new(), Vec::new(), Vec::new());
    for (row, (&begin, &length)) in begins.iter().zip(rows).enumerate() {
        for column in 0..length {
            let node = begin + column;
            nodes.push((column as f64, row as f64));
            if column + 1 < length {
                edges.push((node, node + 1));
            }
            match rows.get(row + 1) {
                Some(&below) if column < below => edges.push((node, begins[row + 1] + column)),
                _ if rows.len() > 1 => stubs.push((node, 0.0, 0.5)),
                _ => {}
            }
            if row == 0 && rows.len() > 1 {
                stubs.push((node, 0.0, -0.5));
            }
        }
        if length > 1 {
            stubs.push((begin, -0.5, 0.0));
            stubs.push((begin + length - 1, 0.5, 0.0));
        }
    }
    let layout = boxed("torus", nodes, edges);
    debug_assert!(columns > 0, "a torus has nodes");
    Layout { stubs, ..layout }
}

/// Planes side by side. Their heads are on a line above them.
fn mesh(places: &[Coordinates], links: &[(NodeId, NodeId)]) -> Layout {
    let columns = places.iter().map(|place| place.column).max();
    let pitch = columns.unwrap_or_default() + 2;
    let place = |at: &Coordinates| {
        let is_head = at.row == 0 && at.column == 0;
        let y = if is_head { 0 } else { at.row + 1 };
        ((at.plane * pitch + at.column) as f64, y as f64)
    };
    let links = links
        .iter()
        .map(|(one, other)| (one.index(), other.index()));
    boxed("mesh", places.iter().map(place).collect(), links.collect())
}

fn tree(parents: &[NodeId]) -> (Layout, Vec<(usize, usize)>) {
    let edges: Vec<(usize, usize)> = (1..parents.len())
        .map(|child| (parents[child].index(), child))
        .collect();
    let mut children = vec![Vec::new(); parents.len()];
    for &(parent, child) in &edges {
        children[parent].push(child);
    }
    if let Some(path) = as_line(&children) {
        let mut nodes = vec![(0.0, 0.0); parents.len()];
        for (place, &node) in path.iter().enumerate() {
            nodes[node] = (place as f64, 0.0);
        }
        let rows = path.into_iter().map(|node| (node, 0)).collect();
        return (boxed("line", nodes, edges), rows);
    }
    let rows = preorder(&children);
    let layout = match parents.len() <= TIDY_MAX {
        true => boxed("tree", tidy(&children, &rows), edges),
        false => boxed("radial", radial(&children, &rows), edges),
    };
    (layout, rows)
}

/// The nodes from one end to the other, if no node has more than two neighbours.
fn as_line(children: &[Vec<usize>]) -> Option<Vec<usize>> {
    let few = |(node, children): (usize, &Vec<usize>)| children.len() < 2 + usize::from(node == 0);
    if !children.iter().enumerate().all(few) {
        return None;
    }
    let branch =
        |first: usize| std::iter::successors(Some(first), |&n| children[n].first().copied());
    let mut sides = children[0].iter().map(|&child| branch(child));
    let right: Vec<usize> = sides.next().into_iter().flatten().collect();
    let mut line: Vec<usize> = sides.next().into_iter().flatten().collect();
    line.reverse();
    line.push(0);
    line.extend(right);
    Some(line)
}

/// Each node before its subtree, with its depth.
fn preorder(children: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut order = Vec::with_capacity(children.len());
    let mut rest = vec![(0, 0)];
    while let Some((node, depth)) = rest.pop() {
        order.push((node, depth));
        rest.extend(children[node].iter().rev().map(|&child| (child, depth + 1)));
    }
    order
}

/// Reingold and Tilford 1981, *Tidier drawings of trees*: subtrees are as close as their outlines
/// allow, and a parent is above the middle of its children.
fn tidy(children: &[Vec<usize>], preorder: &[(usize, usize)]) -> Vec<(f64, f64)> {
    // The place of each node beside its parent, and the outline of its subtree, beside the node:
    // leftmost and rightmost place on each level.
    let mut beside = vec![0.0; children.len()];
    let mut outlines: Vec<Vec<(f64, f64)>> = vec![Vec::new(); children.len()];
    for &(node, _) in preorder.iter().rev() {
        let mut all: Vec<(f64, f64)> = Vec::new();
        for &child in &children[node] {
            let outline = &outlines[child];
            let gaps = all.iter().zip(outline);
            let gap = gaps.map(|(before, own)| before.1 - own.0 + 1.0);
            let shift = gap.fold(0.0, f64::max);
            beside[child] = shift;
            for (level, own) in outline.iter().enumerate() {
                match all.get_mut(level) {
                    Some(known) => known.1 = own.1 + shift,
                    None => all.push((own.0 + shift, own.1 + shift)),
                }
            }
        }
        let ends = children[node].first().zip(children[node].last());
        let middle = ends.map_or(0.0, |(first, last)| (beside[*first] + beside[*last]) / 2.0);
        children[node]
            .iter()
            .for_each(|&child| beside[child] -= middle);
        let below = all
            .iter()
            .map(|(left, right)| (left - middle, right - middle));
        outlines[node] = std::iter::once((0.0, 0.0)).chain(below).collect();
    }
    let mut places = vec![(0.0, 0.0); children.len()];
    for &(node, depth) in preorder {
        for &child in &children[node] {
            places[child] = (places[node].0 + beside[child], (depth + 1) as f64);
        }
    }
    places
}

/// The root in the middle, each level on a circle, leaves at equal angles.
fn radial(children: &[Vec<usize>], preorder: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let is_leaf = |node: usize| children[node].is_empty();
    let leaves = preorder.iter().filter(|(node, _)| is_leaf(*node)).count();
    let depth_max = preorder
        .iter()
        .map(|(_, depth)| *depth)
        .max()
        .unwrap_or_default();
    let step = (leaves as f64 / TAU / depth_max.max(1) as f64).max(1.0);
    let mut turns = vec![0.0; children.len()];
    let leaf_order = preorder.iter().filter(|(node, _)| is_leaf(*node));
    for (place, &(node, _)) in leaf_order.enumerate() {
        turns[node] = place as f64 / leaves as f64;
    }
    for &(node, _) in preorder.iter().rev() {
        if let Some((first, last)) = children[node].first().zip(children[node].last()) {
            turns[node] = (turns[*first] + turns[*last]) / 2.0;
        }
    }
    let mut places = vec![(0.0, 0.0); children.len()];
    for &(node, depth) in preorder {
        places[node] = on_circle(step * depth as f64, turns[node]);
    }
    places
}
