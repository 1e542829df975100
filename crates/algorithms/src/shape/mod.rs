//! Topologies: which nodes are neighbours, and whose permission each node needs.

use std::fmt;

use crate::NodeId;

/// The topology of a cluster that an algorithm works on. Built once and shared by all nodes and
/// locks of the cluster. If it was built by [`parse`](Shape::parse), its `Display` form can be
/// parsed again.
pub trait Shape: fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    /// The forms that [`parse`](Shape::parse) accepts, each with a one-line description.
    const FORMS: &'static [(&'static str, &'static str)];

    /// Number of nodes; at least 1.
    fn nodes(&self) -> usize;

    /// The paper's own shape that is nearest to this number of nodes.
    ///
    /// # Panics
    /// If `nodes` is 0 or beyond [`NODES_MAX`].
    fn default_for(nodes: usize) -> Self;

    /// Parses one of the forms, for a cluster of `nodes` nodes.
    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError>;

    /// Representative forms that [`parse`](Shape::parse) accepts for this number of nodes, for
    /// swarms.
    fn samples(nodes: usize) -> Vec<String>;

    /// Parses a shape that is listed in full (the contents of a file).
    fn from_listing(_text: &str, _nodes: usize) -> Result<Self, ShapeError> {
        Err(ShapeError::NoListing)
    }

    /// The structure of the shape, for programs that draw it.
    fn plan(&self) -> Plan;
}

/// The structure of a shape.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Plan {
    /// Any node may send to any other.
    Complete,
    /// Node i sends to node i+1, the last to node 0.
    Ring,
    /// The parent of each node; node 0 is the root and its own parent.
    Tree(Vec<NodeId>),
    /// The lengths of rows that form rings, as columns do. Nodes are numbered row by row.
    Torus(Vec<usize>),
    /// The place of each node, and the links in use.
    Mesh(Vec<Coordinates>, Vec<(NodeId, NodeId)>),
    /// The set of each node: whose permission it needs.
    Quorums(Vec<Vec<NodeId>>),
}

/// The largest cluster: a tree of this many nodes takes a few gigabytes.
pub const NODES_MAX: usize = 1 << 24;

/// Refuses a cluster without nodes or with too many.
pub fn check_nodes(nodes: usize) -> Result<(), ShapeError> {
    if (1..=NODES_MAX).contains(&nodes) {
        Ok(())
    } else {
        Err(ShapeError::Nodes(nodes))
    }
}

/// The reason for refusing a shape.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No nodes, or too many.
    #[error("{0} nodes: a cluster has 1 to {NODES_MAX}")]
    Nodes(usize),
    /// An unknown form.
    #[error("unknown shape '{form}': use {allowed}")]
    Unknown {
        /// The given form.
        form: String,
        /// The known forms.
        allowed: String,
    },
    /// A form with an invalid parameter.
    #[error("shape '{form}': {reason}")]
    Bad {
        /// The given form.
        form: String,
        /// Why it is invalid, with the limit.
        reason: String,
    },
    /// A listing that does not describe such a shape.
    #[error("{0}")]
    Listing(String),
    /// A listing for an algorithm that has only one shape.
    #[error("this algorithm's shape cannot be read from a file")]
    NoListing,
}

impl ShapeError {
    /// Builds [`ShapeError::Unknown`] with the forms of `S`.
    pub fn unknown<S: Shape>(form: &str) -> Self {
        let allowed: Vec<_> = S::FORMS.iter().map(|(form, _)| *form).collect();
        ShapeError::Unknown {
            form: form.to_owned(),
            allowed: allowed.join(", "),
        }
    }

    /// Builds [`ShapeError::Bad`].
    pub fn bad(form: &str, reason: impl Into<String>) -> Self {
        ShapeError::Bad {
            form: form.to_owned(),
            reason: reason.into(),
        }
    }
}

mod complete;
mod mesh;
mod quorum;
mod ring;
mod torus;
mod tree;

pub use complete::Complete;
pub use mesh::{Coordinates, Mesh};
pub use quorum::Quorums;
pub use ring::Ring;
pub use torus::Torus;
pub use tree::Tree;
