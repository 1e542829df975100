//! Renders the claims as `docs/claims.md`.

use std::fmt::Write as _;

use super::comparison::Table;
use super::{Examined, Verdict, by_paper};

const HEAD: &str = "\
# What the papers claim, and what is so

`soloist lab claims --markdown` writes this page; a test compares it with a fresh run. What is claimed is in our words;
verdicts and figures are computed, never written down. Each claim is examined by the simulator, by a search of every
interleaving, or by clusters stepped by chance; the last column is a command or a scenario that shows it.

- **holds**: it is so, by a search to the size given, by a replay or by a proof, and by the printed rules; of what repairs do not touch, by the repaired ones that are the default here.
- **withstood**: the same, but measured: nothing speaks against it, which is neither a search nor a proof.
- **holds after repair**: not by the printed rules (`--variant as-published`), but by the repaired ones.
- **fails**: by neither.
- **not decided**: neither shown nor refuted. A measurement that agrees with a bound, or with an order of growth, does not show it.
- **assumption**: the paper assumes it; the row says which rules need it.
- **depends on reading**: so in one reading of the paper, and not in another.

The last three say what would decide the claim.

A search visits every interleaving of a small cluster; a measurement is of the loads, delays and sizes it names.
Unless said otherwise: exponential delays of mean 1, one delay inside, seed 1.
";

/// Renders the whole page.
pub fn page(examined: &[Examined], tables: &[Table]) -> String {
    let mut page = HEAD.to_owned();
    for (paper, claims) in by_paper(examined) {
        let _ = write!(page, "\n## {}\n\n", paper.info().paper);
        let _ = writeln!(page, "`{paper}`: {}.\n", count(claims));
        let head = ["where", "claimed", "verdict", "found", "evidence"];
        let rows = claims.iter().map(|examined| {
            let finding = &examined.finding;
            vec![
                examined.section.to_owned(),
                examined.claimed.to_owned(),
                format!("**{}**", finding.verdict.text()),
                match &finding.decided_by {
                    None => finding.found.clone(),
                    Some(by) => format!("{}. *To decide it*: {by}", finding.found),
                },
                format!("`{}`", finding.evidence),
            ]
        });
        table(&mut page, &head.map(str::to_owned), rows);
    }
    if !tables.is_empty() {
        page.push_str("\n## Comparison tables\n");
    }
    for comparison in tables {
        let _ = write!(
            page,
            "\n### {}\n\n{}\n\n",
            comparison.title, comparison.note
        );
        table(&mut page, &comparison.head, comparison.rows.iter().cloned());
    }
    page
}

/// Summary such as "12 claims: 10 hold, 1 holds after repair, 1 fails".
pub fn count(examined: &[Examined]) -> String {
    let of = |verdict| {
        examined
            .iter()
            .filter(move |e| e.finding.verdict == verdict)
    };
    let count = |verdict, one: &str, more: &str| match of(verdict).count() {
        0 => None,
        1 => Some(format!("1 {one}")),
        many => Some(format!("{many} {more}")),
    };
    let parts = [
        count(Verdict::Holds, "holds", "hold"),
        count(Verdict::Withstood, "withstood", "withstood"),
        count(
            Verdict::HoldsAfterRepair,
            "holds after repair",
            "hold after repair",
        ),
        count(Verdict::Fails, "fails", "fail"),
        count(Verdict::NotDecided, "is not decided", "are not decided"),
        count(Verdict::Assumption, "is an assumption", "are assumptions"),
        count(
            Verdict::DependsOnReading,
            "depends on reading",
            "depend on reading",
        ),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("{} claims: {}", examined.len(), parts.join(", "))
}

fn table(page: &mut String, head: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let mut row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    };
    row(head);
    row(&vec!["---".to_owned(); head.len()]);
    rows.for_each(|cells| row(&cells));
}
