//! Parsing of durations such as `500ms`.

use std::time::Duration;

/// Why a string is not a valid duration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// It is not a whole number followed by a unit.
    #[error(
        "invalid duration {0:?}: use a whole number and a unit (ms, s, m, h or d), such as 30s"
    )]
    Form(String),
    /// It exceeds the maximum.
    #[error("duration {0:?} is too long (maximum: {LONGEST_DAYS}d)")]
    TooLong(String),
}

const LONGEST_DAYS: u64 = 36_500;
const LONGEST_MS: u64 = LONGEST_DAYS * 24 * 60 * 60 * 1000;

/// Parses a duration: a whole number followed by `ms`, `s`, `m`, `h` or `d`.
///
/// ```
/// use std::time::Duration;
/// use soloist_api::parse_duration;
///
/// assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
/// assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
/// assert!(parse_duration("10").unwrap_err().to_string().contains("unit"));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let shown = || text.chars().take(40).collect::<String>();
    let form = || DurationError::Form(shown());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(form()),
    };
    if number.is_empty() {
        return Err(form());
    }
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit_ms))
        .filter(|ms| *ms <= LONGEST_MS)
        .map(Duration::from_millis)
        .ok_or_else(|| DurationError::TooLong(shown()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_unit() {
        let seconds = |text| parse_duration(text).unwrap().as_secs();
        assert_eq!(seconds("7s"), 7);
        assert_eq!(seconds("7m"), 420);
        assert_eq!(seconds("1h"), 3600);
        assert_eq!(seconds("36500d"), 36_500 * 86_400);
        assert_eq!(parse_duration("0ms").unwrap(), Duration::ZERO);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for text in [
            "", "s", "10", "1.5s", "-1s", "+1s", "1 s", "1S", "1min", "1h30m", "٣s",
        ] {
            assert_eq!(
                parse_duration(text),
                Err(DurationError::Form(text.to_owned()))
            );
        }
        for text in ["36501d", "18446744073709551615h", "99999999999999999999ms"] {
            assert_eq!(
                parse_duration(text),
                Err(DurationError::TooLong(text.to_owned()))
            );
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*|[0-9]{0,30}[a-z]{0,3}") {
            let _ = parse_duration(&text);
        }
    }
}
