//! `soloist lab claims`.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde::Serialize;
use soloist_algorithms::{Choice, Kind};
use soloist_claims::{self as claims, Claim, Examined, comparison, markdown};

use crate::table::Table;
use crate::{Verdict, output};

/// Examine the claims that the papers make about their algorithms
///
/// Every claim is examined again, by simulation or by a search of every interleaving, with the
/// rules as printed and with the repaired ones. The verdict is one of: holds (by a search, a replay
/// or a proof); withstood (measured); holds after repair, but not as printed; fails; not decided;
/// an assumption; depends on how the paper is read. The last three say what would decide the claim.
/// The claims are followed by measurements of the papers' comparisons of algorithms.
///
/// A claim that fails is a finding, not an error: the exit code is 0.
#[derive(clap::Args)]
#[command(
    after_long_help = "Examples:\n  soloist lab claims --paper raymond\n  soloist lab claims --paper raymond --section \"§8.2\"\n  soloist lab claims --markdown > docs/claims.md"
)]
pub(crate) struct Args {
    /// Examine only the claims of this paper, given by its algorithm's name or alias, without
    /// comparisons
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    paper: Option<String>,

    /// Examine only the claims of this section of the paper, such as "§8.2" or "Theorem 4 (i)"
    #[arg(long, value_name = "S", requires = "paper")]
    section: Option<String>,

    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the page docs/claims.md
    #[arg(long)]
    markdown: bool,
}

#[derive(Serialize)]
struct Page {
    claims: Vec<Examined>,
    comparisons: Vec<comparison::Table>,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let paper = self.paper.as_deref().map(paper).transpose()?;
        let mut claims = claims::all();
        claims.retain(|claim| paper.is_none_or(|paper| claim.paper == paper));
        if let Some(section) = &self.section {
            claims = of_section(claims, section)?;
        }
        let bar = output::progress_bar(claims.len() as u64, "claims");
        let claims = claims::examine(&claims, &|| bar.inc(1));
        bar.finish_and_clear();
        let comparisons = match paper {
            None => comparison::tables(),
            Some(_) => Vec::new(),
        };
        if self.json {
            output::json(&Page {
                claims,
                comparisons,
            })?;
        } else if self.markdown {
            output::text(&markdown::page(&claims, &comparisons))?;
        } else {
            output::text(&text(&claims, &comparisons))?;
        }
        Ok(Verdict::Well)
    }
}

/// The claims of a section. Fails if there are none.
fn of_section(claims: Vec<Claim>, section: &str) -> Result<Vec<Claim>> {
    let mut known: Vec<_> = claims.iter().map(|claim| claim.section).collect();
    let found: Vec<_> = claims.into_iter().filter(|c| c.is_in(section)).collect();
    if found.is_empty() {
        known.dedup();
        bail!(
            "no claim in section '{section}': use one of {}",
            known.join("; ")
        );
    }
    Ok(found)
}

/// The paper with this name or alias.
pub(super) fn paper(given: &str) -> Result<Kind> {
    let kind = Choice::parse(given, "").ok().map(|choice| choice.kind);
    match kind {
        Some(kind) if claims::PAPERS.contains(&kind) => Ok(kind),
        _ => {
            let papers = claims::PAPERS.map(|paper| paper.info().name);
            bail!("no paper '{given}': use one of {}", papers.join(", "))
        }
    }
}

fn text(claims: &[Examined], comparisons: &[comparison::Table]) -> String {
    let mut page = String::new();
    for (paper, claims) in claims::by_paper(claims) {
        let _ = writeln!(page, "{}", paper.info().paper);
        let _ = writeln!(page, "{paper}: {}\n", markdown::count(claims));
        for claim in claims {
            let finding = &claim.finding;
            let _ = writeln!(page, "  {}: {}", claim.section, claim.claimed);
            let _ = writeln!(page, "      {}: {}", finding.verdict.text(), finding.found);
            if let Some(by) = &finding.decided_by {
                let _ = writeln!(page, "      to decide it: {by}");
            }
            let _ = writeln!(page, "      {}\n", finding.evidence);
        }
    }
    for comparison in comparisons {
        let mut table = Table::new(&comparison.head);
        comparison.rows.iter().for_each(|row| table.row(row));
        let table = table.fit(output::width());
        let _ = writeln!(page, "{}\n{}\n\n{table}", comparison.title, comparison.note);
    }
    page
}
