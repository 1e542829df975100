//! `soloist lab epochs keepers`.

use anyhow::Result;
use serde::Serialize;
use soloist_lab::keepers::check::{Case, NotAPreset, Preset, Report};
use soloist_lab::keepers::setup::{Budget, NotAVariant, Variant};

use super::{Form, few, finding};
use crate::Verdict;
use crate::lab::searched;

const EXPLANATION: &str = "\
Raft is reduced to terms, votes, logs and commits by majority. Which node may have a store, which \
store is set aside and which keeper is answered is decided by the code that runs in a node.

What is checked: no keeper leads without everything that was agreed on, no keeper forgets or \
contradicts it, no keeper leads beside a later generation of the cluster, and no node joins a \
second cluster. From every state in which a majority of the keepers is up and has lost no store, \
a leader can be elected without further faults.

A violation is printed as text, a shortest one, which `soloist lab epochs replay` plays back.

Exit codes: 0 all is well, 1 a violation, 2 wrong input, 3 not exhausted (more states than allowed \
or than memory holds: nothing is claimed).

Cases:
  replaced-keeper   one of three keepers is down and may return; one may be
                    replaced by another node; one machine may be re-imaged
  second-promotion  the same, and a demoted node may be promoted again
  bootstrap         three keepers form a cluster; one may be re-imaged
  sole-keeper       the only keeper is replaced and deployed again
  recovery          all three keepers go down; one is recovered, others return

Variants, each of which breaks a rule:
  empty-store-votes          a node without a store votes, with an empty one
  refuse-unknown             a keeper answers only keepers that it knows
  set-aside-uncommitted      a change that is not committed retires a store
  leaders-remove-themselves  a leader proposes its own removal
  ids-from-names             a node that is promoted again has its old id
  ignore-successors          a keeper ignores a later generation

Examples:
  soloist lab epochs keepers --case bootstrap
  soloist lab epochs keepers --case recovery --reimages 1
  soloist lab epochs keepers --variant empty-store-votes";

/// Search every interleaving of a small model of the keepers
///
/// Machines crash and return with their old disks or re-imaged, and an operator promotes, demotes
/// and recovers keepers. When each of these happens, which keeper stands for election and how far a
/// change of the keepers gets are all free choices. The search visits every reachable state.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub(crate) struct Args {
    /// The cluster, and what may happen to it; the options below change how often
    #[arg(long, short, value_name = "CASE", value_parser = preset, default_value = "replaced-keeper")]
    case: Preset,

    /// Rules to break, separated by commas
    #[arg(long, value_name = "V", value_delimiter = ',', value_parser = variant, allow_hyphen_values = true)]
    variant: Vec<Variant>,

    /// How often a node is promoted
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    promotions: Option<u8>,

    /// How often a keeper is demoted
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    demotions: Option<u8>,

    /// How often a machine goes down
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    crashes: Option<u8>,

    /// How often a machine that is down returns without its data
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    reimages: Option<u8>,

    /// How often the cluster is recovered, while all machines are down
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    recoveries: Option<u8>,

    /// How often a keeper stands for election
    #[arg(long, value_name = "N", value_parser = few, allow_hyphen_values = true)]
    elections: Option<u8>,

    /// Let messages reach any subset of the keepers, also where the case does not
    #[arg(long)]
    partitions: bool,

    /// Do not check that a majority can make progress; this takes most of the time
    #[arg(long)]
    safety_only: bool,

    #[command(flatten)]
    form: Form,
}

/// A report with its time.
#[derive(Serialize)]
struct Timed {
    #[serde(flatten)]
    report: Report,
    seconds: f64,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let case = self.case();
        let (report, seconds) = searched::watched(|watch| case.run(watch));
        let timed = Timed {
            report: report?,
            seconds,
        };
        self.form.print(&timed, describe)?;
        Ok(searched::outcome(timed.report.verdict))
    }

    fn case(&self) -> Case {
        let mut case = Case::new(self.case);
        case.states_max = self.form.max_states;
        let setup = &mut case.setup;
        let usual = setup.budget;
        setup.budget = Budget {
            promotions: self.promotions.unwrap_or(usual.promotions),
            demotions: self.demotions.unwrap_or(usual.demotions),
            crashes: self.crashes.unwrap_or(usual.crashes),
            reimages: self.reimages.unwrap_or(usual.reimages),
            recoveries: self.recoveries.unwrap_or(usual.recoveries),
            elections: self.elections.unwrap_or(usual.elections),
        };
        setup.variants = self.variant.iter().copied().collect();
        setup.partitions |= self.partitions;
        setup.checks_progress &= !self.safety_only;
        case
    }
}

fn describe(timed: &Timed) -> String {
    let Timed { report, seconds } = timed;
    let Budget {
        promotions,
        demotions,
        crashes,
        reimages,
        recoveries,
        elections,
    } = report.budget;
    let mut case = report.case.to_owned();
    if !report.variant.is_empty() {
        case += &format!(" ({})", report.variant);
    }
    for (number, one, many) in [
        (promotions, "promotion", "promotions"),
        (demotions, "demotion", "demotions"),
        (crashes, "crash", "crashes"),
        (reimages, "re-imaged machine", "re-imaged machines"),
        (recoveries, "recovery", "recoveries"),
        (elections, "election", "elections"),
    ] {
        match number {
            0 => {}
            1 => case += &format!(", 1 {one}"),
            _ => case += &format!(", {number} {many}"),
        }
    }
    if report.partitions {
        case += ", partitions";
    }
    if !report.checks_progress {
        case += ", safety only";
    }
    let (what, trace) = (report.what.as_deref(), report.text.as_deref());
    finding(&case, report.verdict, report.states, what, trace, *seconds)
}

fn preset(given: &str) -> Result<Preset, String> {
    given.parse().map_err(|error: NotAPreset| error.to_string())
}

fn variant(given: &str) -> Result<Variant, String> {
    given
        .parse()
        .map_err(|error: NotAVariant| error.to_string())
}
