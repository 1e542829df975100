//! The papers' comparisons of algorithms, measured.

use serde::Serialize;

/// A table of a paper, with measured figures beside the claimed ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    /// What is compared, and which table or section of which paper does so.
    pub title: String,
    /// The load, the sizes and whatever else it takes to read it.
    pub note: String,
    /// The names of the columns.
    pub head: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// All tables, computed afresh.
pub fn tables() -> Vec<Table> {
    Vec::new()
}
