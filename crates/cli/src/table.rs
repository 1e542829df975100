//! Tables for a terminal.

/// A table of text: a head, then rows. Columns are as wide as their widest cell, and numbers are
/// right-aligned, with or without a unit.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Heads of the columns that a narrow terminal does without, the least important one first.
    optional: &'static [&'static str],
}

impl Table {
    pub(crate) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Table {
            rows: Vec::new(),
            optional: &[],
        };
        table.row(head);
        table
    }

    /// Sets the columns that are left out, in this order, if the terminal is too narrow.
    pub(crate) fn optional(mut self, columns: &'static [&'static str]) -> Self {
        self.optional = columns;
        self
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table without optional columns that do not fit into this width, and a last line that
    /// names them. It may still be wider if the other columns are.
    pub(crate) fn fit(&self, width: Option<usize>) -> String {
        let mut shown: Vec<usize> = (0..self.columns()).collect();
        let mut left_out = Vec::new();
        let Some(most) = width else {
            return self.render(&shown);
        };
        for &column in self.optional {
            if self.width(&shown) <= most {
                break;
            }
            let head = &self.rows[0];
            shown.retain(|&index| head.get(index).is_none_or(|name| name != column));
            left_out.push(column);
        }
        let mut text = self.render(&shown);
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            text += &format!("(not shown, for lack of width: {left_out}; --json has everything)\n");
        }
        text
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn width(&self, columns: &[usize]) -> usize {
        let widths = columns.iter().map(|&column| self.layout(column).0 + GAP);
        widths.sum::<usize>().saturating_sub(GAP)
    }

    /// The width of a column, and whether all its cells below the head are numbers.
    fn layout(&self, column: usize) -> (usize, bool) {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        let width = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
        (width, cells().skip(1).all(|cell| is_number(cell)))
    }

    fn render(&self, columns: &[usize]) -> String {
        let layout: Vec<_> = columns.iter().map(|&c| (c, self.layout(c))).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for &(column, (width, numeric)) in &layout {
                let cell = row.get(column).map_or("", String::as_str);
                line += &match numeric {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
                line += &" ".repeat(GAP);
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Spaces between two columns.
const GAP: usize = 2;

/// Returns whether a cell is a number, with or without a unit. Empty cells count as numbers.
fn is_number(cell: &str) -> bool {
    let number = cell.split(' ').next().unwrap_or_default();
    matches!(number, "" | "-") || number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["name", "count", "time", "where"]).optional(&["time", "count"]);
        table.row(["a", "10", "5 ms", "n1"]);
        table.row(["b", "-", "120 ms", "n2"]);
        table
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let wanted = "\
name  count    time  where
a        10    5 ms  n1
b         -  120 ms  n2
";
        assert_eq!(table().fit(None), wanted);
        assert_eq!(table().fit(Some(26)), wanted);
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let narrow = table().fit(Some(18));
        assert!(narrow.starts_with("name  count  where\n"), "{narrow}");
        assert!(narrow.contains("width: time;"), "{narrow}");
        let narrower = table().fit(Some(5));
        assert!(narrower.starts_with("name  where\n"), "{narrower}");
        assert!(narrower.contains("width: time, count;"), "{narrower}");
    }
}
