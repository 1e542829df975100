//! `soloist doctor`.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_client::api::dashboard::{Level, Overview, Problem};

use crate::connect::Query;
use crate::exit::{CRITICAL, FAILED};
use crate::show::{printable, time, wrapped};
use crate::{Verdict, help, output};

/// Say what is wrong with the cluster, and what to do
///
/// Asks the leader and all members through one node, and lists problems, the most important first:
/// keepers that are down or have no leader, a change of epoch that lasts, nodes that were evicted,
/// leases that are not renewed, clocks and links, certificates that expire, clients that wait
/// unusually long. docs/operations.md has an entry for each code. Then it lists what is well. It
/// changes nothing.
#[derive(clap::Args)]
#[command(after_long_help = help::asking(
    &format!("0 all is well; {FAILED} warnings; {CRITICAL} a problem is critical"),
    "the node that was asked has no lease, so the state of the cluster is unknown",
))]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let ask = async |client: soloist_client::Client| client.overview().await;
        let overview = self.query.ask(ask, page)?;
        Ok(match overview.level {
            Level::Ok => Verdict::Well,
            Level::Warning => Verdict::Failed,
            Level::Critical => Verdict::Code(CRITICAL),
            _ => output::verdict(Some(&printable(&overview.detail)), Verdict::Failed),
        })
    }
}

fn page(overview: &Overview) -> String {
    let width = output::width();
    let mut page = format!(
        "{}\n{}\n",
        printable(&overview.verdict),
        wrapped(&printable(&overview.detail), 0, width)
    );
    for (problem, number) in overview.problems.iter().zip(1..) {
        let _ = write!(page, "\n{}", entry(overview, problem, number, width));
    }
    if !overview.well.is_empty() {
        page += "\nExamined, and well:\n";
    }
    for line in &overview.well {
        let _ = writeln!(page, "  {}", printable(line));
    }
    let _ = writeln!(
        page,
        "\nSeen from {}, epoch {}.",
        printable(&overview.from),
        overview.epoch
    );
    page
}

fn entry(overview: &Overview, problem: &Problem, number: usize, width: Option<usize>) -> String {
    let level = match problem.level {
        Level::Critical => "critical",
        _ => "warning",
    };
    let age = overview.at_ms.saturating_sub(problem.since_ms);
    let unseen = overview.at_ms.saturating_sub(problem.last_seen_ms);
    let since = match age {
        _ if problem.is_unexamined(overview.at_ms) => {
            format!("; not examined, last seen {} ago", time(unseen))
        }
        0..1_000 => String::new(),
        _ => format!(", for {}", time(age)),
    };
    let mut entry = format!(
        "{number}. {} ({level}: {}{since})\n   {}\n",
        output::bold(&printable(&problem.title)),
        problem.code,
        wrapped(
            &printable(&problem.text),
            3,
            width.map(|width| width.saturating_sub(3))
        )
    );
    for advice in &problem.commands {
        let (label, command) = (printable(&advice.label), printable(&advice.command));
        let _ = writeln!(entry, "   {label}: {command}");
    }
    entry
}
