//! `soloist lab`: simulation and exhaustive search of the algorithms and of the epochs.

mod check;
mod claims;
mod compare;
mod epochs;
mod list;
mod most;
mod play;
mod plot;
mod replay;
mod reproduce;
mod run;
mod searched;
mod settings;
mod suite;
mod swarm;
mod trace;
mod worst;

use anyhow::Result;
use clap::Subcommand;

use crate::Verdict;

// The help of each subcommand is at its `Args`.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Run(run::Args),
    Compare(compare::Args),
    Check(check::Args),
    Play(play::Args),
    Replay(replay::Args),
    Suite(suite::Args),
    Claims(claims::Args),
    Reproduce(reproduce::Args),
    Swarm(swarm::Args),
    Worst(worst::Args),
    /// Simulate, search and replay changes of epoch
    #[command(subcommand)]
    Epochs(epochs::Command),
}

impl Command {
    pub(crate) fn run(self) -> Result<Verdict> {
        match self {
            Command::List(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Play(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Suite(args) => args.run(),
            Command::Claims(args) => args.run(),
            Command::Reproduce(args) => args.run(),
            Command::Swarm(args) => args.run(),
            Command::Worst(args) => args.run(),
            Command::Epochs(command) => command.run(),
        }
    }
}
