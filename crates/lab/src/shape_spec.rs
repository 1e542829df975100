//! A shape as the user specifies it, before the algorithm is known.

use soloist_algorithms::shape::check_nodes;
use soloist_algorithms::{Shape, ShapeError};

/// Specification of a shape.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ShapeSpec {
    /// Unspecified: the paper's own shape, as close as possible to the number of nodes.
    #[default]
    Default,
    /// One of the shape's forms, such as `kary:2`.
    Form(String),
    /// The complete listing, as in a file.
    Listing(String),
}

impl ShapeSpec {
    /// Builds the shape for a cluster of `nodes`.
    pub fn build<S: Shape>(&self, nodes: usize) -> Result<S, ShapeError> {
        check_nodes(nodes)?;
        match self {
            ShapeSpec::Default => Ok(S::default_for(nodes)),
            ShapeSpec::Form(form) => S::parse(form, nodes),
            ShapeSpec::Listing(text) => S::from_listing(text, nodes),
        }
    }
}
