//! A one-way ring.

use std::fmt;

use super::{Plan, Shape, ShapeError, check_nodes};
use crate::NodeId;

/// A one-way ring: node i sends only to its right neighbour, node i+1, and the last node to node 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    nodes: usize,
}

impl Ring {
    /// The node that `node` sends to, or `node` itself if it is the only one.
    pub fn right(&self, node: NodeId) -> NodeId {
        let next = node.index() + 1;
        NodeId::from_index(if next < self.nodes { next } else { 0 })
    }
}

impl Shape for Ring {
    const FORMS: &'static [(&'static str, &'static str)] =
        &[("ring", "node i sends to node i+1, the last to node 0")];

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        Ring { nodes }
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        match form {
            "ring" => Ok(Ring { nodes }),
            _ => Err(ShapeError::unknown::<Self>(form)),
        }
    }

    fn samples(_nodes: usize) -> Vec<String> {
        vec!["ring".to_owned()]
    }

    fn plan(&self) -> Plan {
        Plan::Ring
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ring")
    }
}
