//! The complete graph.

use std::fmt;

use super::{Plan, Shape, ShapeError, check_nodes};

/// The complete graph: any node may send to any other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complete {
    nodes: usize,
}

impl Shape for Complete {
    const FORMS: &'static [(&'static str, &'static str)] =
        &[("complete", "any node may send to any other")];

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn default_for(nodes: usize) -> Self {
        check_nodes(nodes).expect("a possible number of nodes");
        Complete { nodes }
    }

    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError> {
        check_nodes(nodes)?;
        match form {
            "complete" => Ok(Complete { nodes }),
            _ => Err(ShapeError::unknown::<Self>(form)),
        }
    }

    fn samples(_nodes: usize) -> Vec<String> {
        vec!["complete".to_owned()]
    }

    fn plan(&self) -> Plan {
        Plan::Complete
    }
}

impl fmt::Display for Complete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("complete")
    }
}
