//! `soloist lab check --most`.

use anyhow::Result;
use soloist_lab::search::{Aim, Case, WorstReport, WorstVerdict};

use super::check::describe_setting;
use super::searched;
use crate::{Verdict, output};

/// Searches for the worst case and prints it.
pub(super) fn run(case: &Case, aim: Aim, json: bool) -> Result<Verdict> {
    let report = searched::worst(case, aim)?;
    match json {
        true => output::json(&report)?,
        false => output::text(&describe(&report))?,
    }
    Ok(match report.verdict {
        WorstVerdict::NotExhausted => Verdict::Unknown,
        WorstVerdict::Broken => Verdict::Failed,
        WorstVerdict::Most | WorstVerdict::PerEntry | WorstVerdict::Unbounded => Verdict::Well,
    })
}

/// A scenario with the result as its first comment, so that `lab replay` takes the whole output.
fn describe(report: &WorstReport) -> String {
    let setting = describe_setting(&report.setting);
    let what = report.what.as_deref().unwrap_or_default();
    let most = report.most.unwrap_or_default();
    let entries = report.entries.unwrap_or_default();
    let states = report.states.unwrap_or_default();
    let per_entry = most as f64 / entries.max(1) as f64;
    let searched = format!("{states} states, all of them searched");
    let found = match report.verdict {
        WorstVerdict::NotExhausted => {
            return format!(
                "{setting}: not exhausted: {what}\n{states} states were searched; there are more. Nothing is \
                 claimed: allow more with --max-states, or search a smaller case\n"
            );
        }
        WorstVerdict::Broken => format!("BROKEN: {what}"),
        WorstVerdict::Unbounded => format!("no bound on {}; {searched}", report.aim),
        WorstVerdict::Most if report.aim == Aim::Overtaking.name() => {
            format!("a waiter is overtaken at most {most} times; {searched}")
        }
        WorstVerdict::Most if entries == 0 => {
            format!("no complete run has an entry; {searched}")
        }
        WorstVerdict::Most => format!(
            "at most {most}/{entries} = {per_entry:.3} messages per entry of a complete run; {searched}"
        ),
        WorstVerdict::PerEntry => format!(
            "at most {most}/{entries} = {per_entry:.3} messages per entry in the long run; {searched}"
        ),
    };
    let transcript = report.transcript.as_deref().unwrap_or_default();
    format!("# {setting}: {found}\n{transcript}")
}
