//! A mesh: planes of rows and columns, where the first node of each plane is its head.

use std::fmt;

use super::{Plan, Shape, ShapeError, check_nodes};
use crate::NodeId;

/// A P x Q x R mesh (Chaudhuri and Karaata 1998, section 2): P rows, Q columns, R planes.
///
/// Nodes are numbered plane by plane, and row by row within a plane. The mesh need not be full: the
/// last plane may end early, and planes beyond the last node do not exist. Whatever the number of
/// nodes, every node on the way from a node to its head exists, because it has a lower number.
///
/// Only these links of the mesh are used: up and down each column, along row 0 of each plane, and
/// along the line of heads (0,0,k). They form a spanning tree. Every query takes constant time, and
/// nothing is stored per node.
///
/// ```
/// # use soloist_algorithms::{NodeId, Shape, shape::Mesh};
/// let mesh = Mesh::parse("3x3x3", 27).unwrap();
/// let node = mesh.node_at(2, 1, 1).unwrap();
/// assert_eq!(mesh.coordinates(node).to_string(), "(2,1,1)");
/// assert_eq!(mesh.towards_head(node), mesh.node_at(1, 1, 1));
/// assert_eq!(mesh.links(), 26);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mesh {
    nodes: usize,
    rows: usize,
    columns: usize,
    /// As requested; there may be fewer.
    planes: usize,
}

/// A node's position: the paper's triple (i, j, k).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coordinates {
    /// i, the row.
    pub row: usize,
    /// j, the column.
    pub column: usize,
    /// k, the plane.
    pub plane: usize,
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{},{})", self.row, self.column, self.plane)
    }
}

impl Shape for Mesh {
    const FORMS: &'static [(&'static str, &'static str)] = &[(
        "PxQxR",
        "P rows, Q columns, R planes with room for all nodes; filled plane by plane",
    )];

    fn nodes(&self) -> usize {
        self.nodes
    }

    /// The smallest cube that holds all nodes.
    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        let side = (1..)
            .find(|side: &usize| side.pow(3) >= nodes)
            .expect("cubes grow beyond any number of nodes");
        Mesh {
            nodes,
            rows: side,
            columns: side,
            planes: side,
        }
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        let parts: Vec<&str> = form.split('x').collect();
        let [rows, columns, planes] = parts[..] else {
            return Err(ShapeError::unknown::<Self>(form));
        };
        let size = |part: &str| match part.parse::<u32>() {
            Ok(size) if size >= 1 => Ok(size as usize),
            _ => Err(ShapeError::bad(
                form,
                format!("'{part}' is not a number from 1 to {}", u32::MAX),
            )),
        };
        let (rows, columns, planes) = (size(rows)?, size(columns)?, size(planes)?);
        let room = rows.saturating_mul(columns).saturating_mul(planes);
        if room < nodes {
            return Err(ShapeError::bad(
                form,
                format!("room for {room} nodes, but there are {nodes}"),
            ));
        }
        Ok(Mesh {
            nodes,
            rows,
            columns,
            planes,
        })
    }

    /// The cube, a line of heads, one plane, and some that are flat or not full.
    fn samples(nodes: usize) -> Vec<String> {
        let half = nodes.div_ceil(2);
        vec![
            Mesh::default_for(nodes).to_string(),
            format!("1x1x{nodes}"),
            format!("{half}x2x1"),
            format!("2x1x{half}"),
            format!("1x2x{nodes}"),
            format!("2x2x{}", nodes.div_ceil(4)),
        ]
    }

    fn plan(&self) -> Plan {
        let all = || NodeId::all(self.nodes);
        let places = all().map(|node| self.coordinates(node)).collect();
        let links = all().flat_map(|node| {
            let later = self.neighbours(node).filter(move |&other| other > node);
            later.map(move |other| (node, other))
        });
        Plan::Mesh(places, links.collect())
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.rows, self.columns, self.planes)
    }
}

