//! `soloist lab`: the algorithms under simulation.

mod compare;
mod list;
mod run;
mod settings;
mod swarm;

use anyhow::Result;
use clap::Subcommand;

use crate::Verdict;

// What each does is said at its arguments.
#[derive(Subcommand)]
pub enum Command {
    List(list::Args),
    Run(run::Args),
    Compare(compare::Args),
    Swarm(swarm::Args),
}

impl Command {
    pub fn run(self) -> Result<Verdict> {
        match self {
            Command::List(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Swarm(args) => args.run(),
        }
    }
}
