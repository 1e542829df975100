//! A torus: rows and columns that form rings.

use std::fmt;

use super::{Plan, Shape, ShapeError, check_nodes};
use crate::NodeId;

/// A torus of rows and columns, numbered row by row. May be ragged, so any number of nodes fits:
/// rows differ in length by at most one, the longer ones first.
///
/// A column passes through every row. In a row that is too short for it, it passes through the node
/// at the column's number modulo the row's length, so that no row is ever left out.
///
/// ```
/// # use soloist_algorithms::{NodeId, Shape, shape::Torus};
/// let torus = Torus::parse("2x3", 5).unwrap(); // 0 1 2 over 3 4
/// assert_eq!(torus.at(1, 2), NodeId::new(3));
/// assert_eq!(torus.right(NodeId::new(4)), NodeId::new(3));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torus {
    nodes: usize,
    rows: usize,
    columns: usize,
    /// Number of rows that have all columns; the others have one less.
    full_rows: usize,
}

impl Torus {
    fn new(nodes: usize, rows: usize) -> Self {
        let columns = nodes.div_ceil(rows);
        Torus {
            nodes,
            rows,
            columns,
            full_rows: rows - (rows * columns - nodes),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the length of the longest row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of nodes in a row.
    pub fn row_length(&self, row: usize) -> usize {
        if row < self.full_rows {
            self.columns
        } else {
            self.columns - 1
        }
    }

    /// Index of a row's first node.
    fn row_start(&self, row: usize) -> usize {
        row * self.columns - row.saturating_sub(self.full_rows)
    }

    /// The row of a node, and its index in the row.
    pub fn position(&self, node: NodeId) -> (usize, usize) {
        let in_full_rows = self.full_rows * self.columns;
        let index = node.index();
        if index < in_full_rows {
            (index / self.columns, index % self.columns)
        } else {
            let (rest, length) = (index - in_full_rows, self.columns - 1);
            (self.full_rows + rest / length, rest % length)
        }
    }

    /// The node at which a column crosses a row.
    pub fn at(&self, row: usize, column: usize) -> NodeId {
        NodeId::from_index(self.row_start(row) + column % self.row_length(row))
    }

    /// The next node in the same row.
    pub fn right(&self, node: NodeId) -> NodeId {
        let (row, place) = self.position(node);
        self.at(row, place + 1)
    }

    /// The next row.
    pub fn row_below(&self, row: usize) -> usize {
        (row + 1) % self.rows
    }
}

impl Shape for Torus {
    const FORMS: &'static [(&'static str, &'static str)] = &[(
        "RxC",
        "R rows of C nodes; for any N, the last rows may be one shorter",
    )];

    fn nodes(&self) -> usize {
        self.nodes
    }

    /// As square as possible.
    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        let root = nodes.isqrt();
        // The nearer of the two squares, so that a square number of nodes gets its square.
        let rows = if nodes - root * root > root {
            root + 1
        } else {
            root
        };
        Torus::new(nodes, rows)
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        let sides = form.split_once('x').and_then(|(rows, columns)| {
            let sides: (usize, usize) = (rows.parse().ok()?, columns.parse().ok()?);
            Some(sides)
        });
        let Some((rows, columns)) = sides else {
            return Err(ShapeError::unknown::<Self>(form));
        };
        if !(1..=nodes).contains(&rows) {
            let reason = format!("{nodes} nodes make 1 to {nodes} rows, not {rows}");
            return Err(ShapeError::bad(form, reason));
        }
        let needed = nodes.div_ceil(rows);
        if columns != needed {
            let reason =
                format!("{nodes} nodes in {rows} rows need {needed} columns, not {columns}");
            return Err(ShapeError::bad(form, reason));
        }
        Ok(Torus::new(nodes, rows))
    }

    /// The squarest one, a row, a column, and flat ones.
    fn samples(nodes: usize) -> Vec<String> {
        let square = Torus::default_for(nodes).rows;
        let rows = [square, 1, nodes, square.div_ceil(2), nodes.min(2)];
        rows.iter()
            .map(|&rows| Torus::new(nodes, rows).to_string())
            .collect()
    }

    fn plan(&self) -> Plan {
        Plan::Torus((0..self.rows).map(|row| self.row_length(row)).collect())
    }
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_place_and_every_column_crosses_every_row() {
        for nodes in 1..=60 {
            for rows in 1..=nodes {
                let torus = Torus::new(nodes, rows);
                let lengths = (0..rows).map(|row| torus.row_length(row));
                assert_eq!(lengths.clone().sum::<usize>(), nodes);
                assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
                for node in NodeId::all(nodes) {
                    let (row, place) = torus.position(node);
                    assert!(place < torus.row_length(row));
                    assert_eq!(torus.at(row, place), node);
                    assert_eq!(torus.position(torus.right(node)).0, row);
                }
                // Every node lies on a column.
                let crossed = |node| {
                    let row = torus.position(node).0;
                    (0..torus.columns()).any(|column| torus.at(row, column) == node)
                };
                assert!(NodeId::all(nodes).all(crossed));
            }
        }
    }

    #[test]
    fn the_default_is_as_square_as_can_be() {
        for (nodes, form) in [
            (1, "1x1"),
            (2, "1x2"),
            (3, "2x2"),
            (9, "3x3"),
            (10, "3x4"),
            (25, "5x5"),
        ] {
            assert_eq!(Torus::default_for(nodes).to_string(), form, "{nodes} nodes");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_the_numbers() {
        let refused = |form: &str, nodes| Torus::parse(form, nodes).unwrap_err().to_string();
        assert!(refused("3x3", 10).contains("10 nodes in 3 rows need 4 columns, not 3"));
        assert!(refused("0x3", 3).contains("not 0"));
        assert!(refused("4x1", 3).contains("not 4"));
        assert!(refused("square", 4).contains("use RxC"));
        assert!(refused("99999999999999999999x2", 4).contains("use RxC"));
    }
}
