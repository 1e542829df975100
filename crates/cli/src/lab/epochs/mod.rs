//! `soloist lab epochs`: leases, crashes, changes of epoch, and keepers.

mod check;
mod keepers;
mod replay;
mod run;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use soloist_lab::epochs::check::Case;
use soloist_lab::epochs::fault::{Fault, NotAFault};
use soloist_lab::search::Verdict as Found;

use super::searched;
use crate::{Verdict, output};

// The help of each subcommand is at its `Args`.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Check(check::Args),
    Keepers(keepers::Args),
    Replay(replay::Args),
}

impl Command {
    pub(crate) fn run(self) -> Result<Verdict> {
        match self {
            Command::Run(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Keepers(args) => args.run(),
            Command::Replay(args) => args.run(),
        }
    }
}

/// Parses the name of a fault.
fn fault(given: &str) -> Result<Fault, String> {
    given.parse().map_err(|error: NotAFault| error.to_string())
}

/// The names of faults, separated by commas.
fn list(faults: impl IntoIterator<Item = Fault>) -> String {
    let names: Vec<_> = faults.into_iter().map(Fault::name).collect();
    names.join(", ")
}

/// The limit of a search, and the form of its result.
#[derive(clap::Args)]
struct Form {
    /// Give up after this many states
    #[arg(long, value_name = "M", value_parser = states, default_value_t = Case::STATES_MAX, allow_hyphen_values = true)]
    max_states: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Form {
    /// Prints a report.
    fn print<T: Serialize>(&self, report: &T, describe: fn(&T) -> String) -> Result<()> {
        match self.json {
            true => output::json(report),
            false => output::text(&describe(report)),
        }
    }
}

fn states(given: &str) -> Result<usize, String> {
    let states = super::settings::count(given)?;
    Ok(usize::try_from(states).unwrap_or(usize::MAX))
}

/// Parses a small number.
fn few(given: &str) -> Result<u8, String> {
    match given.parse() {
        Ok(number) if number <= 20 => Ok(number),
        _ => Err("use a whole number from 0 to 20".to_owned()),
    }
}

/// What a search of this case found.
fn finding(
    case: &str,
    found: Found,
    states: usize,
    what: Option<&str>,
    trace: Option<&str>,
    seconds: f64,
) -> String {
    let what = what.unwrap_or_default();
    match found {
        Found::Holds => {
            format!("{case}: holds\n{states} states, all of them searched, in {seconds:.2} s\n")
        }
        Found::NotExhausted => format!(
            "{case}: not exhausted: {what}\n{states} states were searched and nothing is wrong so \
             far; there are more. Nothing is claimed: allow more with --max-states, or search a \
             smaller case\n"
        ),
        // A comment, so that the whole output is a text that `lab epochs replay` takes.
        found => {
            let (word, trace) = (searched::word(found), trace.unwrap_or_default());
            format!("# {case}: {word}: {what}\n{trace}\n")
        }
    }
}
