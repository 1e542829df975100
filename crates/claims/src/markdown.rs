//! Renders the claims as `docs/claims.md`.

use std::fmt::Write as _;

use super::comparison::Table;
use super::reproduce::page::sentences;
use super::{Examined, Verdict, by_paper};

const HEAD: &str = "\
# What the papers claim, and what holds

`soloist lab claims --markdown` writes this page, and a test compares it with a fresh run.
The claims are in our words.
Figures and the verdicts *holds*, *withstood*, *holds after repair* and *fails* are computed; where such a verdict rests on reading or counting instead, its row says so.
That a claim is open (the last three verdicts below) is our judgement.
Each claim is examined by the simulator, by a search of every interleaving, or by random runs of small clusters.
The last column is a command or a scenario that shows it; `soloist lab claims --paper P --section S` examines the claims of one section again.

- **holds**: shown by a search to the size given, by counting, by a replay or by a proof, for the printed rules; where repairs make no difference, for the repaired rules, which are the default here.
- **withstood**: the same, but measured: nothing contradicts the claim, which is neither a search nor a proof.
- **holds after repair**: not with the printed rules (`--variant as-published`), but with the repaired ones; if the evidence is a run (`lab run`), they withstood it.
- **fails**: with neither.
- **not decided**: neither shown nor refuted. A measurement that agrees with a bound, or with an order of growth, does not show it.
- **assumption**: the paper assumes it; the row says which rules need it.
- **depends on reading**: true in one reading of the paper, and false in another.

The last three say what would decide the claim.

A search visits every interleaving of a small cluster; a measurement is of the loads, delays and sizes that it names.
Unless said otherwise, delays are exponential with mean 1, a node stays inside for one delay, and seeds start at 1.
A measured mean is followed by its 99.9 % interval, as in 3.28 ± 0.02: Student's t over 10 replications, after a warm-up that passed the check of [lab.md](lab.md#how-it-measures).
This page and [reproduced.md](reproduced.md) have about 400 such intervals, so the chance that at least one of them misses its mean is about a third.
A claim is judged by the end of the interval that speaks against it, never by the mean alone.
An exact value is confirmed if the interval contains it and reaches at most 5 % to either side: a wider one is refused, because noise alone would let it contain more.
Where two algorithms are compared under the same load and seeds, they see the same demand, and the interval of their paired differences decides.
Commands with `--seeds 1` show one run from start to end: for exact counts, for maxima, and for yes or no.
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
            comparison.title,
            sentences(&comparison.note)
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
    let claims = match examined.len() {
        1 => "1 claim".to_owned(),
        many => format!("{many} claims"),
    };
    format!("{claims}: {}", parts.join(", "))
}

pub(crate) fn table(page: &mut String, head: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let mut row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    };
    row(head);
    row(&vec!["---".to_owned(); head.len()]);
    rows.for_each(|cells| row(&cells));
}
