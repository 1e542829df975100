//! `soloist lab worst`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use soloist_algorithms::{Channels, Choice, NodeId, Start};
use soloist_lab::adversary::{Found, Hunt};
use soloist_lab::report::cost;
use soloist_lab::search::{Aim, Case, ENDLESS};

use super::check::{self, Requests, describe_setting};
use super::settings;
use crate::{Verdict, output};

/// Look for the worst run of a cluster that is too large to be searched
///
/// A local search changes the order of events a little at a time and keeps what makes the run
/// worse: more messages per entry, or a waiter that is overtaken more often. For messages, requests
/// that are made one at a time are tried first. Messages are counted up to the moment when they are
/// most per entry, while no request waits and no message is in flight; a token that circulates
/// counts only while a node waits. The worst run found is printed as a scenario, which `soloist lab
/// replay` plays back. It shows that such a run exists; it does not show that there is no worse
/// one. `soloist lab check --most` finds the worst run of a small cluster.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 success; 2 invalid input.

Examples:
  soloist lab worst -a maekawa -n 13
  soloist lab worst -a raymond -n 15 --shape kary:2 --most overtaking
  soloist lab worst -a maekawa -n 21 --tries 200000 --out worst.txt")]
pub(crate) struct Args {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A")]
    algorithm: String,

    /// Number of nodes
    #[arg(long, short, value_name = "N", value_parser = settings::nodes, allow_hyphen_values = true)]
    nodes: usize,

    /// Requests per node at most: a number, or a list with one for each node, such as 2,1,0
    #[arg(long, short, value_name = "R", value_parser = check::requests, default_value = "1", allow_hyphen_values = true)]
    requests: Requests,

    /// What is to be as large as possible: messages (per entry) or overtaking
    #[arg(long, value_name = "WHAT", value_parser = check::aim, default_value = "messages", allow_hyphen_values = true)]
    most: Aim,

    /// Arrangement of the nodes: one of the algorithm's shapes, or file:PATH [default: the paper's
    /// own, nearest to N]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    shape: Option<String>,

    /// Variants of the rules, separated by commas, such as as-published
    #[arg(
        long,
        value_name = "V",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    variant: String,

    /// Whether messages between two nodes keep their order: fifo or any [default: what the
    /// algorithm assumes]
    #[arg(long, value_name = "C", value_parser = Channels::from_str, allow_hyphen_values = true)]
    channels: Option<Channels>,

    /// Node where the token starts
    #[arg(long, value_name = "NODE", value_parser = settings::node, default_value = "0", allow_hyphen_values = true)]
    home: u32,

    /// Number of runs to try, beside those of requests made one at a time
    #[arg(long, value_name = "K", value_parser = settings::count, default_value = "20000", allow_hyphen_values = true)]
    tries: u64,

    /// Seed of the random generator; the same seed gives the same result
    #[arg(long, value_name = "S", value_parser = settings::seed, default_value = "1", allow_hyphen_values = true)]
    seed: u64,

    /// Write the scenario to this file instead of the output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let hunt = self.hunt()?;
        let bar = output::progress_bar(self.tries, "runs");
        let found = hunt.run(&|| bar.inc(1))?;
        bar.finish_and_clear();
        if let Some(path) = &self.out {
            std::fs::write(path, &found.transcript)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if self.json {
            output::json(&found)?;
        } else {
            output::text(&self.describe(&found))?;
        }
        Ok(Verdict::Well)
    }

    fn hunt(&self) -> Result<Hunt> {
        let choice = Choice::parse(&self.algorithm, &self.variant)?;
        let mut case = Case {
            shape: settings::read_shape(self.shape.as_deref())?,
            start: Start::idle(NodeId::new(self.home)),
            requests: self.requests.per_node(self.nodes),
            ..Case::new(choice, self.nodes, 1)
        };
        if case.requests.contains(&ENDLESS) {
            bail!("a run has to end: give --requests a number");
        }
        if let Some(channels) = self.channels {
            case.limits.channels = channels;
        }
        Ok(Hunt {
            case,
            aim: self.most,
            seed: self.seed,
            tries: self.tries,
        })
    }

    fn describe(&self, found: &Found) -> String {
        let what = match self.most {
            Aim::Messages => format!(
                "{} ({:.3} per entry)",
                cost(found.messages, found.entries),
                found.messages_per_entry()
            ),
            Aim::Overtaking => format!("a waiter is overtaken {} times", found.overtaken),
        };
        let line = format!(
            "# {}: {what}; the worst of {} runs, which proves no bound\n",
            describe_setting(&found.setting),
            found.tries
        );
        match &self.out {
            Some(path) => format!("{line}# saved as {}\n", path.display()),
            None => line + &found.transcript,
        }
    }
}
