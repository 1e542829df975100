//! `soloist lab check`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::{Result, bail};
use soloist_algorithms::{Channels, Choice, NodeId, Start};
use soloist_lab::check::{Case, Crashes, ENDLESS, Verdict as Found};

use super::run::read_shape;
use super::searched::{self, Timed};
use super::settings;
use crate::{Verdict, output};

const EXPLANATION: &str = "\
What is checked in every state and on every step: at most one node is inside; a token algorithm has
one token; the paper's own invariants; entries follow the order of their requests, where the
algorithm orders them; fences rise, that is, a chain of messages leads from each entry to the next;
nothing a correct node sends is refused; and where nothing more can happen, everybody was served.
Then, over all endless runs that are fair (a message under way arrives some time, who is inside
leaves some time): nobody waits for ever.

A violation is printed as a scenario, a shortest one (of endless runs, a short one), which
`soloist lab replay` plays back. Smaller numbers of requests are searched first. After something less
than two inside, up to 5 million states are searched for that.

Exit codes: 0 all is well, 1 a violation, 2 wrong input, 3 not exhausted (more states than allowed
or than memory holds: nothing is claimed).

Examples:
  soloist lab check --algorithm raymond --nodes 5 --shape line --requests 2
  soloist lab check --algorithm raymond --nodes 3 --requests endless
  soloist lab check --algorithm maekawa --nodes 7 --requesters 0,1,2,3 --inside each
  soloist lab check --algorithm maekawa --variant as-published --nodes 4 --shape grid
  soloist lab check --algorithm raymond --nodes 3 --channels fifo --crashes 1
  soloist lab check --algorithm ricart-agrawala --nodes 3 --requests 2 --forget";

/// Search every interleaving of a small cluster
///
/// When a node requests, which message arrives next and when a node leaves are all free choices.
/// The search visits every reachable state.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub struct Args {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A")]
    algorithm: String,

    /// Number of nodes, at most 64
    #[arg(long, short, value_name = "N", value_parser = settings::nodes, allow_hyphen_values = true)]
    nodes: usize,

    /// Requests per node: a number up to 254, or endless (for algorithms without counters)
    #[arg(long, short, value_name = "R", value_parser = requests, default_value = "1", allow_hyphen_values = true)]
    requests: u8,

    /// Nodes that request, such as 0,2,5; the others only serve [default: all]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = settings::node, allow_hyphen_values = true)]
    requesters: Option<Vec<u32>>,

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

    /// Node where the token starts [default: the one inside, or 0]
    #[arg(long, value_name = "NODE", value_parser = settings::node, allow_hyphen_values = true)]
    home: Option<u32>,

    /// Node that is inside at the start, or each: every node in turn, then none
    #[arg(long, value_name = "NODE", value_parser = inside, allow_hyphen_values = true)]
    inside: Option<Inside>,

    /// Maximum number of crashes (raymond only)
    ///
    /// A node that crashes loses its state but not its messages, and then recovers.
    #[arg(long, value_name = "C", value_parser = crashes, default_value = "0", allow_hyphen_values = true)]
    crashes: u8,

    /// Let neighbours be down together, which is outside what recovery promises
    #[arg(long)]
    neighbours: bool,

    /// Let idle nodes be forgotten and recreated at any time, as in a real cluster
    ///
    /// Depending on the algorithm, a quiescent node is forgotten by itself, or all nodes are
    /// forgotten together when no message is in flight. The clock of one recreated node may jump
    /// ahead.
    #[arg(long)]
    forget: bool,

    /// Keep no history, which means fewer states; fences and the order of entries are not checked
    #[arg(long)]
    no_history: bool,

    /// Check only safety and deadlock, not endless runs; needs a tenth of the memory
    ///
    /// Deadlocks of nodes in recovery are not checked. If messages may overtake each other,
    /// partial-order reduction also makes the search visit fewer states: messages that their
    /// receiver only records arrive as late as possible.
    #[arg(long)]
    safety_only: bool,

    /// Ignore steps that put more messages than this in flight; nothing is claimed beyond them
    #[arg(long, value_name = "M", value_parser = count, allow_hyphen_values = true)]
    max_messages: Option<usize>,

    /// Give up after this many states
    #[arg(long, value_name = "M", value_parser = count, default_value_t = Case::STATES_MAX, allow_hyphen_values = true)]
    max_states: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which nodes start inside.
