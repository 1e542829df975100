//! Comments and documents keep their width, have one sentence per line, and avoid a list of words.
//! Strings avoid these words too, and more.

mod literals;
mod log_lines;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};

use literals::literals;

const COMMENT_WIDTH_MAX: usize = 100;

/// This file, which has the words.
const LIST: &str = "crates/cli/tests/prose/main.rs";

/// What is not written, and what is written instead.
const INSTEAD: [(&str, &str); 17] = [
    ("whoever", "the member, the caller, a client ..."),
    ("so many", "a number, or the constant's name"),
    ("anew", "again, from the start, fresh"),
    ("done without", "evicted"),
    ("do without", "evict"),
    ("nothing, if", "`None` if"),
    ("what comes of", "the effects of, the result of"),
    ("tells whether", "returns whether"),
    ("by the letter", "as printed"),
    ("for ever", "forever"),
    ("a file an", "one file per"),
    ("is no node", "is not a node"),
    ("reign", "term, leader task"),
    ("the office", "membership"),
    ("rifts", "partitions"),
    ("homecoming", "return_home"),
    ("patience", "timeout, limit"),
];

/// What is not written in texts for users, log lines and messages of assertions.
const INSTEAD_IN_STRINGS: [(&str, &str); 21] = [
    ("somebody", "a client, a waiter, a node ..."),
    ("nobody", "no client, no waiter, no node ..."),
    ("anybody", "a client, a node ..."),
    ("everybody", "every node, every request ..."),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("under way", "in flight, in progress"),
    ("wants in", "requests"),
    ("in vain", "without an answer, not in time"),
    ("that there is", "known, valid"),
    ("come together", "form the cluster"),
    ("came together", "formed the cluster"),
    ("said goodbye", "is stopping"),
    ("takes part", "is a member"),
    ("taking part", "joined"),
    ("without end", "that never stop"),
    ("is no member", "is not a member"),
    ("is no keeper", "is not a keeper"),
    ("is no peer", "is not a peer"),
    ("any more", "no longer"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("text")
}

/// All files with these endings, by their paths from the root.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = ["crates", "docs", "contrib"]
        .map(|folder| root().join(folder))
        .to_vec();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root()).expect("below the root");
            let name = name.to_str().expect("plain names").to_owned();
            if path.ends_with("node_modules") {
                continue;
            } else if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push((name, fs::read_to_string(path).expect("text")));
            }
        }
    }
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ] {
        if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push((name.to_owned(), read(name)));
        }
    }
    found.sort();
    found
}

/// The comment's text, if the line is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

/// The lines of prose: outside code blocks, with their numbers.
fn prose<'t>(name: &str, text: &'t str) -> Vec<(usize, &'t str, &'t str)> {
    let is_rust = name.ends_with(".rs");
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let said = if is_rust { comment(line) } else { Some(line) };
        let Some(said) = said else {
            in_code = false;
            continue;
        };
        if said.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((number + 1, line, said));
        }
    }
    lines
}

/// The text without `code` and without the targets of links.
fn without_code(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<String>();
    let parts = outside.split("](").enumerate();
    let parts = parts.map(|(number, part)| match (number, part.split_once(')')) {
        (1.., Some((_, after))) => after,
        _ => part,
    });
    parts.collect()
}

fn report(faults: Vec<String>) {
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn comments_fit_their_width() {
    let mut faults = Vec::new();
    for (name, text) in files(&[".rs"]) {
        for (number, line, _) in prose(&name, &text) {
            let width = line.chars().count();
            if width > COMMENT_WIDTH_MAX {
                faults.push(format!(
                    "{name}:{number}: {width} columns, at most {COMMENT_WIDTH_MAX}"
                ));
            }
        }
    }
    report(faults);
}

/// The words that appear in the text, each with what to write instead.
fn forbidden<'w>(
    text: &str,
    words: &'w [(&'w str, &'w str)],
) -> impl Iterator<Item = &'w (&'w str, &'w str)> {
    let text = format!(" {} ", text.to_lowercase());
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    words.iter().filter(move |(word, _)| {
        text.match_indices(word).any(|(at, _)| {
            let bytes = text.as_bytes();
            !is_letter(bytes[at - 1]) && !is_letter(bytes[at + word.len()])
        })
    })
}

#[test]
fn forbidden_words_do_not_appear() {
    let mut faults = Vec::new();
    for (name, text) in files(&[".rs", ".md"]) {
        if name == LIST {
            continue;
        }
        for (number, _, said) in prose(&name, &text) {
            for (word, instead) in forbidden(&without_code(said), &INSTEAD) {
                faults.push(format!("{name}:{number}: {word:?}: write {instead}"));
            }
        }
    }
    report(faults);
}

fn everywhere(text: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    forbidden(text, &INSTEAD).chain(forbidden(text, &INSTEAD_IN_STRINGS))
}

/// The text without what is filled in later.
fn without_arguments(text: &str) -> String {
    let mut pieces = text.split('{');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |joined, piece| {
        joined + "{}" + piece.split_once('}').map_or(piece, |(_, after)| after)
    })
}

#[test]
fn forbidden_words_do_not_appear_in_strings() {
    let mut faults = Vec::new();
    for (name, text) in files(&[".rs"]) {
        if name == LIST {
            continue;
        }
        for (number, literal) in literals(&text) {
            // A single word is a name, not prose.
            if !literal.trim().contains(' ') {
                continue;
            }
            let said = without_arguments(&without_code(&literal));
            for (word, instead) in everywhere(&said) {
                faults.push(format!("{name}:{number}: {word:?}: write {instead}"));
            }
        }
    }
    report(faults);
}

#[test]
fn forbidden_words_do_not_appear_in_scenarios() {
    let mut faults = Vec::new();
    let mut comments = 0;
    for (name, text) in files(&[".txt"]) {
        let folders = ["crates/lab/tests/scenarios/", "crates/lab/tours/"];
        if !folders.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let Some(said) = line.strip_prefix('#') else {
                continue;
            };
            comments += 1;
            for (word, instead) in everywhere(said) {
                let number = number + 1;
                faults.push(format!("{name}:{number}: {word:?}: write {instead}"));
            }
        }
    }
    assert!(comments > 0, "no scenario found");
    report(faults);
}

/// Where a sentence ends and another begins on the same line.
fn has_two_sentences(line: &str) -> bool {
    line.match_indices(". ").any(|(at, _)| {
        let before = line[..at].rsplit([' ', '(']).next().unwrap_or_default();
        let after = line[at + 2..].chars().next();
        let is_abbreviation = matches!(before, "e.g" | "i.e" | "Fig" | "vs" | "No" | "cf");
        let is_numbered = before.bytes().all(|byte| byte.is_ascii_digit());
        !is_abbreviation && !is_numbered && after.is_some_and(char::is_uppercase)
    })
}

#[test]
fn markdown_has_one_sentence_per_line() {
    let mut faults = Vec::new();
    for (name, text) in files(&[".md"]) {
        for (number, _, said) in prose(&name, &text) {
            let is_table = said.trim_start().starts_with('|');
            let is_list = said.trim_start().starts_with(['-', '*']);
            if !is_table && !is_list && has_two_sentences(said) {
                faults.push(format!("{name}:{number}: two sentences: {said}"));
            }
        }
    }
    report(faults);
}
