//! The text of a state, as both sides print it.

use std::fmt::Debug;

/// The fields of a struct as `{:?}` prints them, without those in `skip`.
pub(crate) fn fields(value: &impl Debug, skip: &[&str]) -> String {
    let text = format!("{value:?}");
    let begin = text.find("{ ").expect("a struct with fields") + 2;
    let inner = text[begin..].strip_suffix(" }").expect("the end of it");
    let is_kept = |field: &&str| {
        let name = field.split(':').next().unwrap_or_default();
        !skip.contains(&name)
    };
    let kept: Vec<&str> = top_level(inner).into_iter().filter(is_kept).collect();
    kept.join(", ")
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
    }
    let example = Example {
        place: 0,
        pair: (1, 2),
        list: vec![Some(3), None],
    };
    assert_eq!(
        fields(&example, &["place"]),
        "pair: (1, 2), list: [Some(3), None]"
    );
}
