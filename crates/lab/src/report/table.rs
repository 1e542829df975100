//! Tables for a terminal.

use std::fmt;

/// A table of text: a head, then rows. Columns are as wide as their widest cell, and numbers are
/// right-aligned.
///
/// ```
/// # use soloist_lab::report::Table;
/// let mut table = Table::new(["name", "count"]);
/// table.row(["a", "10"]);
/// assert_eq!(table.to_string(), "name  count\na        10\n");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Table { rows: Vec::new() };
        table.row(head);
        table
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The width of a column, and whether all its cells below the head are numbers.
    fn layout(&self, column: usize) -> (usize, bool) {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        let width = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let numeric = cells()
            .skip(1)
            .all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok());
        (width, numeric)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout: Vec<_> = (0..self.columns()).map(|c| self.layout(c)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, &(width, numeric)) in row.iter().zip(&layout) {
                let padded = if numeric {
                    format!("{cell:>width$}  ")
                } else {
                    format!("{cell:<width$}  ")
                };
                line.push_str(&padded);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
