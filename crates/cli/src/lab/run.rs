//! `soloist lab run`.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;
use soloist_algorithms::{Choice, NodeId, Start};
use soloist_lab::simulate::{Crashes, Load, Report, Setup, Summary, simulate};

use super::settings;
use crate::show::count;
use crate::table::Table;
use crate::{Verdict, output};

const EXPLANATION: &str = "\
Loads:
  light         one request at a time, by a random node, after a pause
  heavy         every node requests again as soon as it leaves
  burst         all nodes request at the same time, one entry each
  poisson:RATE  RATE requests per message delay in total, by random nodes
  think:MEAN    every node pauses for a random time before it requests again

A waiter counts as overtaken by an entry that was requested after the waiter's own request had \
arrived, that is, after every message that it sent with its request was delivered. The response \
time starts with the request; with poisson, it includes the time until a busy node can request.

A crash loses a node's state, but not the messages in flight. Waiters of that node request again \
when it restarts, which is when all its messages have arrived. An entry ends when its node crashes \
inside. Neighbours are never down together. Crashes stop after half of the entries. Messages then \
keep their order if recovery needs it, unless --channels says otherwise.

Exit codes: 0 success; 1 two nodes were inside, or a request was left waiting; 2 invalid input.

Examples:
  soloist lab run -a raymond -n 31 --shape kary:2 --variant piggyback
  soloist lab run -a maekawa -n 13 --load light --delay constant --json
  soloist lab run -a raymond -n 31 --crashes 20:5
  soloist lab run -a torus --variant as-published -n 9 --load light";

/// Simulate one algorithm and measure it
///
/// Time is virtual and counted in message delays. A run makes exactly as many requests as the
/// number of entries, then drains, and no request may be left waiting. Mutual exclusion is checked
/// at each step.
///
/// Messages are counted as in the papers: one hop over a logical link is one message, and a message
/// from a node to itself is none. A token that never rests also moves while no node wants it. Such
/// a move is idle if it is sent while no node waits or is inside. Idle moves are not part of the
/// cost of an entry; they are reported per message delay of idle time.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub(crate) struct Args {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A")]
    algorithm: String,

    /// Number of nodes
    #[arg(long, short, value_name = "N", value_parser = settings::nodes, allow_hyphen_values = true)]
    nodes: usize,

    /// Arrangement of the nodes: one of the algorithm's shapes, or file:PATH [default: the paper's
    /// own, nearest to N]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    shape: Option<String>,

    /// Variants of the rules, separated by commas, such as piggyback,greedy or as-published
    #[arg(long, value_name = "V", default_value = "", hide_default_value = true)]
    variant: String,

    /// Which nodes request and when: light, heavy, burst, poisson:RATE or think:MEAN
    #[arg(
        long,
        value_name = "L",
        value_parser = settings::setting::<Load>,
        default_value = "heavy",
        allow_hyphen_values = true
    )]
    load: Load,

    /// Node where the token starts [default: the one inside, or 0]
    #[arg(long, value_name = "NODE", value_parser = settings::node, allow_hyphen_values = true)]
    home: Option<u32>,

    /// Node that is inside at the start; this is not counted as an entry
    #[arg(long, value_name = "NODE", value_parser = settings::node, allow_hyphen_values = true)]
    inside: Option<u32>,

    #[arg(
        long,
        value_name = "E",
        value_parser = settings::count,
        allow_hyphen_values = true,
        help = format!("Number of entries [default: {}; with burst, one per node]", Setup::ENTRIES)
    )]
    entries: Option<u64>,

    #[arg(
        long,
        value_name = "EVERY[:DOWN]",
        value_parser = settings::setting::<Crashes>,
        allow_hyphen_values = true,
        help = format!(
            "Mean time between crashes of random nodes, and how long each is down, in message \
             delays; only for algorithms that recover from crashes [default for DOWN: {}]",
            Crashes::DOWN
        )
    )]
    crashes: Option<Crashes>,

    #[command(flatten)]
    world: settings::World,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Timed {
    #[serde(flatten)]
    report: Report,
    wall_seconds: f64,
    events_per_second: f64,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let choice = Choice::parse(&self.algorithm, &self.variant)?;
        let entries = settings::entries_for(self.load, self.nodes, self.entries, Setup::ENTRIES)?;
        let setup = Setup {
            shape: settings::read_shape(self.shape.as_deref())?,
            start: self.start()?,
            crashes: self.crashes,
            ..self.world.setup(choice, self.nodes, self.load, entries)
        };
        let bar = output::progress_bar(entries, "entries");
        let begin = Instant::now();
        let report = simulate(&setup, &mut |entries| bar.set_position(entries))?;
        let wall_seconds = begin.elapsed().as_secs_f64();
        bar.finish_and_clear();
        let timed = Timed {
            events_per_second: report.events as f64 / wall_seconds.max(1e-9),
            report,
            wall_seconds,
        };
        if self.json {
            output::json(&timed)?;
        } else {
            output::text(&describe(&timed))?;
        }
        Ok(verdict(&timed.report))
    }

    fn start(&self) -> Result<Start> {
        let nodes = self.nodes;
        for node in [self.home, self.inside].into_iter().flatten() {
            if node as usize >= nodes {
                bail!("no node {node}: the {nodes} nodes are numbered from 0");
            }
        }
        let inside = self.inside.map(NodeId::new);
        let home = self.home.map(NodeId::new).or(inside);
        Ok(Start {
            home: home.unwrap_or(NodeId::new(0)),
            inside,
        })
    }
}

