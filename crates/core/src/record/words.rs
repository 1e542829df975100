//! Words for numbers and times, in sentences for people.

/// A number with its noun: `1 node`, `5 nodes`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A number that begins a sentence, with its noun.
pub(super) fn count_first(number: usize, noun: &str) -> String {
    const WORDS: [&str; 10] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine",
    ];
    let counted = count(number, noun);
    match WORDS.get(number) {
        Some(word) => counted.replacen(&number.to_string(), word, 1),
        None => counted,
    }
}

/// A duration in a readable unit.
pub(super) fn span(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        10_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..172_800_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} days", hours / 24),
    }
}

/// A duration in microseconds, in milliseconds or seconds.
pub(super) fn standstill(us: u64) -> String {
    match us {
        0..1_000 => "less than 1 ms".to_owned(),
        _ => span(us / 1_000),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn names(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// An argument of a shell's command line. Lock names may contain anything.
pub(super) fn argument(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    match text.chars().all(is_plain) && !text.is_empty() && !text.starts_with('-') {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lists_are_readable_and_arguments_are_quoted() {
        let spans = [999, 1_234, 12_345, 61_000, 3_660_000, 200_000_000].map(span);
        let readable = [
            "999 ms",
            "1.2 s",
            "12 s",
            "1 min 1 s",
            "1 h 1 min",
            "2 days",
        ];
        assert_eq!(spans, readable);
        assert_eq!(standstill(400), "less than 1 ms");
        assert_eq!(standstill(38_400), "38 ms");
        let counted = [1, 2, 9, 10].map(|number| count_first(number, "thing"));
        assert_eq!(
            counted,
            ["One thing", "Two things", "Nine things", "10 things"]
        );
        assert_eq!(names(&["a"]), "a");
        assert_eq!(names(&["a", "b", "c"]), "a, b and c");
        assert_eq!(argument("a/b"), "a/b");
        assert_eq!(argument("it's; rm -rf ~"), r"'it'\''s; rm -rf ~'");
        assert_eq!(argument("--help"), "'--help'");
    }
}
