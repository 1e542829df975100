//! `soloist lab epochs`: leases, crashes and changes of epoch.

mod check;
mod replay;
mod run;

use anyhow::Result;
use clap::Subcommand;
use soloist_lab::epochs::fault::{Fault, NotAFault};

use crate::Verdict;

// The help of each subcommand is at its `Args`.
#[derive(Subcommand)]
pub enum Command {
    Run(run::Args),
    Check(check::Args),
    Replay(replay::Args),
}

impl Command {
    pub fn run(self) -> Result<Verdict> {
        match self {
            Command::Run(args) => args.run(),
            Command::Check(args) => args.run(),
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
