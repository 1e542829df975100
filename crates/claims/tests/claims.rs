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

/// The costs in a text, such as "34 messages for 9 entries, 2.18√N, 1.89K, 3.78(K-1)".
fn costs(text: &str) -> Vec<&str> {
    let places = text.match_indices(" messages for ").map(|(place, _)| place);
    let costs = places.filter_map(|place| {
        let begin = text[..place].rfind(|letter: char| !letter.is_ascii_digit());
        let begin = begin.map_or(0, |before| before + 1);
        let end = place + text[place..].find("(K-1)")? + "(K-1)".len();
        let cost = &text[begin..end];
        let is_cost = begin < place && cost.contains("√N") && !cost.contains('\n');
        is_cost.then_some(cost)
    });
    costs.collect()
}

/// The figures of erratum M3 are those of the claim, which are computed.
#[test]
fn the_errata_have_the_figures_of_maekawas_bound() {
    let read = |name: &str| std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let claims = read("docs/claims.md");
    let row = claims
        .lines()
        .find(|line| line.contains("c√N messages for an entry"));
    let row = row.expect("the claim is on the page");
    let errata = read("docs/errata.md");
    let computed = costs(row);
    assert!(computed.len() >= 6, "{row}");
    assert_eq!(costs(&errata), computed, "docs/errata.md, M3");
    let range = between(row, "N = 7, 13, 31, 57: ", " messages for each");
    assert!(
        errata.contains(&format!("({range} messages for each of the K-1 others")),
        "docs/errata.md, M3: {range}"
    );
}

/// What stands between two parts of a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let found = text.split(before).nth(1);
    let found = found.and_then(|rest| rest.split(after).next());
    found.unwrap_or_else(|| panic!("no {before:?} and {after:?}: {text}"))
}

/// The figures of erratum N2 are those of the claim, which are counted.
#[test]
fn the_errata_have_the_figures_of_a_lone_request_on_the_torus() {
    let read = |name: &str| std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let claims = read("docs/claims.md");
    let row = claims
        .lines()
        .find(|line| line.starts_with("| §5.1 | one request at a time takes"));
    let row = row.expect("the claim is on the page");
    let counted = |nodes: u32| {
        let costs = between(row, &format!("N = {nodes}: "), ", outside");
        let range = costs.split(',').next().expect("a range").to_owned();
        let bound = costs.rsplit(" to ").next().expect("a bound").to_owned();
        (range, bound)
    };
    let [nine, more, most] = [9, 25, 64].map(counted);
    let equal = format!(
        "counts {} messages for N = 9 (the bound is {}), {} for N = 25 ({}), and {} for N = 64 ({})",
        nine.0, nine.1, more.0, more.1, most.0, most.1
    );
    let fast = between(row, "faster than all alerts, up to ", " from a fresh start");
    let fast = format!("takes up to {fast} messages for these N");
    let errata = read("docs/errata.md");
    for text in [equal, fast] {
        assert!(errata.contains(&text), "docs/errata.md, N2: {text}");
    }
}
