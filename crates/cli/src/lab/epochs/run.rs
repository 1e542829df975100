//! `soloist lab epochs run`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::RuleSettings;
use soloist_lab::epochs::fault::Fault;
use soloist_lab::epochs::run::{Run, Summary, run_seeds};

use super::{fault, list};
use crate::duration::{self, Given};
use crate::lab::settings;
use crate::{Verdict, output};

/// Maximum number of failed runs to print. JSON has all of them.
const FAILURES_SHOWN: usize = 20;

/// The longest phase with faults.
const LENGTH_MAX: Duration = Duration::from_secs(24 * 3600);

const EXPLANATION: &str = "\
Clients on all nodes acquire three locks, hold them for a while, and release them or forget to. \
After the phase with faults, all faults end, and every request must be served within two simulated \
minutes. On every grant, no other client may rely on the lock, and its fence must be higher than \
all before. Clocks of nodes and leaders differ as much as the lease allows.

A failed run is printed with the command that repeats it.

Exit codes: 0 success; 1 a run failed; 2 invalid input.

Faults:
  crash    a node crashes, and starts again some time later
  pause    a node's process is paused
  suspend  a node's machine sleeps for a moment
  apart    messages from one member to another wait
  cut      messages from a node to the keepers, or back, are lost
  slow     messages take long, to all or between a node and the keepers
  lost     2 % of the messages between nodes and keepers are lost
  depose   another leader is elected; the old one may not learn of it for long
  leave    a node stops in an orderly way, and starts again
  clocks   clocks run at half or double speed, beyond what leases tolerate:
           holds may overlap, and only fences tell them apart (not by default)
  none     no fault at all

Examples:
  soloist lab epochs run --algorithm maekawa --nodes 7 --seed 7
  soloist lab epochs run --nodes 5 --seeds 100 --fault crash,pause
  soloist lab epochs run --nodes 3 --length 10s --trace";

