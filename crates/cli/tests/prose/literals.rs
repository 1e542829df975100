//! Finds the string literals in Rust source.

/// The string literals of a file, each with its line and with continued lines joined. Escapes are
/// left as they are.
pub(crate) fn literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some((begin, end)) = next_literal(rest) {
        let line = 1 + source[..source.len() - rest.len() + begin]
            .matches('\n')
            .count();
        found.push((line, joined(&rest[begin..end])));
        rest = &rest[end + 1..];
    }
    found
}

/// Where the next literal's content begins and ends. Skips comments and characters.
fn next_literal(source: &str) -> Option<(usize, usize)> {
    let bytes = source.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        match bytes[at] {
            b'/' if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()),
            b'\'' => at += character(rest),
            b'r' if !at
                .checked_sub(1)
                .is_some_and(|before| is_word(bytes[before])) =>
            {
                match raw(rest) {
                    Some((begin, end)) => return Some((at + begin, at + end)),
                    None => at += 1,
                }
            }
            b'"' => return Some((at + 1, at + 1 + closing_quote(&rest[1..])?)),
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the character literal, or 1 for the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => 2 + rest[2..].find('\'').map_or(0, |end| end + 1),
        Some((at, found)) if rest[at + found.len_utf8()..].starts_with('\'') => {
            at + found.len_utf8() + 1
        }
        _ => 1,
    }
}

/// Where the content of the raw string that starts here begins and ends, if one does.
fn raw(rest: &str) -> Option<(usize, usize)> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let begin = hashes + 2;
    if rest.as_bytes().get(begin - 1) != Some(&b'"') {
        return None;
    }
    let closing = format!("\"{}", "#".repeat(hashes));
    Some((begin, begin + rest[begin..].find(&closing)?))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Removes the ends of continued lines and the indentation after them.
fn joined(text: &str) -> String {
    let mut pieces = text.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |joined, piece| joined + piece.trim_start())
}

#[test]
fn literals_are_found_with_their_lines() {
    let source = r##"
        // "a comment"
        let quote = '"'; let life: &'static str = "one \" and \\";
        let both = ('\'', "two \
            lines", r#"a "raw" one"#);
    "##;
    let found = literals(source);
    let expected = [
        (3, r#"one \" and \\"#),
        (4, "two lines"),
        (5, r#"a "raw" one"#),
    ];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}
