//! Durations on the command line.

use std::fmt;
use std::time::Duration;

use soloist_api::parse_duration;

/// A duration as an option's value. Shown in the form in which it is given.
#[derive(Clone, Copy)]
pub(crate) struct Given(pub Duration);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.0))
    }
}

/// Parses a number of seconds, as flock(1) does, or a whole number with a unit.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
    let given = seconds.and_then(Result::ok).or(parse_duration(text).ok());
    given.ok_or_else(|| {
        "use a number of seconds, such as 5 or 0.5, or a whole number and a unit, such as 500ms or \
         2m"
        .to_owned()
    })
}

/// Parses a duration within these bounds.
pub(crate) fn parse_within(text: &str, least: Duration, most: Duration) -> Result<Given, String> {
    let given = parse(text)?;
    match (least..=most).contains(&given) {
        true => Ok(Given(given)),
        false => Err(format!("use {}", self::range(least, most))),
    }
}

/// The range in words, for help and errors: `500ms to 1h`.
pub(crate) fn range(least: Duration, most: Duration) -> String {
    format!("{} to {}", text(least), text(most))
}

/// A duration in whole units, as it is written on the command line and in configurations.
pub(crate) fn text(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let mut whole = units
        .iter()
        .filter(|(unit, _)| ms.is_multiple_of(*unit) && ms >= *unit);
    match whole.next() {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => "0s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_parsed() {
        for shown in ["500ms", "3s", "2m", "1h", "24h", "90s", "1500ms", "0s"] {
            assert_eq!(text(parse(shown).unwrap()), shown);
        }
        assert_eq!(parse("0.5"), parse("500ms"));
        assert_eq!(parse("10"), parse("10s"));
        for wrong in ["", "-1", "1e999", "5x", "s"] {
            assert!(parse(wrong).unwrap_err().contains("500ms"), "{wrong}");
        }
        let (least, most) = (Duration::from_millis(500), Duration::from_secs(3600));
        let error = parse_within("2h", least, most).err();
        assert_eq!(error.as_deref(), Some("use 500ms to 1h"));
    }
}
