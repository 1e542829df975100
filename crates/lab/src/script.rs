//! What all runs as text have in common: a head with one `key value` per line, then steps after
//! `> `, each with its transcript. Lines that start with `#` are comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use soloist_api::NodeName;

use crate::scenario::ScenarioError;

/// The values of the head, by key.
pub(crate) struct Head<'a> {
    values: BTreeMap<&'a str, (usize, &'a str)>,
}

impl<'a> Head<'a> {
    /// Reads the head, in which only these keys may occur.
    pub(crate) fn read(text: &'a str, keys: &[&str]) -> Result<Self, ScenarioError> {
        let mut values = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            if content.starts_with('>') {
                break;
            }
            if is_comment(content) {
                continue;
            }
            let (key, value) = content.split_once(' ').unwrap_or((content, ""));
            if !keys.contains(&key) {
                let reason = format!("'{key}' is not a key; use {}", keys.join(", "));
                return Err(ScenarioError::Line { line, reason });
            }
            values.insert(key, (line, value.trim()));
        }
        Ok(Head { values })
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&'a str> {
        self.values.get(key).map(|(_, value)| *value)
    }

    /// Returns whether a text has this key.
    pub(crate) fn has(text: &str, key: &str) -> bool {
        let mut head = text.lines().take_while(|line| !line.starts_with('>'));
        head.any(|line| line.split(' ').next() == Some(key))
    }

    /// The names of nodes that a key lists, or none if it has no value.
    pub(crate) fn names(&self, key: &str) -> Result<Vec<NodeName>, ScenarioError> {
        let words = self.value(key).unwrap_or_default().split_whitespace();
        let names: Result<Vec<NodeName>, _> = words.map(str::parse).collect();
        names.map_err(|error| self.wrong(key, &error.to_string()))
    }

    /// Checks that these names, which the key lists, are different.
    pub(crate) fn differ(&self, key: &str, names: &[NodeName]) -> Result<(), ScenarioError> {
        let mut known = BTreeSet::new();
        match names.iter().find(|name| !known.insert(*name)) {
            Some(twice) => Err(self.wrong(key, &format!("'{twice}' is listed twice"))),
            None => Ok(()),
        }
    }

    /// The places, among these names, of the nodes that a key lists.
    pub(crate) fn nodes(&self, key: &str, names: &[NodeName]) -> Result<Vec<usize>, ScenarioError> {
        let words = self.value(key).unwrap_or_default().split_whitespace();
        let place = |word| names.iter().position(|name| name.as_str() == word);
        let places: Option<Vec<usize>> = words.map(place).collect();
        places.ok_or_else(|| self.wrong(key, "no such node"))
    }

    /// The error that a key's value is wrong.
    ///
    /// # Panics
    /// If the key has no value.
    pub(crate) fn wrong(&self, key: &str, reason: &str) -> ScenarioError {
        let (line, value) = self.values[key];
        let reason = format!("{key} '{value}': {reason}");
        ScenarioError::Line { line, reason }
    }
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// A line of a text that is not what happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line's number, from 1.
    pub line: usize,
    /// What the text says, or `None` if it ends before.
    pub expected: Option<String>,
    /// What happens, or `None` if nothing more does.
    pub actual: Option<String>,
}

/// The first difference between a text and what replaying it returned, or `None` if they agree.
///
/// ```
/// use soloist_lab::scenario::{first_difference, replay};
///
/// let text = "algorithm central\nnodes 2\n> request 0\n1 enters\n";
/// let difference = first_difference(text, &replay(text).unwrap()).unwrap();
/// assert_eq!(difference.line, 4);
/// assert_eq!(difference.actual.unwrap(), "0 enters");
/// ```
pub fn first_difference(text: &str, replayed: &str) -> Option<Difference> {
    let (mut expected, mut actual) = (text.lines(), replayed.lines());
    for line in 1.. {
        let (expected, actual) = (expected.next(), actual.next());
        if expected != actual {
            return Some(Difference {
                line,
                expected: expected.map(str::to_owned),
                actual: actual.map(str::to_owned),
            });
        }
        expected?;
    }
    None
}

/// What a line of a text is.
pub(crate) enum Content<'a> {
    Step(&'a str),
    /// A comment or an empty line.
    Comment,
    /// A line of the head.
    Head,
    /// A line of the transcript under a step.
    Transcript,
}

/// The lines of a text with their numbers, from 1, and what they are.
pub(crate) fn contents(
    text: &str,
) -> impl Iterator<Item = Result<(usize, &str, Content<'_>), ScenarioError>> {
    let mut in_steps = false;
    (1..).zip(text.lines()).map(move |(line, content)| {
        let what = if let Some(step) = content.strip_prefix("> ") {
            in_steps = true;
            Content::Step(step)
        } else if content.starts_with('>') {
            let reason = format!("'{content}': a step begins with '> '");
            return Err(ScenarioError::Line { line, reason });
        } else if is_comment(content) {
            Content::Comment
        } else if in_steps {
            Content::Transcript
        } else {
            Content::Head
        };
        Ok((line, content, what))
    })
}

/// Takes each step, and returns the text with the actual transcript under each of them.
pub(crate) fn play(
    text: &str,
    mut take: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, ScenarioError> {
    let mut result = String::new();
    for line in contents(text) {
        let (line, content, what) = line?;
        if !matches!(what, Content::Transcript) {
            let _ = writeln!(result, "{content}");
        }
        if let Content::Step(step) = what {
            let transcript = take(step).map_err(|reason| ScenarioError::Line { line, reason })?;
            result.push_str(&transcript);
        }
    }
    Ok(result)
}