/// Run a cluster with leases and random faults in simulated time
///
/// The seed determines all random choices: what clients do, how long messages take, which faults
/// happen and when. The same seed gives the same run.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub(crate) struct Args {
    #[command(flatten)]
    algorithm: settings::LockAlgorithm,

    #[arg(
        long,
        short,
        help = format!("Number of nodes, at most {}", Run::NODES_MAX),
        value_name = "N",
        value_parser = nodes,
        default_value = "5",
        allow_hyphen_values = true
    )]
    nodes: usize,

    /// Seed of the run, or of the first one
    #[arg(long, value_name = "S", value_parser = settings::seed, default_value = "1", allow_hyphen_values = true)]
    seed: u64,

    /// Number of runs, with consecutive seeds
    #[arg(long, value_name = "K", value_parser = settings::count, default_value = "1", allow_hyphen_values = true)]
    seeds: u64,

    /// Faults that may happen, separated by commas, or none [default: all but clocks]
    #[arg(long, short, value_name = "F", value_delimiter = ',', value_parser = fault_or_none, allow_hyphen_values = true)]
    fault: Option<Vec<Option<Fault>>>,

    #[arg(
        long,
        help = format!("Length of a lease, {}", duration::range(Lease::LEAST, Lease::MOST)),
        value_name = "TIME",
        value_parser = lease,
        default_value = "3s",
        allow_hyphen_values = true
    )]
    lease: Given,

    /// Simulated length of the phase with faults
    #[arg(long, value_name = "TIME", value_parser = length, default_value = "60s", allow_hyphen_values = true)]
    length: Given,

    #[arg(
        long,
        value_name = "T",
        value_parser = turns,
        allow_hyphen_values = true,
        help = format!(
            "How many local clients a node serves in a row [default: 1 to {}, by the seed]",
            Run::TURNS_MAX
        )
    )]
    turns: Option<u32>,

    /// Print everything that happens, one line each, before the summary
    #[arg(long, conflicts_with = "json")]
    trace: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let run = self.first()?;
        let summary = if self.trace {
            if self.seeds > 1 {
                bail!("--trace prints one run: remove --seeds");
            }
            let (report, lines) = run.traced();
            for line in lines {
                if !output::line_is_read(&format!("{line}\n"))? {
                    break;
                }
            }
            output::text("\n")?;
            Summary::of(&run, vec![report])
        } else {
            let bar = output::progress_bar(self.seeds, "runs");
            let summary = run_seeds(&run, self.seeds, &|| bar.inc(1));
            bar.finish_and_clear();
            summary
        };
        if self.json {
            output::json(&summary)?;
        } else {
            output::text(&self.describe(&summary))?;
        }
        complain(&summary);
        Ok(Verdict::of(summary.is_well()))
    }

    fn first(&self) -> Result<Run> {
        let choice = self.algorithm.choice()?;
        let usual =
            Run::new(choice, self.nodes, self.seed).context("a node cannot use these rules")?;
        let faults = match &self.fault {
            None => usual.faults.clone(),
            Some(given) => {
                let faults: BTreeSet<_> = given.iter().flatten().copied().collect();
                if !faults.is_empty() && given.contains(&None) {
                    bail!("--fault: use none, or names of faults, not both");
                }
                faults
            }
        };
        Ok(Run {
            faults,
            lease: Lease {
                length: self.lease.0,
                ..usual.lease
            },
            length: self.length.0,
            turns: self.turns,
            ..usual
        })
    }

    fn describe(&self, summary: &Summary) -> String {
        let total = &summary.total;
        let seeds = match self.seeds {
            1 => format!("seed {}", summary.seed),
            number => {
                let last = summary.seed.wrapping_add(number - 1);
                format!("seeds {} to {last}", summary.seed)
            }
        };
        let outcome = match summary.failures.len() {
            0 => "all is well".to_owned(),
            1 if self.seeds == 1 => "FAILED".to_owned(),
            1 => "1 run FAILED".to_owned(),
            failed => format!("{failed} runs FAILED"),
        };
        let mut text = format!(
            "{}, {} nodes, lease {}, {} with faults, {seeds}: {outcome}\n\n",
            summary.label(),
            summary.nodes,
            self.lease,
            self.length
        );
        let injected: u64 = total.faults.values().sum();
        let faults = total.faults.iter();
        let faults: Vec<_> = faults
            .map(|(name, number)| format!("{number} {name}"))
            .collect();
        let allowed = match summary.faults.is_empty() {
            true => "none".to_owned(),
            false => list(summary.faults.iter().copied()),
        };
        let _ = writeln!(text, "faults allowed  {allowed}");
        let _ = write!(text, "faults injected {injected}");
        if injected > 0 {
            let _ = write!(text, ": {}", faults.join(", "));
        }
        let _ = writeln!(
            text,
            "\nepochs          {}, under {} leaders",
            total.epochs, total.leaders
        );
        let _ = writeln!(
            text,
            "members gone    evicted {}, left {}",
            total.evictions, total.departures
        );
        let _ = writeln!(
            text,
            "acquisitions    {}; takeovers from lost holders {}; holds lost {}",
            total.acquisitions, total.takeovers, total.holds_lost
        );
        if total.overlaps + total.stale_fences > 0 || summary.faults.contains(&Fault::Clocks) {
            let _ = writeln!(
                text,
                "overlaps        {}, {} of them with a stale fence: clocks ran beyond the margin",
                total.overlaps, total.stale_fences
            );
        }
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let _ = writeln!(text, "longest wait    {:.1} s", seconds(total.wait_ms_max));
        let _ = writeln!(text, "simulated time  {:.0} s", seconds(total.simulated_ms));
        text
    }
}

/// Prints the failed runs on stderr, with the commands that repeat them.
fn complain(summary: &Summary) {
    for report in summary.failures.iter().take(FAILURES_SHOWN) {
        let reason = report.failure.as_deref().unwrap_or_default();
        output::complain(&format!(
            "failed: seed {}: {reason}\n  {}",
            report.seed, report.command
        ));
    }
    let failed = summary.failures.len();
    if failed > FAILURES_SHOWN {
        output::complain(&format!(
            "{failed} runs failed, the first {FAILURES_SHOWN} are shown; --json lists them all"
        ));
    }
}

fn nodes(given: &str) -> Result<usize, String> {
    match given.parse() {
        Ok(nodes) if (1..=Run::NODES_MAX).contains(&nodes) => Ok(nodes),
        _ => Err(format!("use 1 to {} nodes", Run::NODES_MAX)),
    }
}

fn turns(given: &str) -> Result<u32, String> {
    match given.parse() {
        Ok(turns) if (1..=RuleSettings::TURNS_MOST).contains(&turns) => Ok(turns),
        _ => Err(format!("use 1 to {}", RuleSettings::TURNS_MOST)),
    }
}

fn fault_or_none(given: &str) -> Result<Option<Fault>, String> {
    if given == "none" {
        return Ok(None);
    }
    fault(given)
        .map(Some)
        .map_err(|error| format!("{error}, or none"))
}

fn lease(given: &str) -> Result<Given, String> {
    duration::parse_within(given, Lease::LEAST, Lease::MOST)
}

fn length(given: &str) -> Result<Given, String> {
    duration::parse_within(given, Duration::from_secs(1), LENGTH_MAX)
}
