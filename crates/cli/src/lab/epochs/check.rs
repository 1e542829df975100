//! `soloist lab epochs check`.

use anyhow::Result;
use serde::Serialize;
use soloist_lab::epochs::check::{Case, Report};
use soloist_lab::epochs::fault::Fault;

use super::{Form, fault, few, finding, list};
use crate::Verdict;
use crate::lab::{searched, settings};

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
pub(crate) struct Args {
    #[command(flatten)]
    algorithm: settings::LockAlgorithm,

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

    #[command(flatten)]
    form: Form,
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
    pub(crate) fn run(self) -> Result<Verdict> {
        let choice = self.algorithm.choice()?;
        let mut case = Case::new(choice, self.nodes, &self.fault)?;
        case.budget.requests = self.requests;
        case.budget.steps = self.steps.unwrap_or(case.budget.steps);
        case.states_max = self.form.max_states;
        let (report, seconds) = searched::watched(|watch| case.run(watch));
        let timed = Timed {
            report,
            faults: self.fault,
            seconds,
        };
        self.form.print(&timed, describe)?;
        Ok(searched::outcome(timed.report.verdict))
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
    let case = format!(
        "{}, {} nodes, {faults}, {} requests, {} steps",
        report.label(),
        report.nodes,
        report.budget.requests,
        report.budget.steps
    );
    let (what, trace) = (report.what.as_deref(), report.text.as_deref());
    finding(&case, report.verdict, report.states, what, trace, *seconds)
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::Choice;
    use soloist_lab::epochs::text;
    use soloist_lab::search::Verdict as Found;

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
