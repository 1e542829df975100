//! Texts and numbers in SVG files. The same input gives the same text, byte for byte.

use std::fmt::Write as _;

/// Font of texts, as on the project's pages.
pub(crate) const FONT: &str =
    "Inter, 'Segoe UI', system-ui, 'Helvetica Neue', Helvetica, Arial, sans-serif";

/// A coordinate with at most one decimal.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// The text with the characters replaced that have a meaning in SVG, because names are hostile
/// text. Characters that XML does not allow become U+FFFD. Marks that change the direction of the
/// text around them are written as escapes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

/// Approximate width of a text at this font size. Fonts differ, so it is rather too large.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |character: char| match character {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')'
        | '[' | ']' | ' ' | '/' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
        'A'..='Z' | '+' | '=' | '<' | '>' | '√' => 0.68,
        _ => 0.59,
    };
    size * text.chars().map(width).sum::<f64>()
}

/// The text in lines of at most this width. A word that is wider has a line of its own.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped() {
        assert_eq!(
            escape("<b a='1'>&\"\u{7}\u{ffff}\u{202e}\u{61c}ü"),
            "&lt;b a=&#39;1&#39;&gt;&amp;&quot;\u{fffd}\u{fffd}\\u{202e}\\u{61c}ü"
        );
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            ["3", "-0.5", "0", "2.3"],
            [3.0, -0.46, -0.04, 2.25001].map(number)
        );
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let lines = wrap("one two three four", 10.0, text_width("one two", 10.0));
        assert_eq!(lines, ["one two", "three", "four"]);
    }
}