impl Mesh {
    /// The position of a node.
    pub fn coordinates(&self, node: NodeId) -> Coordinates {
        let index = self.index_in_plane(node);
        Coordinates {
            row: index / self.columns,
            column: index % self.columns,
            plane: self.plane(node),
        }
    }

    /// The node at a position, or `None` if there is none.
    pub fn node_at(&self, row: usize, column: usize, plane: usize) -> Option<NodeId> {
        if row >= self.rows || column >= self.columns || plane >= self.planes() {
            return None;
        }
        let index = plane * self.plane_room() + row * self.columns + column;
        (index < self.nodes).then(|| NodeId::from_index(index))
    }

    /// Number of planes. The last may end early.
    pub fn planes(&self) -> usize {
        self.nodes.div_ceil(self.plane_room())
    }

    /// The number of a node's plane.
    pub fn plane(&self, node: NodeId) -> usize {
        node.index() / self.plane_room()
    }

    /// Number of nodes in a plane.
    pub fn plane_len(&self, plane: usize) -> usize {
        let before = plane.saturating_mul(self.plane_room());
        self.nodes.saturating_sub(before).min(self.plane_room())
    }

    /// A node's index in its plane; 0 is the head.
    pub fn index_in_plane(&self, node: NodeId) -> usize {
        node.index() % self.plane_room()
    }

    /// The node (0,0,k) of a plane, or `None` if the plane does not exist.
    pub fn head(&self, plane: usize) -> Option<NodeId> {
        self.node_at(0, 0, plane)
    }

    /// Whether the node is the head of its plane.
    pub fn is_head(&self, node: NodeId) -> bool {
        self.index_in_plane(node) == 0
    }

    /// The heads of the planes below and above a node's plane.
    pub fn heads_beside(&self, node: NodeId) -> [Option<NodeId>; 2] {
        let plane = self.plane(node);
        let below = plane.checked_sub(1).and_then(|plane| self.head(plane));
        [below, self.head(plane + 1)]
    }

    /// The head next to a node's plane in the direction of `other`'s plane, or `None` if both are
    /// in the same plane.
    pub fn head_towards(&self, node: NodeId, other: NodeId) -> Option<NodeId> {
        let [below, above] = self.heads_beside(node);
        match self.plane(other).cmp(&self.plane(node)) {
            std::cmp::Ordering::Less => below,
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => above,
        }
    }

    /// The next node on the way from a node to the head of its plane: up its column to row 0, then
    /// along row 0. `None` at the head.
    pub fn towards_head(&self, node: NodeId) -> Option<NodeId> {
        let Coordinates { row, column, plane } = self.coordinates(node);
        if row > 0 {
            self.node_at(row - 1, column, plane)
        } else {
            self.node_at(0, column.checked_sub(1)?, plane)
        }
    }

    /// The next node on the way from a head to a member of its plane: along row 0 to the member's
    /// column, then down that column. `None` unless `node` is on this way, before the member.
    pub fn towards_member(&self, node: NodeId, member: NodeId) -> Option<NodeId> {
        let (here, there) = (self.coordinates(node), self.coordinates(member));
        if here.plane != there.plane {
            None
        } else if here.column == there.column && here.row < there.row {
            self.node_at(here.row + 1, here.column, here.plane)
        } else if here.row == 0 && here.column < there.column {
            self.node_at(0, here.column + 1, here.plane)
        } else {
            None
        }
    }

    /// All nodes to which a node has a link.
    pub fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        let Coordinates { row, column, plane } = self.coordinates(node);
        let beside = if self.is_head(node) {
            self.heads_beside(node)
        } else {
            [None, None]
        };
        let right = self.node_at(0, column + 1, plane).filter(|_| row == 0);
        let down = self.node_at(row + 1, column, plane);
        [beside[0], self.towards_head(node), right, down, beside[1]]
            .into_iter()
            .flatten()
    }

    /// Number of links: those of a spanning tree.
    pub fn links(&self) -> usize {
        self.nodes - 1
    }

    /// Capacity of a plane in nodes.
    fn plane_room(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }
}
