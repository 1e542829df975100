//! Patterns of lock names.

/// Why patterns are invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// It is empty.
    #[error("empty pattern: use ** for all locks")]
    Empty,
    /// It is longer than the name of a lock may be.
    #[error(
        "the pattern {begin:?}... has {bytes} bytes (maximum: {})",
        Patterns::LONGEST
    )]
    TooLong {
        /// Its first characters.
        begin: String,
        /// Its length.
        bytes: usize,
    },
    /// Three or more adjacent stars.
    #[error(
        "the pattern {0:?} has more than two '*' in a row: use * within a part, ** across parts"
    )]
    Stars(String),
    /// Too many patterns.
    #[error("too many patterns: {count} (maximum: {})", Patterns::MOST)]
    TooMany {
        /// Number of patterns.
        count: usize,
    },
}

/// Patterns in order of precedence. `*` matches any characters within one part of the path, or
/// none. `**` matches any characters including `/`. Everything else matches itself.
///
/// Names come from clients, so matching is bounded: it takes time at most proportional to the
/// length of the name times that of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
}

impl Patterns {
    /// Maximum length of a pattern in bytes: that of a lock's name.
    pub(super) const LONGEST: usize = 256;
    /// Maximum number of patterns.
    pub(super) const MOST: usize = 1024;

    pub(super) fn new(patterns: &[&str]) -> Result<Self, PatternError> {
        if patterns.len() > Self::MOST {
            let count = patterns.len();
            return Err(PatternError::TooMany { count });
        }
        let all = patterns.iter().map(|pattern| Pattern::new(pattern));
        Ok(Patterns { all: all.collect() })
    }