/// Prints what went wrong, if anything, on stderr.
fn verdict(report: &Report) -> Verdict {
    if let Some(first) = &report.first_violation {
        output::complain(&format!(
            "failed: {} violations, the first: {first}",
            report.violations
        ));
    }
    if report.unserved > 0 {
        output::complain(&format!(
            "failed: {} requests were left waiting",
            report.unserved
        ));
    }
    Verdict::of(report.is_well())
}

fn describe(timed: &Timed) -> String {
    let report = &timed.report;
    let measures = &report.measures;
    let mut page = String::new();
    let _ = writeln!(
        page,
        "{}, {}, shape {}, {} load, delay {}, channels {}, hold {}, seed {}\n",
        report.label(),
        count(report.nodes, "node"),
        report.shape,
        report.load,
        report.delay,
        report.channels,
        report.hold,
        report.seed,
    );
    let mut table = Table::new(["", "total", "per entry"]);
    let entries = measures.entries.max(1) as f64;
    let mut line = |name: &str, total: u64| {
        let per_entry = format!("{:.3}", total as f64 / entries);
        table.row([name.to_owned(), total.to_string(), per_entry]);
    };
    line("entries", measures.entries);
    line("messages", measures.messages);
    for (name, count) in &measures.messages_by_kind {
        line(&format!("  {name}"), *count);
    }
    let _ = writeln!(page, "{}", table.fit(output::width()));
    let mut table = Table::new(["in message delays", "mean", "p50", "p99", "max"]);
    let mut line = |name: &str, summary: &Summary| {
        let numbers = [summary.mean, summary.p50, summary.p99, summary.max];
        let cells = numbers.iter().map(|number| format!("{number:.3}"));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    line("response time", &measures.response_time);
    line("synchronisation delay", &measures.sync_delay);
    let _ = writeln!(page, "{}", table.fit(output::width()));
    let _ = writeln!(
        page,
        "bytes per entry {:.1}; idle messages per delay {:.3}; Jain's index {:.4}; a waiter was \
         overtaken at most {} times; messages received by a node: mean {:.1}, max {}",
        measures.bytes_per_entry,
        measures.idle_messages_per_time,
        measures.fairness.jain,
        measures.fairness.max_overtaken,
        measures.node_load.mean,
        measures.node_load.max,
    );
    let _ = writeln!(
        page,
        "violations {}, unserved {}, crashes {}; {} events in {:.3} s, {:.1} million per second",
        report.violations,
        report.unserved,
        report.crashes,
        report.events,
        timed.wall_seconds,
        timed.events_per_second / 1e6,
    );
    page
}
