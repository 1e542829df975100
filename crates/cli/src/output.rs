//! Printing: results on stdout, as text or JSON; complaints on stderr.

use std::io::{self, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::Verdict;

/// Prints text. A closed pipe is not an error: the reader has seen enough.
pub fn text(text: &str) -> Result<()> {
    line_is_read(text).map(|_| ())
}

/// Prints text and returns whether the reader is still there.
pub fn line_is_read(text: &str) -> Result<bool> {
    let mut stdout = io::stdout().lock();
    let result = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result
            .map(|()| true)
            .context("cannot write to standard output"),
    }
}

/// A progress bar. It draws on a terminal only.
pub fn progress_bar(length: u64, what: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} to go");
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    ProgressBar::new(length).with_style(style)
}

/// Prints a line on stderr. Errors are ignored: there is nowhere left to report them.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns `known`, unless the cluster gave a reason why it cannot know. The reason is printed on
/// stderr.
pub fn verdict(unknown: Option<&str>, known: Verdict) -> Verdict {
    match unknown {
        None => known,
        Some(reason) => {
            complain(&format!("not known: {reason}"));
            Verdict::CannotTell
        }
    }
}

pub fn json(value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_string_pretty(value)?;
    json.push('\n');
    text(&json)
}
