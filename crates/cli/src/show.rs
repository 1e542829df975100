//! How values are shown to people.

use soloist_client::api::LockState;

pub(crate) fn state(state: LockState) -> &'static str {
    match state {
        LockState::Free => "free",
        LockState::Held => "held",
        LockState::Changing => "changing",
        _ => "unknown",
    }
}

/// A number with its noun: `1 node`, `5 nodes`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Wraps words at this width. Lines after the first are indented, by as much as `indent`.
pub(crate) fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_inclusive(' ') {
        let end = column + word.trim_end().chars().count();
        if end > width && column > indent {
            lines.truncate(lines.trim_end().len());
            lines += &format!("\n{:indent$}", "");
            column = indent;
        }
        lines += word;
        column += word.chars().count();
    }
    lines
}

/// Quotes and escapes the text if it could affect the terminal or be misread.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    match !text.is_empty() && text.chars().all(plain) && text.trim() == text {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}

/// The text without control characters, which could affect the terminal.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// The time of day of a moment in milliseconds since 1970, in UTC.
pub(crate) fn time_of_day(unix_ms: u64) -> String {
    let day_ms = unix_ms % (24 * 60 * 60 * 1000);
    let (seconds, ms) = (day_ms / 1000, day_ms % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

/// A duration in a readable unit.
pub(crate) fn time(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} m {} s", seconds % 60),
        _ => format!("{hours} h {} m", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_names_are_readable() {
        assert_eq!(time(999), "999 ms");
        assert_eq!(time(1_999), "1.9 s");
        assert_eq!(time(61_000), "1 m 1 s");
        assert_eq!(time(3_660_000), "1 h 1 m");
        assert_eq!(count(1, "node"), "1 node");
        assert_eq!(count(0, "node"), "0 nodes");
        assert_eq!(quoted("a/b c"), "a/b c");
        assert_eq!(quoted("a\x1b[2J"), r#""a\u{1b}[2J""#);
        assert_eq!(quoted(""), r#""""#);
        assert_eq!(printable("a\x1b[2J\n"), "a\u{fffd}[2J\u{fffd}");
        assert_eq!(time_of_day(1_700_000_000_042), "22:13:20.042Z");
    }

    #[test]
    fn words_are_wrapped_with_an_indent() {
        let text = "    name  one two three";
        assert_eq!(wrapped(text, 10, None), text);
        let lines = "    name  one two\n          three";
        assert_eq!(wrapped(text, 10, Some(17)), lines);
        assert_eq!(wrapped("long-word x", 0, Some(4)), "long-word\nx");
    }
}
