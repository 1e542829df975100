//! Checks that the log lines in docs/operations.md are those that the code writes.

use crate::literals::literals;
use crate::{files, read};

const PAGE: &str = "docs/operations.md";

/// Crates that log, or that make the texts of log lines.
const SOURCES: [&str; 4] = [
    "crates/core/src/",
    "crates/transport/src/",
    "crates/node/src/",
    "crates/cli/src/",
];

/// The log lines in the tables of the section, which are in backquotes in the first column.
fn quoted(page: &str) -> Vec<&str> {
    let section = page.split("\n## The log\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("split gives one");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split(" | ").next().expect("split gives one"));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// Whether a literal can be this line. `...` stands for any text.
fn is_line(literal: &str, line: &str) -> bool {
    let mut pieces = line.split("...").map(str::trim);
    let first = pieces.next().expect("split gives one");
    let Some(mut rest) = literal.strip_prefix(first) else {
        return false;
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.is_empty() || line.ends_with("...")
}

#[test]
fn every_log_line_of_the_manual_is_in_the_source() {
    let page = read(PAGE);
    let sources = files(&[".rs"]);
    let sources = sources
        .iter()
        .filter(|(name, _)| SOURCES.iter().any(|source| name.starts_with(source)));
    let written: Vec<String> = sources
        .flat_map(|(_, text)| literals(text))
        .map(|(_, literal)| literal)
        .collect();
    let lines = quoted(&page);
    assert!(lines.len() > 40, "only {} lines found", lines.len());
    let missing: Vec<_> = lines
        .iter()
        .filter(|line| !written.iter().any(|literal| is_line(literal, line)))
        .collect();
    assert!(missing.is_empty(), "not in the source: {missing:#?}");
}

#[test]
fn lines_match_with_text_left_out() {
    assert!(is_line("link down", "link down"));
    assert!(!is_line("link down: {why}", "link down"));
    assert!(is_line("link down: {why}", "link down: ..."));
    assert!(is_line("one ({}): two; three", "one ...: two; ..."));
    assert!(!is_line("one ({}): two", "one ...: three"));
    assert!(is_line("{from} sent nothing", "... sent nothing"));
}
