//! Checks that docs/errata.md shows the current scenarios. A line `<!-- scenario NAME -->` directly
//! precedes each block. Set `UPDATE_ERRATA=1` to regenerate the blocks. The commands on the page
//! are tested with the executable.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const OPENING: &str = "```text\n";
const CLOSING: &str = "```\n";

/// Parts of the names of scenarios that show a fault in a paper.
const FAULTY: [&str; 4] = ["as-published", "-two-tokens", "-endless", "-counters-lost"];

/// Longer blocks are folded.
const LINES_MAX: usize = 60;

fn page_path() -> PathBuf {
    Path::new(ROOT).join("docs/errata.md")
}

fn scenario(name: &str) -> String {
    let folder = Path::new(ROOT).join("crates/lab/tests/scenarios");
    fs::read_to_string(folder.join(format!("{name}.txt")))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Splits the page at its markers: the text before the first, then each scenario's name and the
/// text after its marker.
fn cut(page: &str) -> (&str, Vec<(&str, &str)>) {
    let mut pieces = page.split("<!-- scenario ");
    let head = pieces.next().expect("split gives one piece at least");
    let sections = pieces.map(|piece| piece.split_once(" -->\n").expect("a marker is a line"));
    (head, sections.collect())
}

/// Splits the text after a marker into its block and the remainder.
fn block_and_rest<'a>(name: &str, after: &'a str) -> (&'a str, &'a str) {
    let inside = after
        .strip_prefix(OPENING)
        .unwrap_or_else(|| panic!("{name}: no block directly after the marker"));
    let end = inside.find(&format!("\n{CLOSING}")).expect("a block ends") + 1;
    (&inside[..end], &inside[end + CLOSING.len()..])
}

#[test]
fn each_block_is_its_scenario() {
    let page = fs::read_to_string(page_path()).unwrap();
    let (head, sections) = cut(&page);
    if std::env::var("UPDATE_ERRATA").is_ok_and(|value| value == "1") {
        let mut fresh = head.to_owned();
        for (name, after) in &sections {
            let (_, rest) = block_and_rest(name, after);
            let text = scenario(name);
            fresh += &format!("<!-- scenario {name} -->\n{OPENING}{text}{CLOSING}{rest}");
        }
        fs::write(page_path(), fresh).unwrap();
        return;
    }
    assert!(!sections.is_empty(), "no scenario in the page");
    let mut before = head;
    for (name, after) in sections {
        let (block, rest) = block_and_rest(name, after);
        assert_eq!(block, scenario(name), "{name}");
        let folded = before.ends_with("</summary>\n\n") && rest.starts_with("\n</details>\n");
        assert!(folded || block.lines().count() <= LINES_MAX, "{name}: fold");
        before = rest;
    }
}

#[test]
fn each_scenario_of_a_fault_is_in_the_page_once() {
    let page = fs::read_to_string(page_path()).unwrap();
    let (_, sections) = cut(&page);
    let shown: BTreeSet<&str> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(shown.len(), sections.len(), "a scenario is listed twice");
    let mut count = 0;
    for entry in fs::read_dir(Path::new(ROOT).join("crates/lab/tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if FAULTY.iter().any(|part| name.contains(part)) {
            assert!(shown.contains(name), "{name} is not in the page");
            count += 1;
        }
    }
    assert!(count > 0, "no scenario of a fault");
}
