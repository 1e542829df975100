//! The text of a state, as both sides print it.

use std::fmt::Debug;

/// The fields of a struct as `{:?}` prints them, without those in `skip`, at any depth.
pub(crate) fn fields(value: &impl Debug, skip: &[&str]) -> String {
    let text = format!("{value:?}");
    let (_, inner, _) = braces(&text).expect("a struct with fields");
    kept(inner, skip)
}

fn kept(inner: &str, skip: &[&str]) -> String {
    let mut parts = Vec::new();
    for field in top_level(inner) {
        let name = field.split(':').next().unwrap_or_default();
        if skip.contains(&name) {
            continue;
        }
        parts.push(match braces(field) {
            Some((begin, inner, end)) => format!("{begin}{{ {} }}{end}", kept(inner, skip)),
            None => field.to_owned(),
        });
    }
    parts.join(", ")
}

/// What is before, within and behind the outermost braces of a struct.
fn braces(text: &str) -> Option<(&str, &str, &str)> {
    let (begin, rest) = text.split_once("{ ")?;
    let (inner, end) = rest.rsplit_once(" }")?;
    Some((begin, inner, end))
}

/// Splits at the commas that are not within brackets.
fn top_level(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

#[test]
fn nested_fields_stay_whole_and_skipped_ones_go() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    struct Example {
        place: u8,
        pair: (u8, u8),
        list: Vec<Option<u8>>,
        inner: Option<Box<Inner>>,
    }
    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    struct Inner {
        place: u8,
        last: u8,
    }
    let example = Example {
        place: 0,
        pair: (1, 2),
        list: vec![Some(3), None],
        inner: Some(Box::new(Inner { place: 0, last: 4 })),
    };
    assert_eq!(
        fields(&example, &["place"]),
        "pair: (1, 2), list: [Some(3), None], inner: Some(Inner { last: 4 })"
    );
}
