//! `soloist lab epochs check`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use soloist_algorithms::Choice;
use soloist_core::rules::RuleSettings;
use soloist_lab::epochs::check::{Case, Report};
use soloist_lab::epochs::fault::Fault;
use soloist_lab::search::Verdict as Found;

use super::{fault, list};
use crate::lab::settings;
use crate::{Verdict, memory, output};

const EXPLANATION: &str = "\
What is checked on every step: at most one client is inside, or may rely on being so; fences rise; \
no node enters without a lease; no message of a correct member is refused; and no hold is lost on a \
node that no fault has hit. From every state in which time is over and nothing is in flight, all \
requests must be served without further faults.

A violation is printed as text, a shortest one, which `soloist lab epochs replay` plays back.

Exit codes: 0 everything holds; 1 a violation; 2 invalid input; 3 not exhausted: there are more \
states than allowed, or than fit in memory, and nothing is claimed.

Faults:
  crash    a node crashes for good
  pause    the timers of the first node stop
  apart    the first node reports that it cannot reach the second
  cut      messages between a node and the keepers are lost
  slow     a renewal of the first node, or its answer, arrives at any time
  lost     a message between members is lost, and the first node notices
  depose   a leader is elected; the old one, and perhaps a node, does not know
  leave    the first node is told to stop

Examples:
  soloist lab epochs check --nodes 3 --fault crash
  soloist lab epochs check --algorithm maekawa --nodes 2 --fault slow,cut
  soloist lab epochs check --nodes 2 --fault depose --steps 0 --requests 1";

/// Search every interleaving of a small cluster with leases and a few faults
///
/// When a client requests and releases, when a fault happens, when time advances and which message
/// arrives next are all free choices. The search visits every reachable state. Time advances in
/// steps of a second, and the lease is three seconds.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub struct Args {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Variants of the rules, separated by commas, such as as-published
    #[arg(
        long,
        value_name = "V",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    variant: String,

    #[arg(
        long,
        short,
        help = format!("Number of nodes, {} to {}", Case::NODES_MIN, Case::NODES_MAX),
        value_name = "N",
        value_parser = settings::nodes,
        default_value = "3",
        allow_hyphen_values = true
    )]
    nodes: usize,

    /// Faults that may happen, each once, separated by commas; repeat a fault to allow it twice
    #[arg(long, short, value_name = "F", value_delimiter = ',', value_parser = fault, allow_hyphen_values = true)]
    fault: Vec<Fault>,

    /// Number of requests of clients, on the first two nodes
    #[arg(long, short, value_name = "R", default_value = "2", allow_hyphen_values = true, value_parser = few)]
    requests: u8,

    /// Number of steps of time, a second each [default: what the effects of the faults take]
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = few)]
    steps: Option<u8>,

    /// Give up after this many states
    #[arg(long, value_name = "M", value_parser = settings::count, default_value_t = Case::STATES_MAX as u64, allow_hyphen_values = true)]
    max_states: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A report with its time.
#[derive(Serialize)]
struct Timed {
    #[serde(flatten)]
    report: Report,
    faults: Vec<Fault>,
    seconds: f64,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let choice = Choice::parse(&self.algorithm, &self.variant)?;
        let mut case = Case::new(choice, self.nodes, &self.fault)?;
        case.budget.requests = self.requests;
        case.budget.steps = self.steps.unwrap_or(case.budget.steps);
        case.states_max = usize::try_from(self.max_states).unwrap_or(usize::MAX);
        let timed = self.search(&case);
        if self.json {
            output::json(&timed)?;
        } else {
            output::text(&describe(&timed))?;
        }
        Ok(match timed.report.verdict {
            Found::Holds => Verdict::Well,
            Found::NotExhausted => Verdict::Unknown,
            Found::Broken | Found::Deadlock | Found::Starvation | Found::Unrest => Verdict::Failed,
        })
    }

    fn search(&self, case: &Case) -> Timed {
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is right");
        let bar = ProgressBar::new_spinner().with_style(style);
        let begin = Instant::now();
        let mut looked_at = begin;
        let report = case.run(&mut |progress| {
            if looked_at.elapsed() < Duration::from_millis(100) {
                return true;
            }
            looked_at = Instant::now();
            let rate = progress.states as f64 / begin.elapsed().as_secs_f64().max(1e-3) / 1e3;
            bar.set_message(format!(
                "{} states, depth {}, {rate:.0} thousand states/s",
                progress.states, progress.depth
            ));
            bar.tick();
            !memory::is_short()
        });
        bar.finish_and_clear();
        Timed {
            report,
            faults: self.fault.clone(),
            seconds: begin.elapsed().as_secs_f64(),
        }
    }
}

fn describe(timed: &Timed) -> String {
    let Timed {
        report, seconds, ..
    } = timed;
    let faults = match timed.faults.is_empty() {
        true => "no fault".to_owned(),
        false => list(timed.faults.iter().copied()),
    };
    let mut text = format!(
        "{}, {} nodes, {faults}, {} requests, {} steps: ",
        report.label(),
        report.nodes,
        report.budget.requests,
        report.budget.steps
    );
    let states = report.states;
    let what = report.what.as_deref().unwrap_or_default();
    let _ = match report.verdict {
        Found::Holds => writeln!(
            text,
            "holds\n{states} states, all of them searched, in {seconds:.2} s"
        ),
        Found::NotExhausted => writeln!(
            text,
            "not exhausted: {what}\n{states} states were searched without a violation; there are \
             more. Nothing is claimed: allow more with --max-states, or search a smaller case"
        ),
        _ => {
            // A comment, so that the whole output is a text that `lab epochs replay` takes.
            text.insert_str(0, "# ");
            let trace = report.text.as_deref().unwrap_or_default();
            writeln!(text, "BROKEN: {what}\n{trace}")
        }
    };
    text
}

/// Maximum number of requests, and of steps. Searches of this size do not end.
const FEW_MAX: u8 = 20;

fn few(given: &str) -> Result<u8, String> {
    match given.parse() {
        Ok(number) if number <= FEW_MAX => Ok(number),
        _ => Err(format!("use a whole number from 0 to {FEW_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use soloist_lab::epochs::text;

    use super::*;

    /// No search of the real rules finds a violation, so the report is made up.
    #[test]
    fn a_violation_is_printed_as_a_text_that_can_be_replayed() {
        let choice = Choice::parse("raymond", "").unwrap();
        let case = Case::new(choice, 2, &[Fault::Cut]).unwrap();
        let report = Report {
            verdict: Found::Broken,
            states: 7,
            what: Some("n0 and n1 are inside".to_owned()),
            text: Some("# n0 and n1 are inside\nalgorithm raymond\nnodes 2\n> tick\n".to_owned()),
            ..case.run(&mut |_| false)
        };
        let timed = Timed {
            report,
            faults: vec![Fault::Cut],
            seconds: 1.0,
        };
        let printed = describe(&timed);
        let head = "# raymond, 2 nodes, cut, 2 requests, 4 steps: BROKEN: n0 and n1 are inside\n";
        assert!(printed.starts_with(head), "{printed}");
        text::replay(&printed).unwrap();
    }
}
