//! A shape as a user gives it, before it is known which algorithm it is for.

use soloist_algorithms::shape::check_nodes;
use soloist_algorithms::{Shape, ShapeError};

/// How a shape was given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ShapeSpec {
    /// Not at all: the paper's own shape nearest to the number of nodes.
    #[default]
    Default,
    /// By one of its forms, such as `kary:2`.
    Form(String),
    /// In full: what a file contains.
    Listing(String),
}

impl ShapeSpec {
    /// The shape, for a cluster of `nodes`.
    pub fn build<S: Shape>(&self, nodes: usize) -> Result<S, ShapeError> {
        check_nodes(nodes)?;
        match self {
            ShapeSpec::Default => Ok(S::default_for(nodes)),
            ShapeSpec::Form(form) => S::parse(form, nodes),
            ShapeSpec::Listing(text) => S::from_listing(text, nodes),
        }
    }
}
