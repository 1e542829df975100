//! `soloist lab suite`.

use anyhow::Result;
use serde::Serialize;
use soloist_lab::check::{Report, Verdict as Found, suite};
use soloist_lab::report::Table;

use super::searched::{self, Timed};
use crate::{Verdict, output};

/// Search the list of cases that the claims about the algorithms rest on
///
/// Repaired rules must hold in every one; printed ones must fail as they are known to. Exit code 1 if one comes out
/// otherwise.
#[derive(clap::Args)]
pub struct Args {
    /// Also the cases that take many minutes and up to 20 GB of memory
    #[arg(long)]
    long: bool,

    /// Only the cases of this algorithm
    #[arg(long, short, value_name = "A")]
    algorithm: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    timed: Timed,
    expected: Found,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let chosen = self.algorithm.as_deref();
        let chosen = chosen.map(|name| soloist_algorithms::Choice::parse(name, ""));
        let chosen = chosen.transpose()?.map(|choice| choice.kind);
        let list = suite::list().into_iter().filter(|listed| {
            let kind = listed.case.choice.kind;
            (self.long || !listed.long) && chosen.is_none_or(|chosen| chosen == kind)
        });
        let mut rows = Vec::new();
        for listed in list {
            let mut timed = searched::search(&listed.case)?;
            timed.report.transcript = None;
            let expected = listed.expected;
            rows.push(Row { timed, expected });
        }
        if self.json {
            output::json(&rows)?;
        } else {
            output::text(&table(&rows).to_string())?;
        }
        let well = rows
            .iter()
            .all(|row| row.timed.report.verdict == row.expected);
        Ok(Verdict::of(well))
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "algorithm",
        "nodes",
        "shape",
        "channels",
        "requests",
        "verdict",
        "states",
        "seconds",
        "safety/s",
        "steps/s",
    ]);
    for Row { timed, expected } in rows {
        let report = &timed.report;
        let verdict = match report.verdict == *expected {
            true => report.verdict.text().to_owned(),
            false => format!("{} (NOT {})", report.verdict.text(), expected.text()),
        };
        let rate =
            |rate: Option<f64>| rate.map_or(String::new(), |rate| format!("{:.2}M", rate / 1e6));
        let holds = report.verdict == Found::Holds;
        table.row([
            label(report),
            report.nodes.to_string(),
            report.shape.clone(),
            report.channels.clone(),
            requests(report),
            verdict,
            report
                .states
                .map_or(String::new(), |states| states.to_string()),
            format!("{:.2}", timed.total_seconds),
            rate(timed.states_per_second.filter(|_| holds)),
            rate(timed.graph_states_per_second.filter(|_| holds)),
        ]);
    }
    table
}

fn label(report: &Report) -> String {
    match report.variant.as_str() {
        "" => report.algorithm.to_owned(),
        variant => format!("{} ({variant})", report.algorithm),
    }
}

/// How often who asks, and the crashes.
fn requests(report: &Report) -> String {
    let mut text = match report.requests {
        Some(requests) => requests.to_string(),
        None => "endless".to_owned(),
    };
    if report.requesters.len() < report.nodes {
        let nodes: Vec<_> = report.requesters.iter().map(usize::to_string).collect();
        text += &format!(" by {}", nodes.join(","));
    }
    if report.crashes > 0 {
        text += &format!(", {} crashes", report.crashes);
    }
    text
}
