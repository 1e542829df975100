//! `soloist lab run`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;
use soloist_algorithms::{Choice, NodeId, Start};
use soloist_lab::replicate::{Plan, Replicated, SpanFigures, replicate, steady};
use soloist_lab::report::plot_distributions;
use soloist_lab::simulate::{Crashes, Load, Report, Setup, Summary, simulate};

use super::plot::PlotFile;
use super::settings;
use super::trace::TraceFile;
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

Requesters: with zipf:S, node i requests in proportion to 1/(i+1)^S. With think, its pauses are \
shorter or longer accordingly.

Delays: zones:3:0.1/2 divides the nodes into 3 zones of consecutive numbers, with a delay of 0.1 \
inside a zone and of 2 between zones; both may be distributions. A file has one line per node with \
one delay per node, separated by spaces or commas; the diagonal may be -.

Replications: each measures the same number of entries after a warm-up, while the load continues. \
The interval of a mean is Student's t interval over the replications. A maximum has no interval, \
since it grows with the sample. The warm-up is checked by doubling it; if that shifts a mean \
noticeably, stderr says so. Bursts and runs with crashes are measured from start to end. --seeds 1 \
measures one run from start to end, without intervals, as `soloist lab swarm` does.

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
  soloist lab run -a raymond -n 31 --plot waiting.svg
  soloist lab run -a maekawa -n 13 --load light --delay constant --json
  soloist lab run -a raymond -n 31 --load think:100 --precision 1%
  soloist lab run -a naimi-trehel -n 12 --delay zones:3:0.1/2 --trace run.csv
  soloist lab run -a raymond -n 31 --crashes 20:5
  soloist lab run -a torus --variant as-published -n 9 --load light";

/// Simulate one algorithm and measure it
///
/// Time is virtual and counted in message delays. The run is replicated with consecutive seeds, on
/// all cores, and every mean has a confidence interval. Mutual exclusion is checked at each step,
/// and no request may be left waiting.
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

    #[command(flatten)]
    simulation: Simulation,

    #[command(flatten)]
    replications: settings::Replications,

    /// Also write every event of the first seed's run to a file, as CSV or JSON lines
    #[arg(long, value_name = "FILE.csv|FILE.jsonl")]
    trace: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also draw the distributions of response time and synchronisation delay in the first seed's
    /// run as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// What is simulated, beside the algorithm and the nodes. `soloist lab play` takes it too.
#[derive(clap::Args)]
pub(super) struct Simulation {
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
        help = format!(
            "Number of entries that each replication measures [default: {}; with burst, one per \
             node]",
            Setup::ENTRIES
        )
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
}

/// Results, and how long it took to compute them.
#[derive(Serialize)]
struct Timed<R> {
    #[serde(flatten)]
    results: R,
    wall_seconds: f64,
    events_per_second: f64,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let setup = Setup {
            distributions: self.plot.is_some(),
            ..self
                .simulation
                .setup(&self.algorithm, self.nodes, Setup::ENTRIES)?
        };
        let file = self.plot.as_deref();
        let file = file.map(|path| PlotFile::new("--plot", path)).transpose()?;
        let plan = self.replications.plan()?;
        let trace = self.trace.as_deref().map(TraceFile::create).transpose()?;
        let verdict = match &plan {
            None => self.run_once(&setup)?,
            Some(plan) => self.run_replications(&setup, plan)?,
        };
        // The run of the first seed, as it was measured.
        let first = match &plan {
            None => setup,
            Some(plan) => steady(&setup, plan),
        };
        if let Some(trace) = trace {
            trace.write(&first)?;
        }
        if let Some(file) = file {
            file.write(&plot_distributions(&simulate(&first, &mut |_| ())?).svg())?;
        }
        Ok(verdict)
    }

    fn run_once(&self, setup: &Setup) -> Result<Verdict> {
        let bar = output::progress_bar(setup.entries, "entries");
        let begin = Instant::now();
        let report = simulate(setup, &mut |entries| bar.set_position(entries))?;
        let timed = Timed::since(begin, report.events, report);
        bar.finish_and_clear();
        if self.json {
            output::json(&timed)?;
        } else {
            output::text(&describe_one(&timed))?;
        }
        Ok(verdict(&timed.results))
    }

    fn run_replications(&self, setup: &Setup, plan: &Plan) -> Result<Verdict> {
        let bar = output::progress_bar(plan.seeds, "replications");
        let begin = Instant::now();
        let replicated = replicate(setup, plan, &|| bar.inc(1))?;
        let timed = Timed::since(begin, replicated.report.events, replicated);
        bar.finish_and_clear();
        if self.json {
            output::json(&timed)?;
        } else {
            output::text(&describe(&timed))?;
        }
        let replicated = &timed.results;
        for warning in replicated.warnings() {
            output::complain(&warning);
        }
        if let Some(seed) = replicated.failed_seed {
            output::complain(&format!("the first seed that failed: {seed}"));
        }
        Ok(verdict(&replicated.report))
    }
}

