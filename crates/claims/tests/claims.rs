//! Checks that docs/claims.md matches a fresh run. Set `UPDATE_CLAIMS=1` to regenerate it, and
//! review the diff before committing.

use std::path::Path;

use soloist_claims::{PAPERS, all, comparison, examine, markdown};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Minimum number of claims per paper.
const CLAIMS_MIN: usize = 10;

#[test]
fn the_page_is_what_a_fresh_run_says() {
    let examined = examine(&all(), &|| ());
    for one in &examined {
        let finding = &one.finding;
        for text in [one.section, one.claimed, &finding.found, &finding.evidence] {
            assert!(!text.trim().is_empty(), "{one:#?}");
            assert!(!text.contains(['\n', '\r']), "{one:#?}");
        }
        let open = finding.decided_by.as_deref().map(str::trim);
        assert_eq!(open.is_some(), finding.verdict.is_open(), "{one:#?}");
        assert_ne!(open, Some(""), "{one:#?}");
        let evidence = &finding.evidence;
        if evidence.ends_with(".txt") {
            assert!(Path::new(ROOT).join(evidence).is_file(), "no {evidence}");
        } else {
            let is_command = |start| evidence.starts_with(start);
            assert!(
                is_command("soloist lab ") || is_command("cargo test "),
                "{evidence}"
            );
        }
    }
    let tables = comparison::tables();
    for table in &tables {
        assert!(!table.rows.is_empty(), "{}", table.title);
        let width = table.head.len();
        assert!(table.rows.iter().all(|row| row.len() == width));
    }
    let page = markdown::page(&examined, &tables);
    let path = Path::new(ROOT).join("docs/claims.md");
    if std::env::var("UPDATE_CLAIMS").is_ok_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (kept, fresh) in kept.lines().zip(page.lines()) {
        assert_eq!(kept, fresh, "set UPDATE_CLAIMS=1 to write what is so now");
    }
    assert_eq!(kept.lines().count(), page.lines().count());
}

/// Each paper appears once, in order, with at least `CLAIMS_MIN` claims.
#[test]
fn every_paper_is_there_with_its_claims() {
    let claims = all();
    let papers: Vec<_> = claims
        .chunk_by(|one, other| one.paper == other.paper)
        .map(|claims| (claims[0].paper, claims.len()))
        .collect();
    for (paper, count) in &papers {
        assert!(*count >= CLAIMS_MIN, "{paper}: {count}");
    }
    let papers: Vec<_> = papers.into_iter().map(|(paper, _)| paper).collect();
    assert_eq!(papers, PAPERS);
}
