//! How nodes are arranged: who is whose neighbour, whose permission whom needs.

use std::fmt;

/// The arrangement of a cluster's nodes that an algorithm works on. Made once, shared by all
/// nodes and locks of the cluster. Its `Display` form is what [`parse`](Shape::parse) reads,
/// where it was made that way.
pub trait Shape: fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    /// The forms that [`parse`](Shape::parse) reads, each with a line of explanation.
    const FORMS: &'static [(&'static str, &'static str)];

    /// How many nodes there are; at least 1.
    fn nodes(&self) -> usize;

    /// The paper's own shape nearest to this many nodes.
    ///
    /// # Panics
    /// If `nodes` is 0 or beyond [`NODES_MAX`].
    fn default_for(nodes: usize) -> Self;

    /// Reads one of the forms for a cluster of `nodes`.
    fn parse(form: &str, nodes: usize) -> Result<Self, ShapeError>;

    /// Some forms that [`parse`](Shape::parse) accepts for this many nodes, telling ones: for swarms.
    fn samples(nodes: usize) -> Vec<String>;

    /// Reads a shape that is listed in full (the contents of a file).
    fn from_listing(_text: &str, _nodes: usize) -> Result<Self, ShapeError> {
        Err(ShapeError::NoListing)
    }
}

/// The largest cluster: a tree of so many nodes takes a few gigabytes.
pub const NODES_MAX: usize = 1 << 24;

/// Refuses a cluster of no nodes, or of too many.
pub fn check_nodes(nodes: usize) -> Result<(), ShapeError> {
    if (1..=NODES_MAX).contains(&nodes) {
        Ok(())
    } else {
        Err(ShapeError::Nodes(nodes))
    }
}

/// Why a shape cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No nodes, or too many.
    #[error("{0} nodes: a cluster has 1 to {NODES_MAX}")]
    Nodes(usize),
    /// A form that is not known.
    #[error("unknown shape '{form}': use {allowed}")]
    Unknown {
        /// What was given.
        form: String,
        /// The forms there are.
        allowed: String,
    },
    /// A form with a parameter that cannot be.
    #[error("shape '{form}': {reason}")]
    Bad {
        /// What was given.
        form: String,
        /// Why it cannot be, with the limit.
        reason: String,
    },
    /// A listing that makes no such shape.
    #[error("{0}")]
    Listing(String),
    /// A listing for an algorithm that has only one shape.
    #[error("this algorithm's shape cannot be read from a file")]
    NoListing,
}

impl ShapeError {
    /// The form is none of those of `S`.
    pub fn unknown<S: Shape>(form: &str) -> Self {
        let allowed: Vec<_> = S::FORMS.iter().map(|(form, _)| *form).collect();
        ShapeError::Unknown {
            form: form.to_owned(),
            allowed: allowed.join(", "),
        }
    }

    /// The form's parameter cannot be.
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
