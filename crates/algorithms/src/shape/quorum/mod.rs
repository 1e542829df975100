//! Quorums: each node has a set of nodes whose permission it needs, and every two sets intersect.

mod cyclic;
mod listing;
mod singer;

use std::fmt;
use std::sync::OnceLock;

use super::{Plan, Shape, ShapeError, check_nodes};
use crate::NodeId;
use crate::mutant::Mutant;

/// A quorum system (Maekawa 1985, §2): a set S_i for each node i, such that every two sets have a
/// node in common, and i is in S_i. For any number of nodes:
///
/// - `singer`, about √N members per set: the lines of a projective plane, from a Singer difference
///   set. If N is q² + q + 1 for a prime power q, every set has exactly K = q + 1 members, every
///   node is in K sets, and two sets intersect in one node. For other N, the next larger plane,
///   with M points, is folded: S_i = {((d + i) mod M) mod N}. Mapping points preserves every
///   intersection, and i stays in S_i. The lower nodes are in up to twice as many sets as the
///   higher ones.
/// - `cyclic`, up to about 1.23 √N members per set: all sets are translates of one difference
///   cover, so all sets have K members and every node is in exactly K sets. K is the smallest
///   possible for a cyclic system up to N = 73 and for every N = q² + q + 1. Up to 65 the cover is
///   found by trying all covers. For 66 to 72 the same search, done once, found no cover of nine,
///   and a Wichmann ruler gives ten. 73 is a plane. Beyond, a Wichmann ruler is used.
/// - `grid`, about 2√N - 1 members per set: the nodes are in rows and columns, and a set is its
///   node's row and column.
/// - `majority`, N/2 + 1 members per set, rounded down: a node and those that follow it in a
///   circle.
///
/// Every system is verified when it is built. For a listed one, all pairs of sets are checked.
/// Where all sets are translates of one set (`singer`, `cyclic`, `majority`), every two intersect
/// exactly if every number is a difference of two members of that set, which is checked. For a
/// grid, all pairs are checked up to 1,024 nodes; beyond that, its sets intersect by the argument
/// beside the code.
///
/// Sets are computed on first use: a network node needs its own set and those of the nodes that
/// send it requests, not all N of them.
///
/// ```
/// use soloist_algorithms::shape::Quorums;
/// use soloist_algorithms::{NodeId, Shape};
///
/// let fano_plane = Quorums::default_for(7);
/// let members: Vec<usize> = fano_plane.set(NodeId::new(2)).iter().map(|m| m.index()).collect();
/// assert_eq!(members, [0, 2, 3]);
/// assert_eq!((fano_plane.k_max(), fano_plane.load_max()), (3, 3));
/// ```
#[derive(Debug)]
pub struct Quorums {
    nodes: usize,
    rule: Rule,
    blocks: Box<[OnceLock<Block>]>,
    extent: OnceLock<Extent>,
}

