//! Printing results: on stdout, for people or as JSON.

use std::io::{self, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::Verdict;

/// Prints text as it is. If nobody reads it any more, that is no error: they had enough of it.
pub fn text(text: &str) -> Result<()> {
    line_is_read(text).map(|_| ())
}

/// Prints text as it is, and says whether anybody still reads it.
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

/// A bar on a terminal, nothing in a pipe.
pub fn progress_bar(length: u64, what: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} to go");
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    ProgressBar::new(length).with_style(style)
}

/// Says something on stderr; if that cannot be written either, there is nobody left to tell.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The verdict, unless there is a reason why the cluster cannot tell, which is said on stderr.
pub fn verdict(unknown: Option<&str>, known: Verdict) -> Verdict {
    match unknown {
        None => known,
        Some(reason) => {
            complain(&format!("not known: {reason}"));
            Verdict::CannotTell
        }
    }
}

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_string_pretty(value)?;
    json.push('\n');
    text(&json)
}