    /// Index of the first pattern that matches the name.
    pub(super) fn first_match(&self, name: &str) -> Option<usize> {
        let mut all = self.all.iter();
        all.position(|pattern| pattern.matches(name.as_bytes()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Star {
    Absent,
    WithinPart,
    AcrossParts,
}

impl Star {
    fn covers(self, byte: u8) -> bool {
        match self {
            Star::Absent => false,
            Star::WithinPart => byte != b'/',
            Star::AcrossParts => true,
        }
    }
}

/// A nondeterministic automaton: state i means that i literals have been matched.
#[derive(Clone, Debug)]
struct Pattern {
    literals: Vec<u8>,
    /// The star before each literal, and the one at the end.
    stars: Vec<Star>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let mut literals = Vec::new();
        let mut stars = vec![Star::Absent];
        for byte in text.bytes() {
            let last = stars.last_mut().expect("the end has a star");
            match (byte, *last) {
                (b'*', Star::Absent) => *last = Star::WithinPart,
                (b'*', _) => *last = Star::AcrossParts,
                _ => {
                    literals.push(byte);
                    stars.push(Star::Absent);
                }
            }
        }
        Pattern { literals, stars }
    }

    fn matches(&self, name: &[u8]) -> bool {
        let prefix = self.stars.iter().take_while(|star| **star == Star::Absent);
        let prefix = prefix.count().min(self.literals.len());
        if !name.starts_with(&self.literals[..prefix]) {
            return false;
        }
        let mut reached = vec![false; self.stars.len()];
        reached[prefix] = true;
        for &byte in &name[prefix..] {
            // From the last state to the first, so that each state is read before it is
            // overwritten.
            for state in (prefix..reached.len()).rev() {
                let enters =
                    state > prefix && reached[state - 1] && self.literals[state - 1] == byte;
                let stays = reached[state] && self.stars[state].covers(byte);
                reached[state] = enters || stays;
            }
        }
        reached[self.literals.len()]
    }
}

/// Refuses an invalid pattern.
pub(super) fn check(pattern: &str) -> Result<(), PatternError> {
    if pattern.is_empty() {
        return Err(PatternError::Empty);
    }
    if pattern.len() > Patterns::LONGEST {
        return Err(PatternError::TooLong {
            begin: pattern.chars().take(16).collect(),
            bytes: pattern.len(),
        });
    }
    if pattern.contains("***") {
        return Err(PatternError::Stars(pattern.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        check(pattern).unwrap();
        Patterns::new(&[pattern])
            .unwrap()
            .first_match(name)
            .is_some()
    }

    #[test]
    fn stars_stay_in_their_parts() {
        assert!(matches("billing/*", "billing/eu"));
        assert!(matches("billing/*", "billing/"));
        assert!(!matches("billing/*", "billing/eu/1"));
        assert!(!matches("billing/*", "billing"));
        assert!(matches("billing/**", "billing/eu/1"));
        assert!(matches("*/lock", "a/lock"));
        assert!(!matches("*/lock", "a/b/lock"));
        assert!(matches("**/lock", "a/b/lock"));
        assert!(matches("**", "a/b"));
        assert!(matches("a*c", "abbc"));
        assert!(!matches("a", "ab"));
        assert!(!matches("a", "ba"));
    }

    #[test]
    fn other_characters_are_not_special() {
        assert!(matches("a.b", "a.b"));
        assert!(!matches("a.b", "axb"));
        for pattern in [
            "[a]", "(a|b)", "^a$", r"\d", "a?", "a+", "{1}", "ä€", "a\nb", "(?i)a",
        ] {
            assert!(matches(pattern, pattern));
            assert!(!matches(pattern, "a"));
        }
        assert!(matches("*", "a\nb"));
        assert!(matches("**", "a\nb"));
        assert!(matches("*", "äöü"));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert_eq!(check(""), Err(PatternError::Empty));
        assert!(check("a/***").unwrap_err().to_string().contains("a/***"));
        assert!(
            check(&"a".repeat(257))
                .unwrap_err()
                .to_string()
                .contains("257 bytes (maximum: 256)")
        );
        assert!(check(&"a".repeat(256)).is_ok());
        let error = Patterns::new(&["a"; 1025]).unwrap_err();
        assert_eq!(error, PatternError::TooMany { count: 1025 });
    }

    #[test]
    fn the_largest_set_can_be_built_and_hostile_names_are_fast() {
        let hostile = "*a".repeat(128);
        let all: Vec<String> = (0..64)
            .map(|i| format!("{i:03}{}", &hostile[3..]))
            .collect();
        let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
        all.push(&hostile);
        let patterns = Patterns::new(&all).unwrap();
        // A backtracking matcher would practically never finish.
        let name = format!("{}b", "a".repeat(255));
        assert_eq!(patterns.first_match(&name), None);
        assert_eq!(patterns.first_match(&"a".repeat(256)), Some(64));
    }

    /// By definition: tries every length for a star.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [b'*', b'*', rest @ ..] => (0..=name.len()).any(|n| naive(rest, &name[n..])),
            [b'*', rest @ ..] => {
                let part = name.iter().take_while(|byte| **byte != b'/').count();
                (0..=part).any(|n| naive(rest, &name[n..]))
            }
            [first, rest @ ..] => name.first() == Some(first) && naive(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn as_the_naive_matcher(pattern in "[ab/*]{1,10}", name in "[ab/]{0,12}") {
            if check(&pattern).is_ok() {
                let expected = naive(pattern.as_bytes(), name.as_bytes());
                prop_assert_eq!(matches(&pattern, &name), expected);
            }
        }

        #[test]
        fn any_text_matches_itself_and_the_first_wins(text in "[^*]{1,60}", other in "[^*]{1,60}") {
            prop_assume!(text.len() <= 256 && other.len() <= 256 && text != other);
            let patterns = Patterns::new(&[&other, &text, "**"]).unwrap();
            prop_assert_eq!(patterns.first_match(&text), Some(1));
            prop_assert_eq!(patterns.first_match(&other), Some(0));
            prop_assert_eq!(patterns.first_match(&format!("{text}{other}!")), Some(2));
        }
    }
}
