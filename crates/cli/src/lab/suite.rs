//! `soloist lab suite`.

use anyhow::Result;
use serde::Serialize;
use soloist_lab::search::{Verdict as Found, suite};

use super::searched::{self, Timed};
use crate::table::Table;
use crate::{Verdict, output};

/// Search the cases on which the claims about the algorithms rest
///
/// Repaired rules must hold in every case, and the rules as printed must fail as expected. Each
/// case is printed on stderr when it ends, and the table of all cases at the end. Exit code 1 if
/// one case has another outcome.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Include the cases that take many minutes and up to 20 GB of memory
    #[arg(long)]
    long: bool,

    /// Search only the cases of this algorithm
    #[arg(long, short, value_name = "A")]
    algorithm: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print the table of docs/searched.md
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    timed: Timed,
    expected: Found,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let chosen = self.algorithm.as_deref();
        let chosen = chosen.map(|name| soloist_algorithms::Choice::parse(name, ""));
        let chosen = chosen.transpose()?.map(|choice| choice.kind);
        let mut list = suite::list();
        list.retain(|listed| {
            let kind = listed.case.choice.kind;
            (self.long || !listed.long) && chosen.is_none_or(|chosen| chosen == kind)
        });
        let mut rows = Vec::new();
        let cases = list.len();
        for (listed, number) in list.into_iter().zip(1..) {
            let mut timed = searched::search(&listed.case)?;
            timed.report.transcript = None;
            let expected = listed.expected;
            let row = Row { timed, expected };
            // Cases that ended are not lost if the suite is interrupted.
            let line = format!("{number}/{cases}  {}", cells(&row).join("  "));
            output::complain(line.trim_end());
            rows.push(row);
        }
        match (self.json, self.markdown) {
            (true, _) => output::json(&rows)?,
            (false, true) => output::text(&markdown(&rows))?,
            (false, false) => output::text(&table(&rows))?,
        }
        let well = rows
            .iter()
            .all(|row| row.timed.report.verdict == row.expected);
        Ok(Verdict::of(well))
    }
}

fn cells(row: &Row) -> Vec<String> {
    let Row { timed, expected } = row;
    let report = &timed.report;
    let mut cells = suite::row(report).to_vec();
    if report.verdict != *expected {
        cells[5] += &format!(" (NOT {})", expected.text());
    }
    let rate = |rate: Option<f64>| rate.map_or(String::new(), |rate| format!("{:.2}", rate / 1e6));
    cells.push(format!("{:.2}", timed.total_seconds));
    cells.push(rate(timed.states_per_second));
    cells.push(rate(
        timed
            .graph_states_per_second
            .filter(|_| report.endless_runs),
    ));
    cells
}

/// Column heads. The last three are total seconds, and million states per second of the two passes.
fn head() -> Vec<&'static str> {
    let mut head = suite::HEAD.to_vec();
    head.extend(["seconds", "safety M/s", "steps M/s"]);
    head
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(head()).optional(&["steps M/s", "safety M/s", "seconds"]);
    rows.iter().for_each(|row| table.row(cells(row)));
    table.fit(output::width())
}

fn markdown(rows: &[Row]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head().into_iter().map(str::to_owned).collect());
    text += "|---|--:|---|---|---|---|--:|--:|--:|--:|\n";
    rows.iter().for_each(|row| text += &line(cells(row)));
    text
}
