//! `soloist lab`: the algorithms under simulation.

mod compare;
mod list;
mod run;
mod settings;

use anyhow::Result;
use clap::Subcommand;

use crate::Verdict;

#[derive(Subcommand)]
pub enum Command {
    /// List the algorithms with their papers, channels, shapes and variants.
    List(list::Args),
    /// Simulate one algorithm and measure it.
    Run(run::Args),
    /// Simulate many algorithms, sizes and loads, and show them beside each other.
    Compare(compare::Args),
}

impl Command {
    pub fn run(self) -> Result<Verdict> {
        match self {
            Command::List(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Compare(args) => args.run(),
        }
    }
}
