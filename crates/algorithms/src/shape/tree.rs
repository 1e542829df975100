//! A tree: messages travel only along its edges.

use std::fmt;
use std::num::NonZeroU32;

use super::{Plan, Shape, ShapeError, check_nodes};
use crate::NodeId;

/// A tree of nodes. Algorithms see it as unrooted; internally node 0 is the root.
///
/// Takes 28 bytes per node. Nothing here recurses, so a line of a million nodes is fine.
///
/// ```
/// # use soloist_algorithms::shape::{Shape, Tree};
/// # use soloist_algorithms::NodeId;
/// let tree = Tree::parse("line", 5).unwrap();
/// let [one, two, four] = [1, 2, 4].map(NodeId::new);
/// assert_eq!(tree.neighbours(one), [NodeId::new(0), two]);
/// assert_eq!(tree.next_hop(one, four), two);
/// assert_eq!(tree.diameter(), 4);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Tree {
    form: Form,
    /// Each node's neighbour towards node 0; for node 0, itself.
    parents: Box<[NodeId]>,
    /// The index in `links` at which each node's neighbours begin, followed by the end of the last.
    begins: Box<[u32]>,
    /// All nodes' neighbours, concatenated: for each node the parent, then the children in order.
    links: Box<[NodeId]>,
    /// Each node's number in a preorder traversal from node 0.
    walk: Box<[u32]>,
    /// One past the last preorder number in each node's subtree.
    walk_ends: Box<[u32]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Star(NonZeroU32),
    Line,
    Kary(NonZeroU32),
    Random(u64),
    Listed,
}

impl Shape for Tree {
    const FORMS: &'static [(&'static str, &'static str)] = &[
        (
            "star:K",
            "a radiating star: the centre has K neighbours, so has every other node but the leaves",
        ),
        ("line", "a line from node 0 to the last"),
        (
            "kary:K",
            "a complete tree, K children a node, numbered level by level",
        ),
        (
            "random:SEED",
            "each node hangs on any of those before it, by chance",
        ),
    ];

    fn nodes(&self) -> usize {
        self.parents.len()
    }

    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        let three = NonZeroU32::new(3).expect("three is not zero");
        Tree::generate(Form::Star(three), nodes)
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        let parsed = match form.split_once(':') {
            None if form == "line" => Form::Line,
            Some(("star", k)) => Form::Star(at_least(2, k, form)?),
            Some(("kary", k)) => Form::Kary(at_least(1, k, form)?),
            Some(("random", seed)) => Form::Random(
                seed.parse()
                    .map_err(|_| ShapeError::bad(form, "SEED is a number from 0 to 2^64-1"))?,
            ),
            _ => return Err(ShapeError::unknown::<Self>(form)),
        };
        Ok(Tree::generate(parsed, nodes))
    }

    fn samples(nodes: usize) -> Vec<String> {
        let hub = nodes.saturating_sub(1).max(2);
        let seeded = format!("random:{nodes}");
        let forms = ["star:3", "star:5", "line", "kary:2", "kary:4", "random:7"];
        let fixed = forms.iter().map(|&form| form.to_owned());
        fixed.chain([format!("star:{hub}"), seeded]).collect()
    }

    /// Parses one edge per line, `A-B` or `A B`, with nodes numbered from 0. `#` starts a comment.
    fn from_listing(text: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        let edges = read_edges(text, nodes)?;
        let parents = hang_up(&edges, nodes)?;
        Ok(Tree::with_parents(Form::Listed, parents))
    }

    fn plan(&self) -> Plan {
        Plan::Tree(self.parents.to_vec())
    }
}

impl Tree {
    /// The nodes that share an edge with `node`.
    pub fn neighbours(&self, node: NodeId) -> &[NodeId] {
        let begin = self.begins[node.index()] as usize;
        let end = self.begins[node.index() + 1] as usize;
        &self.links[begin..end]
    }

    /// Whether the two nodes share an edge.
    pub fn is_neighbour(&self, one: NodeId, other: NodeId) -> bool {
        one != other && (self.parents[one.index()] == other || self.parents[other.index()] == one)
    }

    /// Index of `neighbour` in the list of [`neighbours`](Tree::neighbours) of `node`.
    pub fn position(&self, node: NodeId, neighbour: NodeId) -> Option<usize> {
        let children = self.children(node);
        let before = self.neighbours(node).len() - children.len();
        if before == 1 && self.parents[node.index()] == neighbour {
            return Some(0);
        }
        let place = children.binary_search(&neighbour).ok()?;
        Some(before + place)
    }