/// How the sets are defined.
#[derive(Debug)]
enum Rule {
    Translates(&'static str, Translates),
    Grid(Grid),
    /// Given set by set: all sets are already in the blocks.
    Listed,
}

/// S_i = {((d + i) mod M) mod N} for the numbers d of a difference cover modulo M >= N.
#[derive(Debug)]
struct Translates {
    modulus: u32,
    cover: Box<[u32]>,
}

/// Rows of `width` nodes; the last one may be shorter.
#[derive(Debug)]
struct Grid {
    width: usize,
}

/// The sets of some consecutive nodes, concatenated.
#[derive(Debug, Default)]
struct Block {
    ends: Vec<usize>,
    members: Vec<NodeId>,
}

/// Number of nodes whose sets are computed together.
const BLOCK: usize = 64;

/// Sizes of the sets, and the number of sets that contain a node.
#[derive(Clone, Copy, Debug)]
struct Extent {
    k_min: usize,
    k_max: usize,
    load_min: usize,
    load_max: usize,
}

const SINGER: &str = "singer";
const CYCLIC: &str = "cyclic";
const GRID: &str = "grid";
const MAJORITY: &str = "majority";

/// Beyond this, a majority is not a sensible quorum: its sets would fill the memory.
const MAJORITY_NODES_MAX: usize = 1 << 16;

/// Up to this number of nodes all pairs of a grid's sets are checked, which takes milliseconds.
const GRID_PAIRS_MAX: usize = 1024;

impl Shape for Quorums {
    const FORMS: &'static [(&'static str, &'static str)] = &[
        (SINGER, "lines of a projective plane, folded to N nodes"),
        (CYCLIC, "translates of a difference cover: equal load"),
        (GRID, "row and column"),
        (MAJORITY, "more than half of the nodes"),
    ];

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        Self::singer(nodes)
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        match form {
            SINGER => Ok(Self::singer(nodes)),
            CYCLIC => {
                let cover = cyclic::difference_cover(nodes);
                Ok(Self::translates(CYCLIC, nodes, nodes, cover))
            }
            GRID => {
                let width = nodes.isqrt() + usize::from(nodes.isqrt().pow(2) < nodes);
                let grid = Self::new(nodes, Rule::Grid(Grid { width }));
                if nodes <= GRID_PAIRS_MAX {
                    let sets: Vec<_> = NodeId::all(nodes).map(|i| grid.set(i).to_vec()).collect();
                    listing::verify(&sets).map_err(ShapeError::Listing)?;
                }
                Ok(grid)
            }
            MAJORITY if nodes > MAJORITY_NODES_MAX => Err(ShapeError::bad(
                form,
                format!("{nodes} nodes, and {MAJORITY_NODES_MAX} are the most for this form"),
            )),
            MAJORITY => {
                let cover = (0..=nodes as u32 / 2).collect();
                Ok(Self::translates(MAJORITY, nodes, nodes, cover))
            }
            _ => Err(ShapeError::unknown::<Self>(form)),
        }
    }

    fn samples(_nodes: usize) -> Vec<String> {
        [SINGER, CYCLIC, GRID, MAJORITY].map(str::to_owned).to_vec()
    }

    fn plan(&self) -> Plan {
        let sets = NodeId::all(self.nodes).map(|node| self.set(node).to_vec());
        Plan::Quorums(sets.collect())
    }

    /// Parses one set per line, `i: a b c` or `i: {a, b, c}`, with nodes numbered from 0. `#`
    /// starts a comment.
    ///
    /// ```
    /// # use soloist_algorithms::shape::Quorums;
    /// # use soloist_algorithms::Shape;
    /// assert!(Quorums::from_listing("0: 0 1\n1: 1 2\n2: {0, 2}  # a triangle", 3).is_ok());
    ///
    /// let refused = Quorums::from_listing("0: 0 1\n1: 1\n2: 2", 3).unwrap_err();
    /// assert!(refused.to_string().contains("node 0 and node 2 do not meet"));
    /// ```
    fn from_listing(text: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        let sets = listing::read(text, nodes).map_err(ShapeError::Listing)?;
        listing::verify(&sets).map_err(ShapeError::Listing)?;
        let quorums = Self::new(nodes, Rule::Listed);
        for (block, sets) in quorums.blocks.iter().zip(sets.chunks(BLOCK)) {
            block.get_or_init(|| {
                let mut block = Block::default();
                for set in sets {
                    block.members.extend(set);
                    block.close_set();
                }
                block
            });
        }
        Ok(quorums)
    }
}

