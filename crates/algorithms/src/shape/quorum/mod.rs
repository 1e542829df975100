//! Quorums: each node has a set of nodes whose permission it needs, and every two sets meet.

mod cyclic;
mod listing;
mod singer;

use std::fmt;
use std::sync::OnceLock;

use super::{Shape, ShapeError, check_nodes};
use crate::NodeId;
use crate::mutant::Mutant;

/// A quorum system (Maekawa 1985, §2): a set S_i for each node i, such that every two sets have a
/// node in common, and i is in S_i. For any number of nodes:
///
/// | form | members of a set | |
/// |---|---|---|
/// | `singer` | about √N | The lines of a projective plane, from a Singer difference set. If N is q² + q + 1 for a prime power q: exactly K = q + 1, every node in K sets, two sets meet in one node. For other N, the next larger plane of M points with its points folded together: S_i = {((d + i) mod M) mod N}. To map points keeps every meeting, and i stays in S_i; the lower nodes are in up to twice as many sets as the higher. |
/// | `cyclic` | up to about 1.23 √N | All sets are translates of one difference cover: all sets have K members, every node is in exactly K sets. K is the smallest that a cyclic system can have up to N = 73 (found by trying all covers up to 65; for 66 to 72 the same search, done once, finds no nine, and the ten of a Wichmann ruler are built; 73 is a plane) and for every N = q² + q + 1. Beyond, the cover is a Wichmann ruler's. |
/// | `grid` | about 2√N - 1 | The nodes in rows and columns; a set is its node's row and column. |
/// | `majority` | N/2 + 1, rounded down | A node and those that follow it in a circle. |
///
/// Every system is verified when it is made. For a listed one all pairs are looked at. Where all sets
/// are translates of one set (`singer`, `cyclic`, `majority`), every two meet exactly if every number
/// is a difference of two of its members, and that is looked at. Of a grid all pairs are looked at up to
/// 1,024 nodes; beyond, its sets meet by the argument beside the code.
///
/// Sets are worked out when they are first asked for: a network node needs its own and those of the
/// nodes that ask it, not all N of them.
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

/// What the sets are.
#[derive(Debug)]
enum Rule {
    Translates(&'static str, Translates),
    Grid(Grid),
    /// Given set by set: no rule, all of them are in the blocks.
    Listed,
}

/// S_i = {((d + i) mod M) mod N} for the numbers d of a difference cover modulo M >= N.
#[derive(Debug)]
struct Translates {
    modulus: u32,
    cover: Box<[u32]>,
}

/// Rows of `width` nodes, the last one maybe shorter.
#[derive(Debug)]
struct Grid {
    width: usize,
}

/// The sets of some consecutive nodes, one after the other.
#[derive(Debug, Default)]
struct Block {
    ends: Vec<usize>,
    members: Vec<NodeId>,
}

/// How many nodes' sets are worked out together.
const BLOCK: usize = 64;

/// Sizes of the sets, and in how many sets the nodes are.
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

/// Beyond this a majority is no sensible quorum: its sets would fill the memory.
const MAJORITY_NODES_MAX: usize = 1 << 16;

/// Up to this many nodes all pairs of a grid's sets are looked at: it takes milliseconds.
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

    /// One set a line, `i: a b c` or `i: {a, b, c}`, nodes numbered from 0; `#` begins a comment.
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
    /// The nodes whose permission `node` needs, in order; `node` is one of them.
    ///
    /// # Panics
    /// If there is no such node.
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

    /// Whether `member`'s permission is one that `node` needs.
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

    /// The least number of sets that a node is in.
    pub fn load_min(&self) -> usize {
        self.extent().load_min
    }

    /// The greatest number of sets that a node is in.
    pub fn load_max(&self) -> usize {
        self.extent().load_max
    }

    fn extent(&self) -> &Extent {
        self.extent.get_or_init(|| {
            let mut loads = vec![0; self.nodes];
            let (mut k_min, mut k_max) = (usize::MAX, 0);
            let mut worked_out = Vec::new();
            for node in NodeId::all(self.nodes) {
                // Not by `set`, which would keep all N sets in memory from now on.
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
        // 0 in D puts i into S_i, also when folded.
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

/// Shifts a line so that both 0 and N are on it. The points x and x + N fold together, and are both on
/// one line only; after this shift that is the line x, whose set is one of the N that are kept. So
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
    /// The row and the column of `node`. Every two sets meet, also where the last row is shorter:
    /// the sets of (r, c) and (r', c') have (r, c') and (r', c) in common, where these exist. If
    /// (r, c') does not, r is the last row and c is in it; then every row has a column c, so (r', c) exists.
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