    /// The neighbour of `from` that is nearest to `to`, or `from` itself if the two are equal.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        if from == to {
            return from;
        }
        if !self.is_below(from, to) {
            return self.parents[from.index()];
        }
        let children = self.children(from);
        let target = self.walk[to.index()];
        let after = children.partition_point(|child| self.walk[child.index()] <= target);
        children[after - 1]
    }

    /// Whether the path from `node` to `to` begins with the edge to its neighbour `via`.
    pub fn leads_to(&self, node: NodeId, via: NodeId, to: NodeId) -> bool {
        if self.parents[node.index()] == via {
            !self.is_below(node, to)
        } else {
            self.is_below(via, to)
        }
    }

    /// Number of edges of the longest path.
    pub fn diameter(&self) -> usize {
        let (end, _) = self.farthest(NodeId::new(0));
        let (_, length) = self.farthest(end);
        length
    }

    /// A node at the greatest distance from this one, and that distance.
    fn farthest(&self, from: NodeId) -> (NodeId, usize) {
        let mut best = (from, 0);
        let mut rest = vec![(from, from, 0)];
        while let Some((node, came_from, distance)) = rest.pop() {
            if distance > best.1 {
                best = (node, distance);
            }
            let onward = self.neighbours(node).iter().filter(|&&n| n != came_from);
            rest.extend(onward.map(|&next| (next, node, distance + 1)));
        }
        best
    }

    /// Whether `node` is `root` or in its subtree.
    fn is_below(&self, root: NodeId, node: NodeId) -> bool {
        let subtree = self.walk[root.index()]..self.walk_ends[root.index()];
        subtree.contains(&self.walk[node.index()])
    }

    fn children(&self, node: NodeId) -> &[NodeId] {
        let parents = usize::from(node.index() != 0);
        &self.neighbours(node)[parents..]
    }

    fn generate(form: Form, nodes: usize) -> Self {
        let mut random = match form {
            Form::Random(seed) => SplitMix64(seed),
            _ => SplitMix64(0),
        };
        let parent = |node: u32| match form {
            _ if node == 0 => 0,
            // Raymond 1989, Fig. 6: K nodes around the centre, K-1 more around each of these, and
            // so on.
            Form::Star(k) if node <= k.get() => 0,
            Form::Star(k) => 1 + (node - k.get() - 1) / (k.get() - 1),
            Form::Kary(k) => (node - 1) / k,
            Form::Random(_) => random.below(node),
            Form::Line | Form::Listed => node - 1,
        };
        let numbers = 0..u32::try_from(nodes).expect("node numbers fit 32 bits");
        Tree::with_parents(form, numbers.map(parent).map(NodeId::new).collect())
    }

    /// The tree in which each node has the given parent; that of node 0 is node 0.
    fn with_parents(form: Form, parents: Box<[NodeId]>) -> Self {
        let nodes = parents.len();
        let edges = (1..nodes).map(|child| (parents[child], NodeId::from_index(child)));
        let (begins, links) = adjacency(nodes, edges);
        let mut tree = Tree {
            form,
            parents,
            begins,
            links,
            walk: vec![0; nodes].into(),
            walk_ends: vec![1; nodes].into(),
        };
        tree.number_walk();
        tree
    }

    fn number_walk(&mut self) {
        // Every node comes after its parent.
        let mut order = Vec::with_capacity(self.nodes());
        order.push(NodeId::new(0));
        for index in 0..self.nodes() {
            order.extend_from_slice(self.children(order[index]));
        }
        // First the sizes of the subtrees, then the range of preorder numbers of each.
        for node in order.iter().skip(1).rev() {
            self.walk_ends[self.parents[node.index()].index()] += self.walk_ends[node.index()];
        }
        for &node in &order {
            let children = self.begins[node.index()] as usize + usize::from(node.index() != 0)
                ..self.begins[node.index() + 1] as usize;
            let mut next = self.walk[node.index()] + 1;
            for child in &self.links[children] {
                self.walk[child.index()] = next;
                next += self.walk_ends[child.index()];
            }
        }
        for (end, begin) in self.walk_ends.iter_mut().zip(&self.walk) {
            *end += begin;
        }
    }
}

/// Parses the K of a form.
fn at_least(min: u32, k: &str, form: &str) -> Result<NonZeroU32, ShapeError> {
    k.parse()
        .ok()
        .filter(|k: &NonZeroU32| k.get() >= min)
        .ok_or_else(|| ShapeError::bad(form, format!("K is a number from {min} to 2^32-1")))
}