impl Quorums {
    /// The nodes whose permission `node` needs, in order, including `node` itself.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn set(&self, node: NodeId) -> &[NodeId] {
        assert!(node.index() < self.nodes, "no node {node}");
        let first = node.index() - node.index() % BLOCK;
        let block = self.blocks[first / BLOCK].get_or_init(|| {
            let mut block = Block::default();
            for node in first..self.nodes.min(first + BLOCK) {
                self.write_set(node, &mut block.members);
                block.close_set();
            }
            block
        });
        block.set(node.index() - first)
    }

    /// Whether `node` needs the permission of `member`.
    pub fn has_member(&self, node: NodeId, member: NodeId) -> bool {
        self.set(node).binary_search(&member).is_ok()
    }

    /// The size of the smallest set.
    pub fn k_min(&self) -> usize {
        self.extent().k_min
    }

    /// The size of the largest set.
    pub fn k_max(&self) -> usize {
        self.extent().k_max
    }

    /// The smallest number of sets that contain a node.
    pub fn load_min(&self) -> usize {
        self.extent().load_min
    }

    /// The largest number of sets that contain a node.
    pub fn load_max(&self) -> usize {
        self.extent().load_max
    }

    fn extent(&self) -> &Extent {
        self.extent.get_or_init(|| {
            let mut loads = vec![0; self.nodes];
            let (mut k_min, mut k_max) = (usize::MAX, 0);
            let mut worked_out = Vec::new();
            for node in NodeId::all(self.nodes) {
                // Not with `set`, which would keep all N sets in memory.
                let set = if matches!(self.rule, Rule::Listed) {
                    self.set(node)
                } else {
                    worked_out.clear();
                    self.write_set(node.index(), &mut worked_out);
                    &worked_out
                };
                k_min = k_min.min(set.len());
                k_max = k_max.max(set.len());
                for member in set {
                    loads[member.index()] += 1;
                }
            }
            Extent {
                k_min,
                k_max,
                load_min: loads.iter().copied().min().unwrap_or_default(),
                load_max: loads.iter().copied().max().unwrap_or_default(),
            }
        })
    }

    fn new(nodes: usize, rule: Rule) -> Self {
        Quorums {
            nodes,
            rule,
            blocks: std::iter::repeat_with(OnceLock::new)
                .take(nodes.div_ceil(BLOCK))
                .collect(),
            extent: OnceLock::new(),
        }
    }

    fn singer(nodes: usize) -> Self {
        let q = singer::order_of_plane(nodes);
        let points = singer::plane_points(q);
        let mut line = singer::difference_set(q);
        shift_to_fold(&mut line, points, nodes);
        Self::translates(SINGER, nodes, points, line)
    }

    fn translates(form: &'static str, nodes: usize, modulus: usize, cover: Vec<u32>) -> Self {
        assert_eq!(
            cyclic::missing_difference(&cover, modulus),
            None,
            "{form} for {nodes} nodes: no two members differ by this, so some sets do not meet"
        );
        // 0 in the cover puts i into S_i, also when folded.
        assert_eq!(cover.first(), Some(&0), "{form} for {nodes} nodes");
        let translates = Translates {
            modulus: u32::try_from(modulus).expect("points of a plane fit 32 bits"),
            cover: cover.into(),
        };
        Self::new(nodes, Rule::Translates(form, translates))
    }

    /// Appends the set of `node`, in order.
    fn write_set(&self, node: usize, members: &mut Vec<NodeId>) {
        match &self.rule {
            Rule::Translates(_, translates) => translates.write_set(node, self.nodes, members),
            Rule::Grid(grid) => grid.write_set(node, self.nodes, members),
            Rule::Listed => unreachable!("listed sets are all there from the start"),
        }
    }
}

/// Shifts a line so that both 0 and N are on it. The points x and x + N fold together, and only one
/// line contains both. After this shift that is line x, whose set is one of the N that are kept, so
/// every such pair makes a set smaller.
fn shift_to_fold(line: &mut [u32], points: usize, nodes: usize) {
    let (points, nodes) = (points as u32, nodes as u32);
    let is_on_line = |point: u32| line.binary_search(&(point % points)).is_ok();
    let origin = line.iter().copied().find(|d| is_on_line(d + nodes));
    let origin = origin.expect("every number is a difference of two points of a line");
    for point in &mut *line {
        *point = (*point + points - origin) % points;
    }
    line.sort_unstable();
}

impl Translates {
    fn write_set(&self, node: usize, nodes: usize, members: &mut Vec<NodeId>) {
        let begin = members.len();
        let modulus = if Mutant::QuorumsFoldedTooEarly.planted() {
            nodes
        } else {
            self.modulus as usize
        };
        let folded = |d: &u32| (*d as usize + node) % modulus % nodes;
        members.extend(self.cover.iter().map(|d| NodeId::from_index(folded(d))));
        members[begin..].sort_unstable();
        let mut end = begin;
        for place in begin..members.len() {
            if place == begin || members[place] != members[end - 1] {
                members[end] = members[place];
                end += 1;
            }
        }
        members.truncate(end);
    }
}

impl Grid {
    /// The row and the column of `node`. Every two sets intersect, also if the last row is shorter:
    /// the sets of (r, c) and (r', c') have (r, c') and (r', c) in common, where these exist. If
    /// (r, c') does not exist, r is the last row and c is in it. Then every row has a column c, so
    /// (r', c) exists.
    fn write_set(&self, node: usize, nodes: usize, members: &mut Vec<NodeId>) {
        let (row, column) = (node / self.width, node % self.width);
        let row_begin = row * self.width;
        let row_end = nodes.min(row_begin + self.width);
        let above = (0..row).map(|r| r * self.width + column);
        let below = (row_end + column..nodes).step_by(self.width);
        if Mutant::QuorumsGridRowOnly.planted() {
            return members.extend((row_begin..row_end).map(NodeId::from_index));
        }
        let all = above.chain(row_begin..row_end).chain(below);
        members.extend(all.map(NodeId::from_index));
    }
}

impl Block {
    fn close_set(&mut self) {
        self.ends.push(self.members.len());
    }

    fn set(&self, place: usize) -> &[NodeId] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[begin..self.ends[place]]
    }
}

impl fmt::Display for Quorums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.rule {
            Rule::Translates(form, _) => form,
            Rule::Grid(_) => GRID,
            Rule::Listed => "listed",
        })
    }
}