#[derive(Clone, Copy)]
enum Inside {
    One(u32),
    Each,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        if self.neighbours && self.crashes == 0 {
            bail!("--neighbours says who may crash together: give --crashes from 2 to 15 with it");
        }
        let mut reports = Vec::new();
        for start in self.starts() {
            let timed = self.search(start)?;
            let goes_on = timed.report.verdict == Found::Holds;
            reports.push(timed);
            if !goes_on {
                break;
            }
        }
        match (&reports[..], self.json) {
            ([one], true) => output::json(one)?,
            (all, true) => output::json(&all)?,
            (all, false) => {
                for timed in all {
                    output::text(&describe(timed))?;
                }
            }
        }
        let last = reports.last().expect("there is at least one start");
        Ok(match last.report.verdict {
            Found::Holds => Verdict::Well,
            Found::NotExhausted => Verdict::Unknown,
            Found::Broken | Found::Deadlock | Found::Starvation | Found::Unrest => Verdict::Failed,
        })
    }

    fn starts(&self) -> Vec<Start> {
        let home = |inside: Option<u32>| NodeId::new(self.home.or(inside).unwrap_or(0));
        let start = |inside: Option<u32>| Start {
            home: home(inside),
            inside: inside.map(NodeId::new),
        };
        match self.inside {
            None => vec![start(None)],
            Some(Inside::One(node)) => vec![start(Some(node))],
            Some(Inside::Each) => {
                let each = NodeId::all(self.nodes).map(|node| start(Some(node.index() as u32)));
                each.chain([start(None)]).collect()
            }
        }
    }

    fn search(&self, start: Start) -> Result<Timed> {
        let choice = Choice::parse(&self.algorithm, &self.variant)?;
        let requesters = self.requesters.as_ref();
        let case = Case {
            shape: read_shape(self.shape.as_deref())?,
            start,
            channels: self.channels,
            requesters: requesters.map(|nodes| {
                let nodes: BTreeSet<u32> = nodes.iter().copied().collect();
                nodes.into_iter().map(NodeId::new).collect()
            }),
            crashes: Crashes {
                most: self.crashes,
                neighbours_too: self.neighbours,
            },
            forgets: self.forget,
            keep_history: !self.no_history,
            endless_runs: !self.safety_only,
            messages_max: self.max_messages,
            states_max: self.max_states,
            ..Case::new(choice, self.nodes, self.requests)
        };
        searched::search(&case)
    }
}

fn describe(timed: &Timed) -> String {
    let Timed { report, .. } = timed;
    let mut text = String::new();
    let requests = match report.requests {
        Some(1) => "one request a node".to_owned(),
        Some(requests) => format!("{requests} requests a node"),
        None => "requests without end".to_owned(),
    };
    let _ = write!(
        text,
        "{}, {} nodes, {}, {}, {requests}",
        report.label(),
        report.nodes,
        report.shape,
        report.channels
    );
    if report.requesters.len() < report.nodes {
        let nodes: Vec<_> = report.requesters.iter().map(usize::to_string).collect();
        let _ = write!(text, " by {}", nodes.join(", "));
    }
    if let Some(inside) = report.inside {
        let _ = write!(text, ", {inside} inside at first");
    }
    match report.crashes {
        0 => {}
        1 => text.push_str(", one crash"),
        crashes => {
            let _ = write!(text, ", {crashes} crashes");
        }
    }
    if report.forgets {
        text.push_str(", forgetting");
    }
    text.push_str(": ");
    let states = report.states.unwrap_or_default();
    let _ = match (report.verdict, &report.what) {
        (Found::Holds, _) => {
            let millions = |rate: Option<f64>| rate.unwrap_or_default() / 1e6;
            let steps = match report.endless_runs {
                true => format!(
                    ", all steps {:.2} s ({:.2} million states/s)",
                    timed.graph_seconds,
                    millions(timed.graph_states_per_second),
                ),
                false => "; endless runs were not looked for".to_owned(),
            };
            writeln!(
                text,
                "holds\n{states} states, all of them searched, in {:.2} s; safety {:.2} s ({:.2} million states/s){steps}",
                timed.total_seconds,
                timed.seconds,
                millions(timed.states_per_second),
            )
        }
        (Found::NotExhausted, why) => writeln!(
            text,
            "not exhausted: {}\n{states} states were searched and nothing is wrong so far; there are more. Nothing \
             is claimed: allow more with --max-states, look for less with --safety-only or --no-history, or search a \
             smaller case",
            why.as_deref().unwrap_or_default()
        ),
        (found, what) => {
            let word = match found {
                Found::Deadlock => "DEADLOCK",
                Found::Starvation => "STARVATION",
                Found::Unrest => "UNREST",
                _ => "BROKEN",
            };
            let what = what.as_deref().unwrap_or_default();
            let transcript = report.transcript.as_deref().unwrap_or_default();
            // A comment, so that the whole output is a scenario that `lab replay` takes.
            text.insert_str(0, "# ");
            writeln!(text, "{word}: {what}\n{transcript}")
        }
    };
    text
}

fn requests(given: &str) -> Result<u8, String> {
    match given.parse() {
        Ok(requests) if (1..ENDLESS).contains(&requests) => Ok(requests),
        _ if given == "endless" => Ok(ENDLESS),
        _ => Err("use a number from 1 to 254, or endless".to_owned()),
    }
}

fn crashes(given: &str) -> Result<u8, String> {
    match given.parse() {
        Ok(crashes) if crashes <= 15 => Ok(crashes),
        _ => Err("use a number from 0 to 15".to_owned()),
    }
}

fn count(given: &str) -> Result<usize, String> {
    given
        .parse()
        .map_err(|_| "use a whole number from 0 up".to_owned())
}

fn inside(given: &str) -> Result<Inside, String> {
    if given == "each" {
        return Ok(Inside::Each);
    }
    settings::node(given)
        .map(Inside::One)
        .map_err(|_| "use a node's number, or each".to_owned())
}
