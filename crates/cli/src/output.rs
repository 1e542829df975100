//! Printing: results on stdout, as text or JSON; complaints on stderr.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::Verdict;

/// Prints text. A closed pipe is not an error: the reader has seen enough.
pub(crate) fn text(text: &str) -> Result<()> {
    line_is_read(text).map(|_| ())
}

/// Prints text and returns whether the reader is still there.
pub(crate) fn line_is_read(text: &str) -> Result<bool> {
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

/// The text in bold, if stdout is a terminal and `NO_COLOR` is not set.
pub(crate) fn bold(text: &str) -> String {
    match io::stdout().is_terminal() && !no_colour() {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Returns whether `NO_COLOR` asks for plain text.
pub(crate) fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Number of columns of the terminal, or that of `COLUMNS` if stdout is not a terminal. `None` if
/// there is no limit.
pub(crate) fn width() -> Option<usize> {
    let terminal = rustix::termios::tcgetwinsize(io::stdout());
    let terminal = terminal.ok().map(|size| usize::from(size.ws_col));
    let given = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(given).filter(|&columns| columns > 0)
}

/// A progress bar. It draws on a terminal only.
pub(crate) fn progress_bar(length: u64, what: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} to go");
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    ProgressBar::new(length).with_style(style)
}

/// Prints a line on stderr. Errors are ignored: there is nowhere left to report them.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints why the command failed, on stderr: as JSON if the command prints JSON.
pub(crate) fn error(text: &str, exit_code: u8) {
    let line = match wants_json() {
        true => serde_json::json!({ "error": text, "exit_code": exit_code }).to_string(),
        false => format!("error: {text}"),
    };
    complain(&line);
}

/// Returns whether the command line asks for JSON. Also right if the command line is invalid.
pub(crate) fn wants_json() -> bool {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // What follows the lock's name is another command's line.
    let is_lock = arguments.peek().is_some_and(|command| command == "lock");
    let own = arguments.take_while(|argument| argument != "--");
    !is_lock && own.into_iter().any(|argument| argument == "--json")
}

/// Returns `known`, unless the cluster gave a reason why it cannot know. The reason is printed on
/// stderr.
pub(crate) fn verdict(unknown: Option<&str>, known: Verdict) -> Verdict {
    match unknown {
        None => known,
        Some(reason) => {
            complain(&format!("unknown: {reason}"));
            Verdict::CannotTell
        }
    }
}

pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_string_pretty(value)?;
    json.push('\n');
    text(&json)
}