impl Simulation {
    /// The setup, with this number of entries unless one is given.
    pub(super) fn setup(&self, algorithm: &str, nodes: usize, entries: u64) -> Result<Setup> {
        let choice = Choice::parse(algorithm, &self.variant)?;
        let entries = self
            .world
            .entries_for(self.load, nodes, self.entries, entries)?;
        Ok(Setup {
            shape: settings::read_shape(self.shape.as_deref())?,
            start: self.start(nodes)?,
            crashes: self.crashes,
            ..self.world.setup(choice, nodes, self.load, entries)
        })
    }

    fn start(&self, nodes: usize) -> Result<Start> {
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

impl<R> Timed<R> {
    fn since(begin: Instant, events: u64, results: R) -> Self {
        let wall_seconds = begin.elapsed().as_secs_f64();
        Timed {
            results,
            wall_seconds,
            events_per_second: events as f64 / wall_seconds.max(1e-9),
        }
    }
}

/// Prints what went wrong, if anything, on stderr.
fn verdict<M>(report: &Report<M>) -> Verdict {
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

/// The parameters, in one line.
fn settings_line<M>(report: &Report<M>) -> String {
    let requesters = match report.requesters.as_str() {
        "all" => String::new(),
        requesters => format!(" by {requesters}"),
    };
    format!(
        "{}, {}, shape {}, {} load{requesters}, delay {}, channels {}, hold {}",
        report.label(),
        count(report.nodes, "node"),
        report.shape,
        report.load,
        report.delay,
        report.channels,
        report.hold,
    )
}

/// Violations and speed, in one line.
fn last_line<R, M>(report: &Report<M>, timed: &Timed<R>) -> String {
    format!(
        "violations {}, unserved {}, crashes {}; {} events in {:.3} s, {:.1} million per second\n",
        report.violations,
        report.unserved,
        report.crashes,
        report.events,
        timed.wall_seconds,
        timed.events_per_second / 1e6,
    )
}

fn describe_one(timed: &Timed<Report>) -> String {
    let report = &timed.results;
    let measures = &report.measures;
    let mut page = format!("{}, seed {}\n\n", settings_line(report), report.seed);
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
        let cells = numbers.iter().map(|number| match summary.count {
            0 => "-".to_owned(),
            _ => format!("{number:.3}"),
        });
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
    page + &last_line(report, timed)
}

fn describe(timed: &Timed<Replicated>) -> String {
    let Replicated {
        report,
        replications,
        level,
        warm_up,
        ..
    } = &timed.results;
    let figures = &report.measures;
    let last_seed = report.seed.wrapping_add(replications - 1);
    let part = match warm_up {
        Some(warm_up) => format!("after a warm-up of {}", warm_up.entries),
        None => "from start to end".to_owned(),
    };
    let mut page = format!(
        "{}\n{replications} replications (seeds {} to {last_seed}) of {} entries {part}; {} % \
         intervals\n\n",
        settings_line(report),
        report.seed,
        figures.entries,
        level * 100.0,
    );
    let mut table = Table::new(["", "per entry"]);
    table.row([
        "messages".to_owned(),
        figures.messages_per_entry.to_string(),
    ]);
    for (name, per_entry) in &figures.messages_by_kind_per_entry {
        table.row([format!("  {name}"), per_entry.to_string()]);
    }
    table.row(["bytes".to_owned(), figures.bytes_per_entry.to_string()]);
    let _ = writeln!(page, "{}", table.fit(output::width()));
    let mut table = Table::new(["in message delays", "mean", "p50", "p99", "max"]);
    let mut line = |name: &str, figures: &SpanFigures| {
        let cells = [figures.mean, figures.p50, figures.p99].map(|cell| cell.to_string());
        let max = figures.max.to_string();
        table.row([name.to_owned()].into_iter().chain(cells).chain([max]));
    };
    line("response time", &figures.response_time);
    if let Some(sync_delay) = &figures.sync_delay {
        line("synchronisation delay", sync_delay);
    }
    let _ = writeln!(page, "{}", table.fit(output::width()));
    if figures.without_hand_over > 0 {
        let _ = writeln!(
            page,
            "synchronisation delay: {} of {replications} replications have no hand-over, which is \
             an exit while another node waits, and are left out",
            figures.without_hand_over
        );
    }
    let _ = writeln!(
        page,
        "idle messages per delay {}; Jain's index {}; most times that a waiter was overtaken: {} \
         entries; messages received by a node: mean {}, max {} nodes",
        figures.idle_messages_per_time,
        figures.fairness.jain,
        figures.fairness.max_overtaken,
        figures.node_load.mean,
        figures.node_load.max,
    );
    page + &last_line(report, timed)
}
