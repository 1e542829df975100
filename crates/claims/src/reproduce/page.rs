//! The page docs/reproduced.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Content, Item, Reproduced};
use crate::markdown::table;

const HEAD: &str = "\
# Reproduced

Figures, tables and formulas of the five papers, made by `soloist lab reproduce`.

A figure that shows a run is replayed as a scenario.
A formula is drawn as a line, with measured means and their intervals as points; counted values have no interval.
The verdicts are those of [claims.md](claims.md): *withstood* is measured, *holds* is counted, replayed or searched.
An item that judges several claims has the weakest of their verdicts, and where the claim *holds after repair*, a replay of rules as printed says *fails* and one of the repaired rules *holds*; a test compares both pages.
This page and its pictures are written by:

```sh
soloist lab reproduce --all --out docs/reproduced --markdown > docs/reproduced.md
```

`cargo nextest run -p soloist-claims --test reproduced` compares them with a fresh run at the same seeds.
";

/// Renders the page. `folder` is where the pictures are, seen from the page.
pub fn page(made: &[(Item, Reproduced)], folder: &str) -> String {
    let mut page = HEAD.to_owned();
    for papers in made.chunk_by(|one, other| one.0.paper == other.0.paper) {
        let _ = write!(page, "\n## {}\n", papers[0].0.paper.info().paper);
        for (item, reproduced) in papers {
            page.push_str(&section(item, reproduced, folder));
        }
    }
    page
}

/// Renders the section of one item.
pub fn section(item: &Item, reproduced: &Reproduced, folder: &str) -> String {
    let mut page = String::new();
    let finding = &reproduced.finding;
    let _ = write!(page, "\n### {}: {}\n\n", item.place(), item.title);
    let _ = writeln!(
        page,
        "**{}**: {}.\n",
        finding.verdict.text(),
        sentences(&finding.found)
    );
    match &reproduced.content {
        Content::Chart(chart) => {
            let name = item.name();
            let _ = writeln!(
                page,
                "![{}]({folder}/{name}.svg)\n\nData: [{name}.csv]({folder}/{name}.csv).",
                chart.title
            );
        }
        Content::Table(shown) => {
            let name = item.name();
            let _ = writeln!(page, "{}\n", sentences(&shown.note));
            table(&mut page, &shown.head, shown.rows.iter().cloned());
            let _ = writeln!(page, "\nData: [{name}.csv]({folder}/{name}.csv).");
        }
        Content::Replays(replays) => {
            for replay in replays {
                let name = replay.file.rsplit('/').next().unwrap_or_default();
                let _ = writeln!(page, "Scenario: [{name}](../{}).", replay.file);
            }
        }
    }
    let sections: BTreeSet<_> = item.claims().iter().map(|claim| claim.section).collect();
    let sections: Vec<_> = sections.into_iter().collect();
    let _ = writeln!(page, "Claims: {}.", sections.join("; "));
    if let Some(seeds) = &reproduced.seeds {
        let _ = writeln!(page, "Seeds: {seeds}.");
    }
    let _ = writeln!(
        page,
        "\n```sh\n{}\n```",
        finding.evidence.replace(" && ", "\n")
    );
    page
}

/// The text with one sentence per line.
pub(crate) fn sentences(text: &str) -> String {
    let mut lines = String::new();
    let mut parts = text.split(". ").peekable();
    while let Some(part) = parts.next() {
        lines.push_str(part);
        match parts.peek() {
            // What follows an abbreviation is not a sentence: "Fig. 1".
            Some(next) if next.starts_with(char::is_uppercase) => lines.push_str(".\n"),
            Some(_) => lines.push_str(". "),
            None => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_lines_of_their_own() {
        let text = "Fig. 1 has sets. The others do not. N = 3";
        assert_eq!(
            sentences(text),
            "Fig. 1 has sets.\nThe others do not.\nN = 3"
        );
    }
}
