//! docs/claims.md and docs/reproduced.md say the same of the same claim.

use std::path::Path;

use soloist_claims::reproduce::{self, Item};
use soloist_claims::{Claim, Verdict};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = path.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn verdict(text: &str) -> Verdict {
    let bold = text.split("**").nth(1);
    let verdict = bold.and_then(|bold| Verdict::ALL.into_iter().find(|v| v.text() == bold));
    verdict.unwrap_or_else(|| panic!("no verdict: {text}"))
}

/// The verdict of a claim on docs/claims.md.
fn of_claim(page: &str, claim: &Claim) -> Verdict {
    let title = format!("\n## {}\n", claim.paper.info().paper);
    let paper = page.split(&title).nth(1).expect("the paper has a section");
    let row = format!("| {} | {} | ", claim.section, claim.claimed);
    let row = paper.lines().find_map(|line| line.strip_prefix(&row));
    verdict(row.unwrap_or_else(|| panic!("no row: {} {}", claim.section, claim.claimed)))
}

/// The verdict of an item on docs/reproduced.md.
fn of_item(page: &str, item: &Item) -> Verdict {
    let papers = page.split("\n## ");
    let paper = papers
        .into_iter()
        .find(|paper| paper.starts_with(item.paper.info().paper))
        .expect("the paper has a section");
    let title = format!("\n### {}: {}\n\n", item.place(), item.title);
    let section = paper.split(&title).nth(1);
    let section = section.unwrap_or_else(|| panic!("no section{title}"));
    verdict(section.lines().next().expect("a line"))
}

#[test]
fn both_pages_have_the_same_verdicts() {
    let (claimed, reproduced) = (page("claims.md"), page("reproduced.md"));
    let mut faults = Vec::new();
    for item in reproduce::all() {
        let claims = item.claims();
        let verdicts: Vec<_> = claims.iter().map(|c| of_claim(&claimed, c)).collect();
        let own = of_item(&reproduced, &item);
        if !item.agrees(own, &verdicts) {
            faults.push(format!("{item:?}: {own:?}, its claims: {verdicts:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A row that cites `lab claims` with a section is found by it.
#[test]
fn sections_that_rows_cite_have_these_rows() {
    let page = page("claims.md");
    let mut cited = 0;
    for claim in soloist_claims::all() {
        let row = format!("| {} | {} | ", claim.section, claim.claimed);
        let line = page.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("no row: {row}"));
        let evidence = line.rsplit('`').nth(1).expect("evidence in backquotes");
        let Some(rest) = evidence.strip_prefix("soloist lab claims --paper ") else {
            continue;
        };
        let (paper, section) = rest.split_once(" --section ").expect("a section");
        let section = section.trim_matches('"');
        assert_eq!(paper, claim.paper.info().name, "{evidence}");
        assert!(claim.is_in(section), "{evidence}: {}", claim.section);
        cited += 1;
    }
    assert!(cited > 0);
}
