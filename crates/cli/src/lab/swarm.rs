//! `soloist lab swarm`.

use std::time::{Duration, Instant};

use anyhow::Result;
use soloist_algorithms::Choice;
use soloist_lab::swarm::{self, Among, Swarm, Tally};

use super::settings;
use crate::table::Table;
use crate::{Verdict, output};

/// Number of runs if neither --runs nor --minutes is given.
const RUNS: u64 = 1000;

/// Maximum number of failed runs to print. JSON has all of them.
const FAILURES_SHOWN: usize = 20;

/// Run many random simulations and look for faults
///
/// The seed of a run determines everything: algorithm, variants, nodes, shape, start, load, delays,
/// order of messages and hold. If the algorithm recovers from crashes, it also determines crashes
/// of nodes during the first half of the entries. Mutual exclusion is checked at each step, and
/// every request must be served in the end. Rules as printed that are known to be wrong are left
/// out unless --variant asks for them.
///
/// For each failed run, a command that repeats it is printed. The same seeds give the same result
/// on any number of cores.
#[derive(clap::Args)]
#[command(
    after_long_help = "Exit codes: 0 success; 1 a run failed; 2 invalid input.\n\n\
    Examples:\n  soloist lab swarm --runs 5000 --seed 1\n  soloist lab swarm --minutes 10 --json\n  \
    soloist lab swarm --algorithm raymond --variant as-published --runs 100"
)]
pub(crate) struct Args {
    #[arg(
        long,
        value_name = "K",
        value_parser = settings::count,
        allow_hyphen_values = true,
        help = format!(
            "Number of runs, with consecutive seeds [default: {RUNS}; with --minutes, as many as fit]"
        )
    )]
    runs: Option<u64>,

    /// First seed
    #[arg(long, value_name = "S", value_parser = settings::seed, default_value = "1", allow_hyphen_values = true)]
    seed: u64,

    /// Start no more runs after this many minutes
    #[arg(long, value_name = "M", value_parser = minutes, allow_hyphen_values = true)]
    minutes: Option<Duration>,

    /// Run only this algorithm, alias or preset
    #[arg(long, short, value_name = "A")]
    algorithm: Option<String>,

    /// Use these variants in every run, separated by commas; rules as printed are allowed
    #[arg(long, value_name = "V", requires = "algorithm")]
    variant: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let among = self.among()?;
        let runs = match (self.runs, self.minutes) {
            (Some(runs), _) => runs,
            (None, Some(_)) => u64::MAX,
            (None, None) => RUNS,
        };
        let begin = Instant::now();
        let in_time = || self.minutes.is_none_or(|limit| begin.elapsed() < limit);
        let swarm = match (self.runs, self.minutes) {
            (None, Some(limit)) => {
                let bar = output::progress_bar(limit.as_secs(), "seconds");
                let done = || bar.set_position(begin.elapsed().as_secs());
                let swarm = swarm::run(among, self.seed, runs, &in_time, &done)?;
                bar.finish_and_clear();
                swarm
            }
            _ => {
                let bar = output::progress_bar(runs, "runs");
                let swarm = swarm::run(among, self.seed, runs, &in_time, &|| bar.inc(1))?;
                bar.finish_and_clear();
                swarm
            }
        };
        if self.json {
            output::json(&swarm)?;
        } else {
            output::text(&table(&swarm).fit(output::width()))?;
        }
        complain(&swarm);
        Ok(Verdict::of(swarm.is_well()))
    }

    fn among(&self) -> Result<Among> {
        let Some(name) = &self.algorithm else {
            return Ok(Among::All);
        };
        let choice = Choice::parse(name, self.variant.as_deref().unwrap_or_default())?;
        let is_preset = choice.name != choice.kind.info().name;
        Ok(match self.variant {
            None if !is_preset => Among::Kind(choice.kind),
            _ => Among::Choice(choice),
        })
    }
}

fn minutes(given: &str) -> Result<Duration, String> {
    let allowed = || "use a number above 0, up to 1e6".to_owned();
    let minutes: f64 = given.parse().map_err(|_| allowed())?;
    if minutes > 0.0 && minutes <= 1e6 {
        Ok(Duration::from_secs_f64(60.0 * minutes))
    } else {
        Err(allowed())
    }
}

fn table(swarm: &Swarm) -> Table {
    let mut table = Table::new([
        "algorithm",
        "runs",
        "entries",
        "messages",
        "crashes",
        "violations",
        "unserved",
        "failed runs",
    ])
    .optional(&["messages", "entries"]);
    let mut row = |tally: &Tally| {
        let counts = [
            tally.runs,
            tally.entries,
            tally.messages,
            tally.crashes,
            tally.violations,
            tally.unserved,
            tally.failed,
        ];
        let cells = counts.iter().map(u64::to_string);
        table.row(std::iter::once(tally.algorithm.to_owned()).chain(cells));
    };
    swarm.algorithms.iter().for_each(&mut row);
    row(&swarm.total());
    table
}

/// Prints the failed runs on stderr, with the commands that repeat them.
fn complain(swarm: &Swarm) {
    for failure in swarm.failures.iter().take(FAILURES_SHOWN) {
        output::complain(&format!(
            "failed: seed {}: {}\n  {}",
            failure.seed, failure.reason, failure.command
        ));
    }
    let failed = swarm.failures.len();
    if failed > FAILURES_SHOWN {
        output::complain(&format!(
            "{failed} runs failed, the first {FAILURES_SHOWN} are shown; --json lists them all"
        ));
    }
}