/// Adjacency lists of all nodes, concatenated: where each begins, and the neighbours. If every edge
/// is (parent, child) and the children are in order, each list has the parent first, followed by
/// the children in order.
fn adjacency(
    nodes: usize,
    edges: impl Iterator<Item = (NodeId, NodeId)> + Clone,
) -> (Box<[u32]>, Box<[NodeId]>) {
    let mut begins = vec![0_u32; nodes + 1];
    for (parent, child) in edges.clone() {
        begins[parent.index() + 1] += 1;
        begins[child.index() + 1] += 1;
    }
    for index in 0..nodes {
        begins[index + 1] += begins[index];
    }
    let mut free = begins.clone();
    let mut links = vec![NodeId::new(0); begins[nodes] as usize];
    let mut link = |from: NodeId, to: NodeId| {
        let place = &mut free[from.index()];
        links[*place as usize] = to;
        *place += 1;
    };
    // A child may have a smaller number than its parent, so all parents are added before any child.
    edges
        .clone()
        .for_each(|(parent, child)| link(child, parent));
    edges.for_each(|(parent, child)| link(parent, child));
    (begins.into(), links.into())
}

/// Parses the edges of a listing, and refuses cycles.
fn read_edges(text: &str, nodes: usize) -> Result<Vec<(NodeId, NodeId)>, ShapeError> {
    let mut edges = Vec::with_capacity(nodes - 1);
    let mut clumps = Clumps((0..nodes).collect());
    for (number, line) in text.lines().enumerate() {
        let refuse = |reason| {
            Err(ShapeError::Listing(format!(
                "line {}: {reason}",
                number + 1
            )))
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let ends = line
            .split_once('-')
            .or_else(|| line.split_once(char::is_whitespace));
        let ends = ends.and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        let Some((one, other)) = ends else {
            return refuse(format!(
                "'{line}' is not an edge: write two node numbers, as in 0-1"
            ));
        };
        for end in [one, other] {
            if end >= nodes {
                return refuse(format!(
                    "no node {end}: the cluster has {nodes} nodes, numbered from 0"
                ));
            }
        }
        if one == other {
            return refuse(format!("the edge {one}-{other} joins node {one} to itself"));
        }
        if !clumps.join(one, other) {
            return refuse(format!("the edge {one}-{other} closes a cycle"));
        }
        edges.push((NodeId::from_index(one), NodeId::from_index(other)));
    }
    Ok(edges)
}

/// Each node's parent if node 0 is the root. The edges form no cycle.
fn hang_up(edges: &[(NodeId, NodeId)], nodes: usize) -> Result<Box<[NodeId]>, ShapeError> {
    let (begins, links) = adjacency(nodes, edges.iter().copied());
    let mut parents: Vec<Option<NodeId>> = vec![None; nodes];
    let root = NodeId::new(0);
    parents[0] = Some(root);
    let mut rest = vec![root];
    while let Some(node) = rest.pop() {
        let range = begins[node.index()] as usize..begins[node.index() + 1] as usize;
        for &next in &links[range] {
            if parents[next.index()].is_none() {
                parents[next.index()] = Some(node);
                rest.push(next);
            }
        }
    }
    let lost = |node: usize| {
        let bare = (0..nodes).find(|&node| begins[node] == begins[node + 1]);
        let what = match bare {
            Some(bare) => format!("node {bare} is missing: no edge names it"),
            None => format!("node {node} cannot be reached from node 0"),
        };
        let (edges, wanted) = (edges.len(), nodes - 1);
        ShapeError::Listing(format!(
            "{what} ({edges} edges; a tree of {nodes} nodes has {wanted})"
        ))
    };
    let parent_or_lost = |(node, parent): (usize, Option<NodeId>)| parent.ok_or_else(|| lost(node));
    parents
        .into_iter()
        .enumerate()
        .map(parent_or_lost)
        .collect()
}

/// Sets of connected nodes (union-find).
struct Clumps(Vec<usize>);

impl Clumps {
    /// Joins the sets of the two nodes. Returns whether they were disjoint.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.leader(one), self.leader(other));
        self.0[one] = other;
        one != other
    }

    fn leader(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }
}

/// Steele, Lea and Flood 2014, *Fast splittable pseudorandom number generators*. Pinned here, so
/// that a seed always gives the same tree.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u32) -> u32 {
        let scaled = u128::from(self.next()) * u128::from(limit);
        (scaled >> 64) as u32
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Star(k) => write!(f, "star:{k}"),
            Form::Line => f.write_str("line"),
            Form::Kary(k) => write!(f, "kary:{k}"),
            Form::Random(seed) => write!(f, "random:{seed}"),
            Form::Listed => f.write_str("listed"),
        }
    }
}

/// Shows only the form and the size: a tree may have a million nodes.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({self}, {} nodes)", self.nodes())
    }
}
